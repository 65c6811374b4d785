"""Programs that call kernels and tell what they compiled."""

from pathlib import Path

import distboost

PACKAGE = Path(distboost.__file__).parent
TOLD = "compiled kernels cannot be read or kept"

# What ends the programs below: how many kernels were loaded, and how many compiled.
COUNT = """
import gc, json
from numba.core.dispatcher import Dispatcher
kernels = [k for k in gc.get_objects() if isinstance(k, Dispatcher) and k.py_func.__module__.startswith("distboost")]
found["loaded"] = sum(sum(k.stats.cache_hits.values()) for k in kernels)
found["compiled"] = sum(len(k.overloads) for k in kernels) - found["loaded"]
print(json.dumps(found))
"""
WEIGHTS = f"""
import numpy as np
from distboost.kernels.response import response_weights
out = np.zeros(1, np.int64)
zero = np.zeros(1, np.int32)
response_weights(np.zeros((1, 2)), zero, np.ones(1), zero, 1.0, 0.0, 1.0, out)
found = {{"weight": int(out[0])}}
{COUNT}
"""
CALL = next(line for line in WEIGHTS.splitlines() if line.startswith("response_weights("))
TWO_TYPES = WEIGHTS.replace(
    CALL, f"{CALL}\n{CALL.replace('(1, 2)', '(1, 2), np.float32')}"
)  # two kernels to keep
