"""Workers that do not see what the client sees: each has mounts of its own, where folders can be hidden at any time."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess

import pytest

from tests.faults.crews import FORKS, Workers, work

CLONE_NEWNS = 0x00020000
HIDE = "mount -t tmpfs none"


def hide(folder: str) -> None:
    """Mounts an empty folder over one, in this process's mounts."""
    subprocess.run([*HIDE.split(), folder], check=True, timeout=10)


def work_apart(*arguments) -> None:
    """A worker's process, with mounts of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=10)
    work(*arguments)


class ApartWorkers(Workers):
    """Workers whose mounts are their own."""

    def _process(self, *arguments):
        return FORKS.Process(target=work_apart, args=arguments, daemon=True)

    def blind(self, name: str, folder: os.PathLike) -> None:
        """The worker sees an empty folder from now on."""
        pid = str(self.pid(name))
        subprocess.run(["nsenter", "-t", pid, "-m", *HIDE.split(), str(folder)], check=True, timeout=10)


def check_mounts() -> None:
    """Skips where this machine lets nobody make mounts."""
    for tool in ("unshare", "nsenter", "mount"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}: Debian has it in util-linux and mount")
    script = f"mount --make-rprivate / && {HIDE} /mnt"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=10, check=False
    )
    if tried.returncode:
        pytest.skip(f"no mounts of our own here: {tried.stderr.strip()}")
