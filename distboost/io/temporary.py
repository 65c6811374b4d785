"""Temporary folders for data that do not fit in memory. They are removed after use, or after their owner was killed.

The owner of a local folder holds a lock on a file beside it. The system releases the lock when the process ends for any reason.
The next process that makes such a folder at the same place removes the folders of killed processes.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distboost.errors import StoreError
from distboost.io.filesystems import filesystem_at
from distboost.io.storage import local_path
from distboost.process import after_fork, clean_up_on_sigterm, leave_sigterm

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_OWNER = ".owner"
_OWNED = re.compile(r"distboost(-\w+)?-[0-9a-f]{12}\.owner")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# Seconds for which the removal of a folder is repeated, since other threads may still write to it.
PATIENCE = 5.0

_owned: dict[Path, int] = {}  # the folders of this process, and the descriptors of their locks


def temporary_url(base: str, name: str = "distboost") -> str:
    """Return a unique path or URL."""
    return f"{base.rstrip('/')}/{name}-{uuid.uuid4().hex[:12]}"


@contextmanager
def temporary_folder(base: str) -> Iterator[str]:
    """Make a folder at a path or URL; remove it at the end. A folder at a URL stays if this process is killed."""
    url = temporary_url(base)
    path = local_path(url)
    try:
        if path is None:
            filesystem, place = filesystem_at(url)
            filesystem.makedirs(place, exist_ok=True)
        else:
            own(path)
        yield url
    except KeyboardInterrupt:
        remove(url)  # this process still owns it until the end: threads that still run may make it again
        raise
    except BaseException:
        release(url)
        raise
    release(url)


def own(folder: Path) -> None:
    """Make a folder, which is removed at the end of this process at the latest; remove those of processes that have ended."""
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder not in _owned:
            _reclaim(folder.parent)
            _owned[folder] = -1
            clean_up_on_sigterm(_release_all)
            _owned[folder] = _locked(_owner_file(folder))
        folder.mkdir(exist_ok=True)
    except OSError as error:
        with suppress(OSError):
            release(folder)
        raise StoreError(
            f"cannot make a folder in {folder.parent}, for data that do not fit in memory ({error.strerror}).",
            remedy="Set another directory: ``scratch=...``",
        ) from error


def remove(url: str) -> None:
    """Remove a folder at a path or URL with its content. An interrupt is raised only after that."""
    path = local_path(url)
    if path is None:
        filesystem, place = filesystem_at(url)
        with suppress(FileNotFoundError):
            filesystem.rm(place, recursive=True)
        return
    try:
        _removed(path)
    except KeyboardInterrupt:
        _removed(path)
        raise


def release(url: str | os.PathLike[str]) -> None:
    """Remove a folder that is no longer needed: a local one if this process owns it, or any at a URL."""
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
        return  # other threads still write to it: the end of this process, or a later process, removes it
    _owner_file(folder).unlink(missing_ok=True)
    descriptor = _owned.pop(folder)
    if descriptor >= 0:
        os.close(descriptor)
    if not _owned:
        leave_sigterm()


def _removed(folder: Path, patience: float = PATIENCE) -> bool:
    """Remove a folder, repeatedly while other threads write to it; return whether it is gone."""
    until = time.monotonic() + patience
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        if time.monotonic() >= until:
            return not folder.exists()
        if folder.exists():
            time.sleep(0.02)
    return True


# Owners.


def _owner_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _OWNER)


def _kernel() -> str:
    """Return the id of this system's last boot, within which locks are valid; empty if it is unknown."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _locked(owner: Path) -> int:
    """Make and lock the file that names the owner of a folder. The file is locked before it gets its content."""
    descriptor = os.open(owner, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    kernel = _kernel()
    try:
        if fcntl is None:
            raise OSError
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:  # a file system without locks: other processes cannot tell whether this one is alive
        kernel = ""
    os.write(descriptor, json.dumps({"boot": kernel, "host": platform.node(), "pid": os.getpid()}).encode())
    return descriptor


def _reclaim(base: Path) -> None:
    """Remove the folders in `base` whose owners have certainly ended."""
    if fcntl is None:
        return
    with os.scandir(base) as entries:
        owners = [Path(entry.path) for entry in entries if _OWNED.fullmatch(entry.name)]
    for owner in owners:
        folder = owner.with_suffix("")
        # Another process's folder may be gone by now, or this process may not have the permission to remove it.
        with suppress(OSError, ValueError):
            if folder not in _owned and _is_dead(owner) and _removed(folder, 0):
                owner.unlink(missing_ok=True)


def _is_dead(owner: Path) -> bool:
    """Whether the owner has ended: it ran since the last boot of this system and no longer holds its lock."""
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


def _forget() -> None:
    """Forget all folders in a forked process: they belong to the parent."""
    for descriptor in _owned.values():
        with suppress(OSError):
            os.close(descriptor)
    _owned.clear()


atexit.register(_release_all)
after_fork(_forget)
