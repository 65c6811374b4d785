"""Values in Dask's messages."""

from __future__ import annotations

from pickle import PickleBuffer
from typing import Any

from distributed.protocol.pickle import dumps, loads
from distributed.protocol.serialize import Serialized, serialize, to_serialize

# Arrays of at least so many bytes are sent without copying them.
LARGE = 2**16


class Packed:
    """A value, as messages carry it: the receiver finds the value itself.

    Dask sends and reads each array of a value by itself. This takes longer than to copy a small array, and a question has about
    15 of them. So only large arrays are left to Dask.
    """

    def __init__(self, value: Any):
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        arrays: list[PickleBuffer] = []
        pickled = dumps(self._value, buffer_callback=arrays.append)
        return _unpacked, (pickled, [_copied_if_small(array) for array in arrays])


def _unpacked(pickled: bytes, arrays: list[Any]) -> Any:
    return loads(pickled, buffers=arrays)


def _copied_if_small(array: PickleBuffer) -> PickleBuffer | bytes | bytearray:
    view = array.raw()
    if view.nbytes >= LARGE:
        return array
    return bytes(view) if view.readonly else bytearray(view)


def serialized(value: Any) -> Any:
    """Have Dask serialize a value when it sends the message."""
    wrap: Any = to_serialize  # it has no types
    return wrap(Packed(value))


def serialized_once(value: Any) -> Serialized:
    """Serialize a value for several messages."""
    return Serialized(*serialize(Packed(value)))
