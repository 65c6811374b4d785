"""A SLURM of one node, this machine: its daemons run in the foreground as children of this process."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from distboost.cluster.local import Process, running, wait_for
from tests.ports import free_ports

DAEMONS = ("munged", "slurmctld", "slurmd")
DEADLINE = 60.0  # seconds until the node is up
STOP_DEADLINE = 20.0  # until it is killed

CONFIGURATION = """
ClusterName=one
SlurmctldHost={host}
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
OverTimeLimit=0
MinJobAge=600
SchedulerParameters=sched_interval=5,bf_interval=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing() -> list[str]:
    """The daemons that are not installed: Debian's packages slurm-wlm and munge have them."""
    return [name for name in DAEMONS if shutil.which(name, path=_path()) is None]


def _path() -> str:
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


@contextmanager
def slurm(folder: Path, cpus: int = 4, memory: int = 12_000) -> Iterator[dict[str, str]]:
    """The environment in which sbatch and its like find a SLURM with so many CPUs and MB. More CPUs than cores are shared."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o400)
    folder.chmod(0o755)  # munged wants a folder that others can enter
    ports = dict(zip(("controller", "daemon"), free_ports(2), strict=True))
    host = socket.gethostname().partition(".")[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(host=host, folder=folder, cpus=cpus, memory=memory, **ports)
    )
    environment = {**os.environ, "PATH": _path(), "SLURM_CONF": str(configuration)}
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "seed", "log")]
    commands = (
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge],
        ["slurmctld", "-D", "-i", "-f", str(configuration)],
        ["slurmd", "-D", "-f", str(configuration)],
    )
    with ExitStack() as stack:
        daemons = []
        for command in commands:
            log = folder / f"{command[0]}.log"
            daemons.append(stack.enter_context(running(command, log, environment, STOP_DEADLINE)))
            time.sleep(1.0)
        wait_for(lambda: _is_up(environment), daemons, DEADLINE, lambda: _not_up(daemons), interval=0.5)
        try:
            yield environment
        finally:
            with suppress(subprocess.TimeoutExpired):
                cancel = ["scancel", "--user=root"]
                subprocess.run(cancel, env=environment, timeout=STOP_DEADLINE, check=False)
                time.sleep(2.0)


def _is_up(environment: dict[str, str]) -> bool | None:
    return "idle" in said("sinfo", "--noheader", "--format=%T", environment=environment) or None


def _not_up(daemons: list[Process]) -> str:
    logs = [f"{daemon.log.stem}. {daemon.last_words()}" for daemon in daemons]
    return "\n".join([f"the node is not up after {DEADLINE:.0f} s.", *logs])


def said(*command: str, environment: dict[str, str], **how: object) -> str:
    """What a command of SLURM prints."""
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=60, check=False, **how,
    ).stdout.strip()  # fmt: skip


def state(job: str, environment: dict[str, str]) -> str:
    """The state of a job, such as RUNNING, COMPLETED or TIMEOUT."""
    details = said("scontrol", "show", "job", job, environment=environment)
    return next(
        (word.removeprefix("JobState=") for word in details.split() if word.startswith("JobState=")), details
    )
