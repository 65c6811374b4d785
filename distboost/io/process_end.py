"""How a process of this library ends."""

from __future__ import annotations

import atexit
import gc
from functools import cache


@cache
def end_promptly() -> None:
    """Let this process leave its memory to the system when it ends.

    Python looks for garbage at the end, among all that the imported libraries have made: a second of work, and many on a machine
    whose processes all end at once. Dask waits 4 seconds for a worker, then warns and kills it.
    """
    atexit.register(gc.freeze)
