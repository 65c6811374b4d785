"""The folder in which the machine code of a kernel is kept, and those in which it is looked for.

Numba takes the first folder that it can write to: NUMBA_CACHE_DIR, that of the source file, the user's cache. A container often
can write to none of them, and its image may come with compiled kernels in folders that are read-only.
"""

from __future__ import annotations

import inspect
import logging
import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import CompileResultCacheImpl, _CacheLocator, _SourceFileBackedLocatorMixin

log = logging.getLogger("distboost")
_told = threading.Event()


class _Locator(_SourceFileBackedLocatorMixin, _CacheLocator):
    def __init__(self, function: Any, file: str):
        self._py_file, self._lineno = file, function.__code__.co_firstlineno


class TemporaryLocator(_Locator):
    """Chooses a folder of this user among the temporary files, where Numba knows no writable folder."""

    @property
    def folder(self) -> Path:
        return Path(os.environ.get("TMPDIR", "/tmp")).absolute() / f"distboost-kernels-{os.geteuid()}"

    def get_cache_path(self) -> str:
        return str(self.folder / self.get_suitable_cache_subpath(self._py_file))

    def ensure_cache_path(self) -> None:
        _make_private(self.folder)
        super().ensure_cache_path()
        if not _told.is_set():
            _told.set()
            log.info(
                "compiled kernels are kept in %s: neither the installation nor the home is writable. Set NUMBA_CACHE_DIR to a "
                "folder that lasts longer.",
                self.folder,
            )


class ReadOnlyLocator(_Locator):
    """Chooses the folder of the source file if none is writable: kernels that came with the installation are read from it."""

    def get_cache_path(self) -> str:
        return str(Path(self._py_file).parent / "__pycache__")

    def ensure_cache_path(self) -> None:
        pass


class Kept(CompileResultCacheImpl):
    """Numba's choice of a folder for a function's machine code, with two more at the end."""

    _locator_classes: Any = [*CompileResultCacheImpl._locator_classes, TemporaryLocator, ReadOnlyLocator]  # noqa: RUF012


def folders(function: Any, chosen: str) -> list[Path]:
    """Return the chosen folder, and those that Numba would have preferred if they were writable."""
    file = Path(inspect.getfile(function))
    preferred = [str(file.parent / "__pycache__")]
    given = vars(config)["CACHE_DIR"]
    if given:
        preferred.insert(0, os.path.join(given, _CacheLocator.get_suitable_cache_subpath(str(file))))
    read_only = preferred[: preferred.index(chosen)] if chosen in preferred else preferred
    return [Path(folder) for folder in (chosen, *read_only)]


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can write to. Machine code is executed, so nothing that others wrote may be read."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is no folder of this user alone")
