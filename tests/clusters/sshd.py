"""An SSH server of one machine, this one: its keys, its configuration and its port are its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from distboost.cluster.local import running, wait_for
from tests.ports import free_ports

PROGRAMS = ("sshd", "ssh", "ssh-keygen")
DEADLINE = 20.0  # seconds until the server answers
SEPARATION = Path(
    "/run/sshd"
)  # an empty folder that a server of root's insists on; its package makes it at boot

# The folder lies in the temporary one, which others may write to: StrictModes would refuse the keys there.
SERVER = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PidFile none
StrictModes no
UsePAM no
"""

CLIENT = """
Host {hosts}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/user
    IdentitiesOnly yes
    HostKeyAlias server
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


def missing() -> list[str]:
    """The programs that are not installed: Debian's packages openssh-server and openssh-client have them."""
    return [name for name in PROGRAMS if _program(name) is None]


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"]))


class Server(NamedTuple):
    """A server that runs, and a folder for PATH: its `ssh` knows the names of the server."""

    pid: int
    programs: Path

    def processes(self, word: str) -> list[psutil.Process]:
        """What runs in its sessions with this word in the command."""
        return commands(psutil.Process(self.pid), word)


def commands(parent: psutil.Process, word: str) -> list[psutil.Process]:
    """The descendants of a process with this word in the command."""
    found = []
    for process in parent.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            found += [process] if word in process.cmdline() else []
    return found


@contextmanager
def sshd(folder: Path, hosts: Sequence[str], variables: dict[str, str]) -> Iterator[Server]:
    """Run a server that is reached by each name of `hosts`. `variables` are set in all sessions, beside those of a login."""
    if os.geteuid() == 0:
        SEPARATION.mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "known_hosts").write_text(f"server {(folder / 'host.pub').read_text()}")
    [port] = free_ports(1)
    settings = SERVER.format(folder=folder, port=port)
    if variables:
        settings += " ".join(["SetEnv", *(f'"{name}={value}"' for name, value in variables.items())]) + "\n"
    (folder / "sshd_config").write_text(settings)
    (folder / "ssh_config").write_text(
        CLIENT.format(folder=folder, port=port, hosts=" ".join(hosts), user=_user())
    )
    command = [_program("sshd"), "-D", "-e", "-f", str(folder / "sshd_config")]
    with running(command, folder / "sshd.log", os.environ) as server:
        wait_for(
            lambda: _answers(port), [server], DEADLINE, lambda: f"no answer of sshd. {server.last_words()}"
        )
        yield Server(server.running.pid, _client(folder))


def _client(folder: Path) -> Path:
    """A folder of a program `ssh` that reads the configuration of this server, not the user's."""
    program = folder / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {_program("ssh")} -F {folder}/ssh_config "$@"\n')
    program.chmod(0o755)
    return program.parent


def _answers(port: int) -> bool | None:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
            return connection.recv(4) == b"SSH-" or None
    except OSError:
        return None


def _user() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
