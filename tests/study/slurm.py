"""A real SLURM of one node on this machine, started for a test from Debian's packages and stopped after it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")

CONFIGURATION = """\
ClusterName=farfield
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MailProg=/bin/true
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """Why SLURM cannot be started here; None if it can."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    lacking = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        return f"SLURM is not installed ({', '.join(lacking)}): apt-get install slurmctld slurmd slurm-client munge"
    return None if os.geteuid() == 0 else "SLURM's daemons need root"


@contextmanager
def slurm(home: Path) -> Iterator[dict[str, str]]:
    """Start it in an empty folder; gives the environment in which its commands find it."""
    for folder in ("state", "spool"):
        (home / folder).mkdir()
    key = home / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    home.chmod(0o755)
    ports = _free_ports(2)
    cores = len(os.sched_getaffinity(0))
    text = CONFIGURATION.format(
        host=socket.gethostname(), home=home, controller=ports[0], node=ports[1], cores=cores, memory=_memory()
    )
    (home / "slurm.conf").write_text(text)
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    environment = {**os.environ, "PATH": path, "SLURM_CONF": str(home / "slurm.conf")}
    munge = [f"--{name}={home}/munge.{end}" for name, end in (("key-file", "key"), ("socket", "socket"))]
    munge += [f"--{name}={home}/munge.{end}" for name, end in (("log-file", "log"), ("pid-file", "pid"))]
    daemons = [
        ["munged", "--foreground", "--force", f"--seed-file={home}/munge.seed", *munge],
        ["slurmctld", "-D", "-f", str(home / "slurm.conf")],
        ["slurmd", "-D", "-f", str(home / "slurm.conf")],
    ]
    running = []
    try:
        for daemon in daemons:
            with (home / f"{daemon[0]}.out").open("wb") as said:
                running.append(subprocess.Popen(daemon, env=environment, stdout=said, stderr=said))
            time.sleep(0.5)
        _wait_until_idle(environment, home)
        yield environment
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_idle(environment: dict[str, str], home: Path) -> None:
    for _ in range(120):
        asked = subprocess.run(
            ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True, check=False
        )
        if asked.stdout.split() == ["idle"]:
            return
        time.sleep(0.5)
    logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in home.glob("*.log"))
    raise RuntimeError(f"SLURM did not start within a minute: {asked.stdout} {asked.stderr}\n{logs}")


def _memory() -> int:
    """Megabytes of this machine, as far as SLURM may give them away."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 9 // 10 >> 20


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
