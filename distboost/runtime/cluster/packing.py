"""Values in Dask's messages."""

from __future__ import annotations

import pickle
from typing import Any

from distributed.protocol.pickle import dumps, loads
from distributed.protocol.serialize import to_serialize

SMALL = 2**16  # bytes


def packed(value: Any) -> Any:
    """Return a value in the form in which a message carries it; `unpacked` is the inverse.

    Dask serializes and reads each array of a value by itself, without copying it. For the many small arrays of a question or of
    an answer this takes most of the time of a message: so they are sent as one string of bytes.
    """
    arrays: list[pickle.PickleBuffer] = []
    pickled = dumps(value, buffer_callback=arrays.append)
    views = [array.raw() for array in arrays]
    if len(pickled) + sum(view.nbytes for view in views) > SMALL:
        wrap: Any = to_serialize  # it has no types
        return wrap(value)
    return pickle.dumps((pickled, [(bytes if view.readonly else bytearray)(view) for view in views]))


def unpacked(found: Any) -> Any:
    """Return the value of a message that was received."""
    if not isinstance(found, bytes):  # Dask has restored it
        return found
    pickled, arrays = pickle.loads(found)
    return loads(pickled, buffers=arrays)
