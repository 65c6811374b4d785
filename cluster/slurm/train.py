"""Train on SLURM jobs that dask-jobqueue submits, one worker each. It needs the extra `slurm` (docs/install.md).

    distboost cluster certificates tls
    python train.py --x data.zarr/x --y data.zarr/y --model model.dboost --tls tls --shared /shared/$USER --jobs 8

Run it where the nodes can connect to: on a login node, or within a job. Each job may end on its own, at its time limit or by a
preemption: the training continues with the others, and dask-jobqueue submits another job in its place. If this process ends, the
same command resumes from the checkpoint beside the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Client
from distributed.security import Security

from distboost import GDMCBoostClassifier


def main() -> None:
    options = parsed()
    tls = options.tls.resolve()
    security = Security(
        tls_ca_file=str(tls / "ca.pem"),
        tls_client_cert=str(tls / "cert.pem"),
        tls_client_key=str(tls / "key.pem"),
        tls_worker_cert=str(tls / "cert.pem"),
        tls_worker_key=str(tls / "key.pem"),
        tls_scheduler_cert=str(tls / "cert.pem"),
        tls_scheduler_key=str(tls / "key.pem"),
        require_encryption=True,
    )
    cluster = SLURMCluster(
        cores=options.cores,
        processes=1,  # one worker per job, with a thread per core
        memory=options.memory,
        walltime=options.walltime,
        protocol="tls://",
        security=security,
        local_directory=options.local,
        shared_temp_directory=str(options.shared),
        log_directory=str(options.shared / "logs"),
        job_script_prologue=["export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true"],
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
        worker_extra_args=["--no-dashboard", "--dashboard-address", "127.0.0.1:0"],
    )
    checkpoint = f"{options.model}.checkpoint"
    # Jobs that end are replaced as long as there is a minimum; wait_for_workers begins when all are there.
    with cluster, Client(cluster) as client:
        cluster.adapt(minimum_jobs=options.jobs, maximum_jobs=options.jobs)
        model = GDMCBoostClassifier(
            n_estimators=options.rounds,
            calibration=None if options.calibration == "none" else options.calibration,
            checkpoint=checkpoint,
            scratch=options.shared,
            wait_for_workers=options.jobs,
            verbose=1,
        )
        model.client = client
        model.fit(options.x, options.y, resume=Path(checkpoint).exists())
        model.save(options.model)
    print(f"{model.n_iter_} rounds in {options.model}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--x", required=True, help="features, a path or URL")
    parser.add_argument("--y", required=True, help="labels")
    parser.add_argument("--model", required=True, help="file to write")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--calibration", default="auto", help="auto, temperature, vector or none")
    parser.add_argument("--tls", type=Path, required=True, help="folder of certificates that all nodes see")
    parser.add_argument(
        "--shared", type=Path, required=True, help="folder that all nodes see, for scratch and logs"
    )
    parser.add_argument("--local", default="/tmp", help="folder on a disk of each node")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--cores", type=int, default=8, help="of each job")
    parser.add_argument("--memory", default="32GB", help="of each job")
    parser.add_argument("--walltime", default="02:00:00", help="of each job")
    return parser.parse_args()


if __name__ == "__main__":
    main()
