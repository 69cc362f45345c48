"""A service whose plans run in processes of their own, without Spark: a stand-in for spark-submit runs them in Arrow.

python -m tests.lake.maintenance.submitted_service URI LEASE_SECONDS DIRECTORY
python -m tests.lake.maintenance.submitted_service submit DIRECTORY LEASE_SECONDS --name TAG … --tag TAG

The second form is the stand-in. While it rewrites a plan's files it holds a lock that the kernel lets go at its death;
who can't get the lock notes that the plan is run twice at once.
"""

import fcntl
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from lake.client.lake_types import DataFile
from lake.maintenance.executors.spark_submit import SparkSubmitExecutor
from lake.maintenance.service import Options, Service
from lake.tables.compaction import Work, compacted, run_compaction
from lake.tables.lake import LakeClient

TWICE = "twice"
"""The file that says which plans were run twice at once."""


def serve(uri: str, lease_seconds: int, directory: str) -> None:
    """Runs a service until SIGTERM."""
    program = [
        sys.executable,
        "-m",
        "tests.lake.maintenance.submitted_service",
        "submit",
        directory,
        str(lease_seconds),
    ]
    options = Options(slots=2, lease_seconds=lease_seconds)
    service = Service(uri, SparkSubmitExecutor(uri, command=program), options)
    signal.signal(signal.SIGTERM, lambda *_: service.stop())
    print("serving", flush=True)
    service.serve()


def submit(directory: str, lease_seconds: int, words: Sequence[str]) -> None:
    """Runs the plan that spark-submit's words name."""
    given = {name: words[at + 1] for at, name in enumerate(words[:-1]) if name.startswith("--")}
    instant = given["--instant"]

    def one_by_one(work: Work) -> list[DataFile]:
        with (Path(directory) / f"{given['--table']}-{instant}").open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with (Path(directory) / TWICE).open("a") as twice:
                    twice.write(f"{given['--table']} {instant}\n")
            return [file for each in work.tasks for file in compacted(work.writer, each)]

    with LakeClient(given["--uri"], retry_seconds=60) as lake:
        run_compaction(lake.table(given["--table"]), instant, run_tasks=one_by_one, heartbeat_seconds=lease_seconds / 4)


if __name__ == "__main__":
    if sys.argv[1] == "submit":
        submit(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
