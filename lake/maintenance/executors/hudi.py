"""Runs services of Hudi's tables by spark-submit, in a session of Hudi's own: its classes clash with others'.

What a step did is judged by Hudi's timeline, which the step's program reads. The metastore imports it afterwards.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.hudi import writer_options
from lake.maintenance.decisions.policy import Policy
from lake.maintenance.executors.programs.run_hudi import BUSY, PLANNED, WRITING
from lake.maintenance.executors.spark_submit import SparkSubmit, SubmissionFailed, running
from lake.protocol.errors import UserError
from lake.protocol.lake import ServiceJob

LOCK_PROVIDER = "hoodie.write.lock.provider"
IMPORT_SECONDS = 600
"""How long an import may take."""

_PROGRAM = Path(__file__).with_name("programs") / "run_hudi.py"
_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
}
_LOST = ("HoodieWriteConflictException", "HoodieLockException")


class WritersWon(Exception):
    """A writer had changed the same or held the lock, or writers left no gap. The message has Hudi's log."""


class RunElsewhere(Exception):
    """Somebody else runs the plan; the message has the log."""


class HudiExecutor:
    """One process for each step of an attempt at a job of a Hudi table."""

    def __init__(
        self,
        uri: str,
        jars: str,
        hudi_options: Mapping[str, str],
        options: Sequence[str] = (),
        *,
        command: Sequence[str] | None = None,
    ) -> None:
        """`jars`: Hudi's bundle for the Spark that spark-submit starts. `hudi_options`: of Hudi's writer, with the lock
        provider that the tables' writers have.

        Raises UserError without a lock provider, or if there is no spark-submit.
        """
        if not hudi_options.get(LOCK_PROVIDER):
            raise UserError(
                "services beside writers lose rows without a common lock: give --hudi-option"
                f" {LOCK_PROVIDER}=CLASS, and what else the writers of these tables have set for it"
            )
        self._uri = uri
        self._options = dict(hudi_options)
        own = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
        self._submit = SparkSubmit([*options, "--jars", jars, *own], command=command)

    def plan(self, job: ServiceJob, facts: Facts, policy: Policy, stop: threading.Event) -> tuple[str | None, str]:
        """The oldest plan that waits, or a new one; None if Hudi has nothing to do. And a log.

        Raises Stopped, SubmissionFailed, WritersWon.
        """
        log = self._step(job, facts, policy, "plan", "", stop)
        lines = [each for each in log.splitlines() if each.startswith(PLANNED)]
        if not lines:
            raise SubmissionFailed(f"the program doesn't say which plan there is:\n{log}")
        instant = lines[-1].removeprefix(PLANNED).strip()
        return None if instant == "-" else instant, log

    def run(self, job: ServiceJob, facts: Facts, policy: Policy, instant: str, stop: threading.Event) -> str:
        """Runs a plan to its end; for a clean, plans it as well. Returns a log.

        Raises Stopped, SubmissionFailed, WritersWon, RunElsewhere.
        """
        return self._step(job, facts, policy, "run", instant, stop)

    def import_timeline(self, facts: Facts) -> str:
        """Has the metastore read what Hudi did to a table. Returns a log. Raises SubmissionFailed."""
        command = [sys.executable, "-m", "metastore", "hudi", "import", "--uri", self._uri, "--table", facts.table]
        if facts.reference.id is not None:
            command += ["--table-id", str(facts.reference.id)]
        done = subprocess.run(
            [*command, "--", facts.location],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=IMPORT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise SubmissionFailed(f"the timeline can't be imported: {done.stdout[-4_000:]}")
        return done.stdout

    def _step(
        self, job: ServiceJob, facts: Facts, policy: Policy, step: str, instant: str, stop: threading.Event
    ) -> str:
        action = job.action or ""
        options = {**self._options, **writer_options(action, policy)}
        arguments = ["--location", facts.location, "--action", action, "--step", step]
        arguments += ["--instant", instant] if instant else []
        arguments += ["--options", json.dumps(options)]
        # A job has a plan from when it found it waiting, and was about to run it.
        arguments += ["--again"] if step == "run" and job.instant else []
        prefix = f"tms-job{job.id}.{job.enqueuedAt}-{step}-"
        try:
            if running(prefix):  # a killed service's: how it ended is not known, so the step is done after it again
                self._submit.run(_PROGRAM, arguments, f"{prefix}{job.attempts}", prefix, stop)
            return self._submit.run(_PROGRAM, arguments, f"{prefix}{job.attempts}", prefix, stop)
        except SubmissionFailed as failure:
            if f"exited with {BUSY}:" in str(failure):
                raise RunElsewhere(str(failure)) from None
            if f"exited with {WRITING}:" in str(failure) or any(name in str(failure) for name in _LOST):
                raise WritersWon(str(failure)) from None
            raise
