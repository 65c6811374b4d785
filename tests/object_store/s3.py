"""What the tests of S3 share beside fixtures."""

from __future__ import annotations

import fsspec
from zarr.core.sync import sync

from distboost import GDMCBoostClassifier


def model() -> GDMCBoostClassifier:
    return GDMCBoostClassifier(calibration=None, n_estimators=3)


def forget_connections() -> None:
    """Closes the sessions that fsspec keeps, too: nobody would close those of asynchronous filesystems."""
    from s3fs import S3FileSystem

    for files in list(S3FileSystem._cache.values()):
        if files._s3 is not None:
            if files.asynchronous:
                sync(files._s3.close())
            else:
                fsspec.asyn.sync(files.loop, files._s3.close)
    S3FileSystem.clear_instance_cache()
