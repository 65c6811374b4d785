"""Folders for what does not fit in memory: gone when they are no longer needed, or when their owner is.

The owner of a local folder holds a lock on a file beside it, which the system drops when the process ends, however that ends.
What a process that was killed has left is removed by the next one that makes such a folder at the same place.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import re
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fsspec

from distboost.errors import StoreError
from distboost.io.storage import local_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_OWNER = ".owner"
_OWNED = re.compile(r"distboost(-\w+)?-[0-9a-f]{12}\.owner")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
PATIENCE = 5.0  # seconds: for those who still write to a folder that is to go

_owned: dict[Path, int] = {}  # the folders of this process, and what holds their locks


def temporary_url(base: str, name: str = "distboost") -> str:
    """A path or URL that nobody else has."""
    return f"{base.rstrip('/')}/{name}-{uuid.uuid4().hex[:12]}"


@contextmanager
def temporary_folder(base: str) -> Iterator[str]:
    """A new folder at a path or URL. (One at a URL stays if this process is killed.)"""
    url = temporary_url(base)
    path = local_path(url)
    try:
        if path is None:
            filesystem, place = fsspec.core.url_to_fs(url)
            filesystem.makedirs(place, exist_ok=True)
        else:
            own(path)
        yield url
    except KeyboardInterrupt:
        remove(url)  # but it stays ours: threads that go on for a while may make it again, until our end
        raise
    except BaseException:
        release(url)
        raise
    release(url)


def own(folder: Path) -> None:
    """Makes a folder, which is removed at the end of this process at the latest; removes those of processes that have ended."""
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder not in _owned:
            _reclaim(folder.parent)
            _owned[folder] = -1
            _arm()
            _owned[folder] = _locked(_owner_file(folder))
        folder.mkdir(exist_ok=True)
    except OSError as error:
        with suppress(OSError):
            release(folder)
        raise StoreError(
            f"no folder can be made in {folder.parent} ({error.strerror}): what does not fit in memory goes there. "
            "Give another directory: scratch=..."
        ) from error


def remove(url: str) -> None:
    """Removes a folder at a path or URL, with all that is in it. An interrupt meanwhile comes when that is done."""
    path = local_path(url)
    if path is None:
        filesystem, place = fsspec.core.url_to_fs(url)
        with suppress(FileNotFoundError):
            filesystem.rm(place, recursive=True)
        return
    try:
        _removed(path)
    except KeyboardInterrupt:
        _removed(path)
        raise


def release(url: str | os.PathLike[str]) -> None:
    """Removes a folder that is needed no longer, if it is this process's; one at a URL is."""
    path = local_path(url)
    if path is None:
        remove(os.fspath(url))
        return
    try:
        _release(path.absolute())
    except KeyboardInterrupt:
        _release(path.absolute())
        raise


def _release(folder: Path) -> None:
    if folder not in _owned or not _removed(folder):
        return  # if others still write to it, our end or the next one to come here finds it
    _owner_file(folder).unlink(missing_ok=True)
    descriptor = _owned.pop(folder)
    if descriptor >= 0:
        os.close(descriptor)
    _disarm()


def _removed(folder: Path, patience: float = PATIENCE) -> bool:
    """Whether a folder is gone; it is removed again and again while others write to it."""
    until = time.monotonic() + patience
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() >= until:
            return not folder.exists()
        if folder.exists():
            time.sleep(0.02)
    return True


# Whose it is.


def _owner_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _OWNER)


def _kernel() -> str:
    """This running system, of which locks tell; empty if that is not known."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _locked(owner: Path) -> int:
    """A new file that says whose a folder is, locked before it says so."""
    descriptor = os.open(owner, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    kernel = _kernel()
    try:
        if fcntl is None:
            raise OSError
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:  # a file system without locks: nobody can tell whether we live
        kernel = ""
    os.write(descriptor, json.dumps({"boot": kernel, "host": platform.node(), "pid": os.getpid()}).encode())
    return descriptor


def _reclaim(base: Path) -> None:
    """Removes the folders here whose owners are dead; where there is any doubt, they stay."""
    if fcntl is None:
        return
    with os.scandir(base) as entries:
        owners = [Path(entry.path) for entry in entries if _OWNED.fullmatch(entry.name)]
    for owner in owners:
        folder = owner.with_suffix("")
        # Not our own; another's may have gone meanwhile, or is not ours to touch.
        with suppress(OSError, ValueError):
            if folder not in _owned and _is_dead(owner) and _removed(folder, 0):
                owner.unlink(missing_ok=True)


def _is_dead(owner: Path) -> bool:
    """Whether the owner has ended: it ran on this system, which locks reach, and holds its lock no longer."""
    descriptor = os.open(owner, os.O_RDWR | os.O_NOFOLLOW)
    try:
        boot = json.loads(os.read(descriptor, 4096))["boot"]
        if not boot or boot != _kernel():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except (BlockingIOError, KeyError, TypeError):
        return False
    finally:
        os.close(descriptor)


# The end of this process.


def _release_all() -> None:
    for folder in list(_owned):
        release(folder)


def _terminated(number: int, frame: Any) -> None:
    """Ends the process as the signal does that nobody handles."""
    _release_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _arm() -> None:
    """From now on SIGTERM removes our folders; a handler of the user's own ends the process in its own way, if it does."""
    if _in_main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def _disarm() -> None:
    if not _owned and _in_main_thread() and signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _forget() -> None:
    """In a fork: the folders are the parent's."""
    for descriptor in _owned.values():
        with suppress(OSError):
            os.close(descriptor)
    _owned.clear()


atexit.register(_release_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
