"""Standard output that takes whatever is written to it: no work of hours is lost for a letter, or for a reader that has left."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

_HANDLER = "distboost.in-ascii"
_LEFT = {errno.EPIPE, errno.EIO}  # the reader: such as `head`, or a terminal that has been closed
_IN_ASCII = {"±": "+-", "≥": ">=", "…": "..."}  # what the library writes itself


class Output(io.TextIOBase):
    """A text stream, or None, that takes everything.

    Letters that the stream's encoding lacks are written in ASCII. What nobody reads is not written. It has no `buffer`, to which
    others (Click, if the encoding is ASCII) write in an encoding of their choice.
    """

    def __init__(self, stream: Any):
        self._stream = stream
        self._reader_left = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream is not None and bool(self._stream.isatty())

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return super().fileno() if self._stream is None else int(self._stream.fileno())

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write the text; return its length."""
        fits = text.encode(self.encoding, _HANDLER).decode(self.encoding)
        with self._unless_left():
            if self._stream is not None:
                self._stream.write(fits)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with self._unless_left():
            if self._stream is not None:
                self._stream.flush()

    def end(self) -> None:
        """Flush the stream; if its reader has left, let the interpreter write what remains of it to nowhere."""
        self.flush()
        if self._reader_left:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())

    @contextmanager
    def _unless_left(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _LEFT:
                raise
            self._reader_left = True


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Handle letters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    shown = (_IN_ASCII.get(one) or one.encode("ascii", "backslashreplace").decode() for one in letters)
    return "".join(shown), error.end


codecs.register_error(_HANDLER, _in_ascii)


@contextmanager
def all_is_written() -> Iterator[None]:
    """Let both standard streams take everything within the context."""
    outputs = Output(sys.stdout), Output(sys.stderr)
    with redirect_stdout(outputs[0]), redirect_stderr(outputs[1]):
        try:
            yield
        finally:
            for output in outputs:
                output.end()
