"""What a benchmark of calls stands on: a directory, a Postgres, and the Java client."""

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from bench import java_client
from bench.java_client import Java
from bench.postgres import LoopbackPostgres

_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Stage:
    """`home` and `warehouses` are removed at the end; `classes` are those of `bench/java`, `java` runs with them."""

    home: Path
    warehouses: Path
    """For the servers' directories: in memory where it can be, since servers are compared and not disks."""
    postgres: LoopbackPostgres
    classes: Path
    java: Java


@contextmanager
def opened() -> Iterator[Stage]:
    """Raises UserError where something that it needs is missing."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        home.chmod(0o755)
        memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        warehouses = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=memory)))
        postgres = LoopbackPostgres(home / "postgres")
        stack.callback(postgres.close)
        (home / "classes").mkdir()
        classes = java_client.compiled(home / "classes")
        java = stack.enter_context(java_client.running(classes, home / "client"))
        yield Stage(home, warehouses, postgres, classes, java)
