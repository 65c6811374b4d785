from __future__ import annotations

import pytest

OF_THE_ENGINE = {"test_workers_change_nothing", "test_streaming_changes_nothing"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of what the engine does alike for all, one variant of each algorithm is tested, and the others in the soak."""
    for item in items:
        if getattr(item, "originalname", "") not in OF_THE_ENGINE:
            continue
        subject = item.callspec.params.get("subject")  # others have tests of that name, too
        if subject is not None and subject.variant:
            item.add_marker(pytest.mark.soak)
