"""Checkpoints: what a training run has learned so far, in a folder or under a URL.

A folder holds segments, each with the rounds since the previous one, and a manifest with the model's header and the names,
sizes and digests of all segments. The writer publishes the manifest last: wherever it is interrupted, readers see the last
complete checkpoint. The name of a segment contains a digest of its content, so no segment ever overwrites another. If other
programs remove files during the training, the writer writes them again: everything that was learned is in memory.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
from dask.utils import parse_timedelta

from distboost.errors import CheckpointError, DataError, ModelFormatError
from distboost.io.files import PARTIAL, check_version, decoded, encoded, publish, read, version_of
from distboost.io.filesystems import filesystem_at
from distboost.io.storage import local_path, only_writer
from distboost.model.learned import Learned

MANIFEST = "checkpoint.json"
_SEGMENT = r"rounds-\d+-\d+-[0-9a-f]{16}\.safetensors"
_CHECKPOINT_FILE = re.compile(
    rf"{_SEGMENT}|({_SEGMENT}|{re.escape(MANIFEST)})\.[0-9a-f]{{32}}{re.escape(PARTIAL)}"
)
_READINGS = 20  # attempts to read a checkpoint whose writer replaces segments at the same time
_WRITINGS = 5  # attempts to write a checkpoint whose files others remove at the same time


class Segment(NamedTuple):
    """A file of `n_bytes` bytes with the rounds first .. last - 1."""

    first: int
    last: int
    n_bytes: int
    sha256: str

    @classmethod
    def of(cls, first: int, last: int, content: bytes) -> Segment:
        """Return the segment with this content."""
        return cls(first, last, len(content), hashlib.sha256(content).hexdigest())

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"rounds-{self.first}-{self.last}-{self.sha256[:16]}.safetensors"

    def holds(self, content: bytes) -> bool:
        """Whether `content` is that of this segment."""
        return self == Segment.of(self.first, self.last, content)


class Manifest(NamedTuple):
    """A model's header, and the segments with its rounds, in order."""

    header: dict[str, Any]
    segments: tuple[Segment, ...]

    def encoded(self) -> bytes:
        """Return the content of the manifest's file."""
        listed = [{"name": segment.name, **segment._asdict()} for segment in self.segments]
        content = {
            "format": "distboost-checkpoint",
            "version": version_of(self.header),
            "header": self.header,
            "segments": listed,
        }
        return json.dumps({**content, "checksum": _checksum(content)}, sort_keys=True).encode()

    @classmethod
    def decoded(cls, content: bytes, where: str) -> Manifest:
        """Decode the manifest of a checkpoint; raise ModelFormatError if the content is anything else."""
        try:
            found = json.loads(content)
            if found["format"] != "distboost-checkpoint":
                raise ValueError("it has another format")
            check_version(found["version"], where)
            if found.pop("checksum", None) != _checksum(found):
                raise ValueError("its checksum does not match")
            segments = tuple(_segment(**one) for one in found["segments"])
            ends = [0, *(segment.last for segment in segments)]
            if any(segment.first != end for segment, end in zip(segments, ends, strict=False)):
                raise ValueError("its segments do not follow each other")
            return cls(dict(found["header"]), segments)
        except ModelFormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ModelFormatError(
                f"{where} is not the manifest of a checkpoint, or it is damaged: {error}.",
                remedy="Train again, without ``resume``.",
            ) from error


def _segment(name: str, first: int, last: int, n_bytes: int, sha256: str) -> Segment:
    """Return a segment that a manifest lists. Its name must fit its content: another name might point outside of the folder."""
    segment = Segment(first, last, n_bytes, sha256)
    whole = type(first) is type(last) is type(n_bytes) is int and 0 <= first < last and n_bytes > 0
    if not (whole and re.fullmatch(r"[0-9a-f]{64}", sha256)):
        raise ValueError("a segment has no rounds, no size or no digest")
    if name != segment.name:
        raise ValueError(f"a segment has the name {name!r}, not {segment.name!r}")
    return segment


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# Reading.


def manifest_url(url: str) -> str:
    """Return the path or URL of a checkpoint's manifest."""
    return f"{url.rstrip('/')}/{MANIFEST}"


def is_checkpoint(url: str) -> bool:
    """Whether there is a complete checkpoint at the URL."""
    try:
        _read(manifest_url(url))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def rounds_at(url: str) -> int | None:
    """Return the number of rounds of the checkpoint at the URL; None if there is none that a training run can resume from."""
    with suppress(FileNotFoundError, NotADirectoryError, ModelFormatError):
        rounds: int = Manifest.decoded(read(manifest_url(url)), manifest_url(url)).header["rounds"]
        return rounds
    return None


def read_checkpoint(url: str) -> tuple[dict[str, Any], list[tuple[Segment, dict[str, np.ndarray]]]]:
    """Read the model's header, and the segments with their arrays by name, of the last complete checkpoint."""
    seen = b""
    for _ in range(_READINGS):
        content = _read(manifest_url(url))
        manifest = Manifest.decoded(content, manifest_url(url))
        try:
            return manifest.header, [(segment, _arrays(url, segment)) for segment in manifest.segments]
        except FileNotFoundError as error:
            missing = error
        if content == seen:  # if it differs, the writer has published another manifest: try again
            break
        seen = content
    raise ModelFormatError(
        f"the checkpoint {url} is incomplete: a segment that its manifest names is missing ({missing}).",
        remedy="Train again, without resume.",
        where=url,
    ) from missing


def _read(place: str, most: int | None = None) -> bytes:
    try:
        return read(place, most)
    except IsADirectoryError as error:
        raise ModelFormatError(f"{place} is a folder, not a file of a checkpoint.", where=place) from error


def _arrays(url: str, segment: Segment) -> dict[str, np.ndarray]:
    place = f"{url.rstrip('/')}/{segment.name}"
    content = _read(place, segment.n_bytes)
    if not segment.holds(content):
        size = (
            f"{len(content)} bytes"
            if len(content) <= segment.n_bytes
            else f"more than {segment.n_bytes} bytes"
        )
        raise ModelFormatError(
            f"{place} ({size}) was truncated or altered: its size and digest are not those in the manifest ({segment.n_bytes} "
            "bytes).",
            remedy="Train again, without ``resume``.",
            where=place,
        )
    return decoded(content, place)[1]


# Writing.


@contextmanager
def open_checkpoint(url: str | os.PathLike[str] | None, every: int | str) -> Iterator[Checkpoint | None]:
    """Open a checkpoint for writing, locked against other processes of this machine. None: the training keeps no checkpoint."""
    interval = WriteInterval.of(every)
    if url is None:
        yield None
        return
    place = os.fspath(url)
    folder = local_path(place)
    was_there = _identity(place) is not None
    with ExitStack() as locks:
        checkpoint = Checkpoint(place, interval, lambda: locks.enter_context(only_writer(place)))
        made = None if was_there else _identity(place)
        try:
            yield checkpoint
        finally:
            if folder is not None and made is not None and made == _identity(place):
                with suppress(OSError):  # it is not empty
                    folder.rmdir()


class WriteInterval(NamedTuple):
    """The time between two writes, in rounds or in seconds."""

    rounds: int | None
    seconds: float = 0.0

    @classmethod
    def of(cls, every: int | str) -> WriteInterval:
        """Convert a number of rounds, or a text such as "30s"."""
        if not isinstance(every, str):
            return cls(every)
        try:
            return cls(None, float(parse_timedelta(every, default=False)))
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise DataError.expected(
                "``checkpoint_every``",
                every,
                remedy="Set a number of rounds such as 10, or a time as a text such as '30s'.",
            ) from error

    def is_over(self, rounds: int, seconds: float) -> bool:
        """Return whether the interval has passed, after this many rounds and seconds."""
        return seconds >= self.seconds if self.rounds is None else rounds >= self.rounds


class Checkpoint:
    """The checkpoint that a training run writes.

    Parameters
    ----------
    url : str
        URL or path of the folder.
    every : WriteInterval
    lock : callable
        Makes the folder if there is none, and locks it against other processes of this machine.
    """

    def __init__(self, url: str, every: WriteInterval, lock: Callable[[], None]):
        self.url = url
        self._every = every
        self._lock = lock
        lock()
        self._folder = _identity(url)
        self._segments: tuple[Segment, ...] = ()
        self._rounds = 0  # rounds in the segments
        self._time = time.monotonic()  # time of the last write
        self._swept = False

    def resume_from(self, learned: Learned) -> None:
        """Keep the existing segments that agree with what was learned; later writes append to them."""
        with suppress(FileNotFoundError, ModelFormatError):  # a damaged checkpoint is replaced as a whole
            listed = Manifest.decoded(_read(manifest_url(self.url)), manifest_url(self.url)).segments
            same = itertools.takewhile(
                lambda s: s.last <= len(learned.ensemble) and s.holds(_content(learned, s.first, s.last)),
                listed,
            )
            self._segments = tuple(same)
        self._rounds = len(learned.ensemble)

    def is_due(self, n_rounds: int) -> bool:
        """Whether it is time to write, after `n_rounds` rounds."""
        return self._every.is_over(n_rounds - self._rounds, time.monotonic() - self._time)

    def write(self, header: dict[str, Any], learned: Learned, whole: bool) -> None:
        """Add a segment with the rounds since the last one, or replace all segments by one if `whole`; publish the manifest.

        If others have removed segments or the folder, write these again.
        """
        before, kept = self._segments, () if whole else self._segments
        for _ in range(_WRITINGS):
            self._reopen_folder()
            kept = self._with_new_segment(kept, learned)
            self._publish(MANIFEST, Manifest(header, kept).encoded())
            if self._is_complete(kept):
                break
        else:
            raise CheckpointError(
                f"the checkpoint {self.url} is incomplete: in {_WRITINGS} attempts, another program removed its files as soon "
                "as they were written.",
                remedy="Stop that program, or choose another folder.",
                where=self.url,
            )
        self._segments, self._rounds, self._time = kept, learned.n_rounds, time.monotonic()
        with self._errors_explained("removing old segments"):
            _remove(
                self.url,
                ({segment.name for segment in before} | self._leftover_files()) - {s.name for s in kept},
            )

    def _reopen_folder(self) -> None:
        """Make and lock the folder again if it was removed or replaced: the lock belonged to the former folder."""
        if _identity(self.url) != self._folder:
            with self._errors_explained("its folder was removed"):
                self._lock()
            self._folder = _identity(self.url)

    def _with_new_segment(self, kept: tuple[Segment, ...], learned: Learned) -> tuple[Segment, ...]:
        """Write a segment with all rounds after the last segment that still exists; return the list of segments."""
        sizes = self._sizes()
        kept = tuple(itertools.takewhile(lambda segment: sizes.get(segment.name) == segment.n_bytes, kept))
        first, last = kept[-1].last if kept else 0, learned.n_rounds
        if first == last:
            return kept
        content = _content(learned, first, last)
        segment = Segment.of(first, last, content)
        self._publish(segment.name, content)
        return (*kept, segment)

    def _is_complete(self, kept: tuple[Segment, ...]) -> bool:
        """Whether the manifest and all segments exist now."""
        sizes = self._sizes()
        return MANIFEST in sizes and all(sizes.get(segment.name) == segment.n_bytes for segment in kept)

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of the files in the folder, by name."""
        with self._errors_explained("listing the folder"):
            return {
                name: found["size"] for name, found in _listed(self.url).items() if found["type"] == "file"
            }

    def _publish(self, name: str, content: bytes) -> None:
        with self._errors_explained(f"{len(content)} bytes to {name}"):
            publish(f"{self.url.rstrip('/')}/{name}", content)

    @contextmanager
    def _errors_explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # an object store's library has errors of its own
            raise CheckpointError(
                f"cannot write the checkpoint {self.url}: {what}: {_reason(error, self.url)}. The previous checkpoint is "
                "intact.",
                remedy="Correct the cause, then continue from it with ``resume=True``.",
                where=self.url,
            ) from error

    def _leftover_files(self) -> set[str]:
        """Return the files that an earlier writer left there; on the first call only."""
        if self._swept:
            return set()
        self._swept = True
        return _checkpoint_files(self.url)


def _content(learned: Learned, first: int, last: int) -> bytes:
    """Return the content of a segment's file."""
    return encoded({"rounds": [first, last]}, learned.arrays(first, last))


def _remove(url: str, names: Iterable[str]) -> None:
    filesystem, path = filesystem_at(url)
    for name in names:
        with suppress(FileNotFoundError):
            filesystem.rm_file(f"{path}/{name}")


def remove(url: str) -> None:
    """Remove a checkpoint, and its local folder if nothing else is in it."""
    _remove(url, (MANIFEST, *_checkpoint_files(url)))
    folder = local_path(url)
    if folder is not None:
        with suppress(OSError):
            folder.rmdir()


def _checkpoint_files(url: str) -> set[str]:
    """Return the names of segments and of unfinished files in the folder."""
    return {name for name in _listed(url) if _CHECKPOINT_FILE.fullmatch(name)}


def _listed(url: str) -> dict[str, dict[str, Any]]:
    """Return the details that fsspec lists of each entry of the folder, by name."""
    filesystem, path = filesystem_at(url)
    filesystem.invalidate_cache()
    with suppress(FileNotFoundError, NotADirectoryError):
        return {os.path.basename(found["name"]): found for found in filesystem.ls(path, detail=True)}
    return {}


def _identity(url: str) -> tuple[int, int] | None:
    """Return the device and inode of a local folder, which tell it from one that replaced it; None if there is none."""
    path = local_path(url)
    with suppress(FileNotFoundError, NotADirectoryError):
        found = None if path is None else path.stat()
        return None if found is None else (found.st_dev, found.st_ino)
    return None


def _reason(error: Exception, url: str) -> str:
    path = local_path(url)
    if path is None or not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and path.is_dir():
        return f"{error.strerror}, {shutil.disk_usage(path).free} bytes free"
    return error.strerror or str(error)
