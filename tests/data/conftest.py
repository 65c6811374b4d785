"""What the tests of data share: small arrays and stores, short waits, and faults that are put right meanwhile."""

import logging

import numpy as np
import pytest
import zarr

import distboost
from distboost.data import ingest
from distboost.io import retry
from tests.data.disturbed import BLOCK, model


@pytest.fixture
def short_waits(monkeypatch):
    """Short waits between attempts, and blocks of a few rows."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", BLOCK)


@pytest.fixture
def expected(blobs, saved):
    """The model's bytes without any fault."""
    return saved(model().fit(*blobs))


@pytest.fixture
def arrays(blobs, tmp_path):
    """(x, y): paths of raw arrays."""
    zarr.create_array(str(tmp_path / "x"), data=np.asarray(blobs[0]), chunks=(50, 2))
    zarr.create_array(str(tmp_path / "y"), data=np.asarray(blobs[1]), chunks=(100,))
    return str(tmp_path / "x"), str(tmp_path / "y")


@pytest.fixture
def store(blobs, tmp_path):
    return distboost.bin(*blobs, str(tmp_path / "store"))


@pytest.fixture
def log(caplog):
    """What is said while things are tried again."""
    caplog.set_level(logging.WARNING, logger="distboost")
    return caplog


class Repair(logging.Handler):
    """Puts a fault right when it is first spoken of."""

    def __init__(self, repair):
        super().__init__(logging.WARNING)
        self.repair = repair

    def emit(self, record):
        repair, self.repair = self.repair, None
        if repair is not None:
            repair()


@pytest.fixture
def repaired():
    """repaired(function): is called at the first warning."""
    logger, handlers = logging.getLogger("distboost"), []

    def at_first_warning(function):
        handlers.append(Repair(function))
        logger.addHandler(handlers[-1])

    yield at_first_warning
    for handler in handlers:
        logger.removeHandler(handler)
