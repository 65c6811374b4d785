"""Chromium, driven by its DevTools protocol over a websocket: to open pages, press keys, and look."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

DEADLINE = 60.0  # seconds


def found() -> str | None:
    """The program, if it is there."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


class Chromium:
    """A headless browser with a profile of its own."""

    def __init__(self, profile: Path):
        program = found()
        assert program is not None
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
        ]
        place = profile / "DevToolsActivePort"
        place.unlink(missing_ok=True)  # of a browser that was killed
        self._process = subprocess.Popen(
            [program, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: place.exists() and "\n" in place.read_text(), "Chromium")
        self._address = f"http://127.0.0.1:{place.read_text().split()[0]}"

    def tab(self, url: str, width: int = 1280, height: int = 900) -> Tab:
        request = urllib.request.Request(f"{self._address}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            tab = Tab(json.load(answer)["webSocketDebuggerUrl"])
        tab.resize(width, height)
        tab.open(url)
        return tab

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Tab:
    """A page."""

    def __init__(self, address: str):
        self._loop = asyncio.new_event_loop()
        self._socket = self._loop.run_until_complete(self._connected(address))
        self._n = 0

    def send(self, method: str, **given: Any) -> Any:
        """Call a method of the protocol."""
        self._n += 1
        message = json.dumps({"id": self._n, "method": method, "params": given})
        said = self._loop.run_until_complete(asyncio.wait_for(self._answered(message), DEADLINE))
        assert "error" not in said, said
        return said["result"]

    async def _connected(self, address: str) -> Any:
        return await websocket_connect(address, max_message_size=2**28)

    async def _answered(self, message: str) -> Any:
        await self._socket.write_message(message)
        while (text := await self._socket.read_message()) is not None:
            if (said := json.loads(text)).get("id") == self._n:
                return said
        raise AssertionError("the browser has ended")

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def dark(self) -> None:
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript; promises are awaited."""
        said = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def wait(self, condition: str) -> None:
        until(lambda: self.value(condition), condition)

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({selector!r}).textContent"))

    def screenshot(self, path: Path, **given: Any) -> None:
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", **given)["data"]))

    def close(self) -> None:
        self._socket.close()
        self._loop.close()


def until(condition: Any, what: str) -> None:
    """Waits for an event, with a deadline."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {DEADLINE:g} s"
        time.sleep(0.05)
