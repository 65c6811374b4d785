"""Constraints on the values of parameters: scikit-learn's, which are not part of its public interface.

Only this module imports them. `tests/test_private_interfaces.py` tests the parts that distboost uses.
"""

from __future__ import annotations

from sklearn.utils._param_validation import (
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = ["Interval", "Options", "RealNotInt", "StrOptions", "validate_parameter_constraints"]
