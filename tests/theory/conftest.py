from __future__ import annotations

import pytest

from tests.theory.problems import PROBLEMS


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]()
