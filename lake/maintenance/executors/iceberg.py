"""Runs services of Iceberg's tables by spark-submit, in a session of Iceberg's own: its classes clash with others'."""

import threading
from collections.abc import Sequence
from pathlib import Path

from lake.maintenance.decisions.decisions import HOUR, ORPHANS
from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.iceberg import UUID
from lake.maintenance.decisions.policy import Policy
from lake.maintenance.executors.spark_submit import SparkSubmit, SubmissionFailed
from lake.protocol.lake import ServiceJob

_PROGRAM = Path(__file__).with_name("programs") / "run_iceberg.py"
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_LOST = ("CommitFailedException", "ValidationException")


class WritersWon(Exception):
    """Iceberg refused the commit, since a writer had changed the same files; the message has the log."""


class IcebergExecutor:
    """One process for each attempt at a job of an Iceberg table."""

    def __init__(
        self, uri: str, jars: str, options: Sequence[str] = (), *, command: Sequence[str] | None = None
    ) -> None:
        """`jars`: Iceberg's runtime for the Spark that spark-submit starts; several with commas.

        Raises UserError if there is no spark-submit.
        """
        self._uri = uri
        own = ["--jars", jars, "--conf", f"spark.sql.extensions={_EXTENSIONS}"]
        self._submit = SparkSubmit([*options, *own], command=command)

    def run(self, job: ServiceJob, facts: Facts, policy: Policy, stop: threading.Event) -> str:
        """Does to a table what a job says, to its end. Returns a log. Raises Stopped, SubmissionFailed, WritersWon."""
        cleaning = policy.cleaning
        hours = policy.orphans.hours if job.action == ORPHANS else cleaning.hours or 0
        database, _, table = facts.table.partition(".")
        arguments = {
            "uri": self._uri,
            "database": database,
            "table": table,
            "action": job.action or "",
            "target-file-bytes": policy.clustering.target_file_bytes,
            "older-than": facts.now - hours * HOUR,
            "retain-last": cleaning.commits or 1,
            "location": facts.location,
        }
        if uuid := facts.parameters.get(UUID):
            arguments["uuid"] = uuid
        # Ids of jobs are unique within a metastore; the time tells those of several on a host apart.
        prefix = f"tms-job{job.id}.{job.enqueuedAt}-"
        words = [word for name, value in arguments.items() for word in (f"--{name}", str(value))]
        try:
            return self._submit.run(_PROGRAM, words, f"{prefix}{job.attempts}", prefix, stop)
        except SubmissionFailed as failure:
            if any(f"org.apache.iceberg.exceptions.{name}" in str(failure) for name in _LOST):
                raise WritersWon(str(failure)) from None
            raise
