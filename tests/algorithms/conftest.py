from __future__ import annotations

import pytest

OF_THE_ENGINE = {"test_workers_change_nothing", "test_streaming_changes_nothing"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of what the engine does alike for all, one variant of each algorithm is tested, and the others in the soak."""
    for item in items:
        if getattr(item, "originalname", "") in OF_THE_ENGINE and item.callspec.params["subject"].variant:
            item.add_marker(pytest.mark.soak)
