"""What values a parameter may have: scikit-learn's constraints, which it does not call public.

Only this module imports them. `tests/test_private_interfaces.py` tests what distboost uses of them.
"""

from __future__ import annotations

from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions

__all__ = ["Interval", "Options", "RealNotInt", "StrOptions"]
