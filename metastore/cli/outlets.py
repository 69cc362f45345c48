"""`metastore outlets`: delivering events on a host of their own."""

import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType

import click

from lake.cli.group import Group
from lake.protocol.errors import UserError
from metastore.cli.options import load_settings, settings_options
from metastore.settings import Settings

_RESTART_SECONDS = 1.0
_SETTINGS = (
    "data_dir",
    "database_url",
    "redis_url",
    "event_streams",
    "event_stream_max_bytes",
    "kafka_servers",
    "kafka_topic",
    "kafka_options",
    "event_webhooks",
    "event_webhook_secret",
    "event_webhook_max_bytes",
    "event_source",
    "event_listeners",
    "event_attempts",
    "event_group_days",
    "log_level",
    "log_format",
)


@click.group(cls=Group)
def outlets() -> None:
    """Deliver events to streams, webhooks and listeners."""


@outlets.command("run")
@click.option("--outlet", "chosen", multiple=True, metavar="NAME", help="Only these, for example webhook:audit.")
@settings_options(*_SETTINGS)
def run_outlets(chosen: tuple[str, ...], config: Path | None, **flags: object) -> None:
    """Deliver events without a server, until SIGTERM or Ctrl-C.

    `metastore serve` delivers by itself; this command is for outlets on hosts of their own. Each outlet has a process.
    On one database one process at a time delivers to an outlet, and the others stand by.

    \b
    Examples:
      METASTORE_DATABASE_URL=$URL metastore outlets run --redis-url redis://streams:6379
      metastore outlets run --config metastore.toml --outlet webhook:audit
    """
    settings, _ = load_settings(config, **flags)

    from metastore.cli.database import check_schema, database, upgrade_schema
    from metastore.server import outlets as served

    names = list(chosen) or served.names(settings)
    if not names:
        raise UserError("the settings name no outlet: set redis_url, kafka_servers, event_webhooks or event_listeners")
    for name in names:
        served.outlet(name, settings).close()  # says what is wrong with it before anything runs
    with database(settings, create=False) as url:
        (upgrade_schema if settings.schema_upgrade else check_schema)(url)
        sys.exit(_Dispatcher(settings.model_copy(update={"database_url": url}), names).run())


class _Dispatcher:
    """A process for each outlet; one that ends is replaced."""

    def __init__(self, settings: Settings, names: list[str]) -> None:
        self._settings = settings
        self._names = names
        self._stopped = False
        # Its write end is open in this process alone: the kernel closes it however this process ends.
        self._alive, self._held = multiprocessing.Pipe(duplex=False)

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        running = {name: self._start(name) for name in self._names}
        print(f"metastore delivers to {', '.join(self._names)}", flush=True)
        while not self._stopped:
            wait([process.sentinel for process in running.values()], timeout=_RESTART_SECONDS)
            for name, process in running.items():
                if not process.is_alive() and not self._stopped:
                    time.sleep(_RESTART_SECONDS)
                    running[name] = self._start(name)
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.join()
        return 0

    def _start(self, name: str) -> SpawnProcess:
        process = multiprocessing.get_context("spawn").Process(
            target=_deliver, args=(name, self._settings, self._alive), name=name
        )
        process.start()
        return process

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True


def _deliver(name: str, settings: Settings, alive: "multiprocessing.connection.Connection[bytes, bytes]") -> None:
    """In the outlet's process."""
    from lake.protocol import logging
    from metastore.server import outlets as served

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    logging.configure(settings.log_level, settings.log_format)
    logging.name_process(f"outlet-{name}")
    try:
        sys.exit(served.run(name, settings, parent_alive=alive.fileno(), on_ready=lambda: None))
    except Exception as error:
        print(f"metastore: {name}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
