"""What Spark's analyser makes of the queries of tests that compute without Spark.

The answers are recorded, so that such tests need no Java. A query that isn't among them is asked of a session of
Spark's; RECORD=1 keeps its answer. `test_answers.py` compares what is recorded with what Spark says.
"""

import atexit
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lake.layers.errors import BadQuery
from lake.spark.jar import EXTENSION_CLASS, extension_jar
from tests.lake.layers.in_spark import call
from tests.spark.session import SparkSession, require

RECORDED = Path(__file__).with_name("answers.json")
_DATABASE = "the_database"

Answer = dict[str, Any]


class Answers:
    """Spark's answers to requests, by these."""

    def __init__(self) -> None:
        self._known: dict[str, Answer] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        self._session: SparkSession | None = None

    def read(self, request: Mapping[str, Any]) -> Answer:
        """The answer to a request. Raises BadQuery."""
        database: str = request["database"]
        general = json.dumps(request, sort_keys=True).replace(database, _DATABASE)
        key = hashlib.sha256(general.encode()).hexdigest()[:16]
        if key not in self._known:
            answer = self.asked([json.loads(general)])[0]
            self._known[key] = {"request": json.loads(general), "answer": answer}
            if os.environ.get("RECORD"):
                keep(self._known)
        answer = json.loads(json.dumps(self._known[key]["answer"]).replace(_DATABASE, database))
        if "refused" in answer:
            raise BadQuery(answer["refused"])
        return answer

    def same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether two requests have the same rows to Spark."""
        found: bool = self.read({"same": [before, now], "database": now["database"]})["same"]
        return found

    def recorded(self) -> list[tuple[Answer, Answer]]:
        """All requests that are recorded, with their answers."""
        return [(each["request"], each["answer"]) for each in self._known.values()]

    def asked(self, requests: list[Answer]) -> list[Answer]:
        """What Spark answers to requests."""
        if self._session is None:
            self._session = started()
            atexit.register(self._session.close)
        return asked(self._session, requests)


def keep(known: Mapping[str, Answer]) -> None:
    """Records answers, each on a line of its own."""
    lines = [f"{json.dumps(key)}:{json.dumps(known[key], sort_keys=True)}" for key in sorted(known)]
    RECORDED.write_text("{" + ",\n".join(lines) + "}\n")


def asked(session: SparkSession, requests: list[Answer]) -> list[Answer]:
    """What a session answers to requests."""
    found: list[Answer] = call(session, "tests.lake.layers.spark_answers", f"answers(spark, {requests!r})")
    return found


def started() -> SparkSession:
    """A session with the extension, and without a metastore."""
    require("4")
    directory = Path(tempfile.mkdtemp(prefix="answers-"))
    settings = {
        "spark_sql_extensions": EXTENSION_CLASS,
        "spark_jars": str(extension_jar()),
        "spark_sql_catalogImplementation": "in-memory",
    }
    return SparkSession("4", "thrift://127.0.0.1:1", str(directory / "warehouse"), directory, **settings)


ANSWERS = Answers()
