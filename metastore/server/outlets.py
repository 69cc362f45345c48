"""The event outlets that the settings configure. Each runs in a process of its own."""

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta

from eventbus.outlets import listeners
from eventbus.outlets.base import Outlet
from eventbus.outlets.delivery import Delivery
from eventbus.outlets.listeners import ListenerOutlet
from lake.protocol.errors import UserError
from lake.protocol.events.filters import Filter
from metastore.services.maintenance.restore import after_restore
from metastore.settings import Settings

DATABASE_CONNECTIONS = 2
"""Database connections of an outlet's process: one delivers, one waits for notifications of new events."""
_GRACE_SECONDS = 5.0
"""How long a delivery may go on after the process is asked to stop; it can be repeated."""


def names(settings: Settings) -> list[str]:
    """The outlets, by the names of their groups."""
    return [
        *(["redis"] if settings.redis_url else []),
        *(["kafka"] if settings.kafka_servers else []),
        *(f"webhook:{hook.name}" for hook in settings.event_webhooks),
        *(f"listener:{place}" for place in settings.event_listeners),
        *(f"listener:{name}" for name in listeners.installed()),
    ]


def outlet(name: str, settings: Settings) -> Outlet:
    """An outlet by its name. Raises UserError if there is none, or its code can't be loaded."""
    kind, _, rest = name.partition(":")
    if kind == "redis" and settings.redis_url:
        from eventbus.outlets.redis_streams import StreamOutlet

        return StreamOutlet(
            settings.redis_url,
            by_database=settings.event_streams == "database",
            max_bytes=settings.event_stream_max_bytes,
            silence=timedelta(days=2 * settings.event_group_days),
        )
    if kind == "kafka" and settings.kafka_servers:
        return _kafka(settings.kafka_servers, settings)
    if kind == "webhook":
        from eventbus.outlets.webhooks import Webhook, WebhookOutlet

        for hook in settings.event_webhooks:
            if hook.name == rest:
                return WebhookOutlet(
                    Webhook(
                        name=hook.name,
                        url=hook.url,
                        source=settings.event_source,
                        wanted=Filter.parse(hook.tables, hook.types),
                        secret=hook.secret or settings.event_webhook_secret,
                        attempts=hook.attempts or settings.event_attempts,
                        timeout=hook.timeout_seconds,
                        max_bytes=settings.event_webhook_max_bytes,
                    )
                )
    if kind == "listener":
        place = rest if rest in settings.event_listeners else listeners.installed().get(rest)
        if place is not None:
            return ListenerOutlet(name, place, settings.event_attempts)
    known = ", ".join(names(settings)) or "none"
    raise UserError(f"the settings name no outlet {name!r}; there are: {known}")


def _kafka(servers: str, settings: Settings) -> Outlet:
    try:
        from eventbus.outlets.kafka import KafkaOutlet
    except ImportError as error:
        raise UserError(
            f"kafka_servers is set, but there is no client of Kafka ({error}). Run: pip install 'lake-metastore[kafka]'"
        ) from None
    return KafkaOutlet(servers, settings.kafka_topic, settings.event_source, settings.kafka_options)


def run(name: str, settings: Settings, *, parent_alive: int | None, on_ready: Callable[[], None]) -> int:
    """Runs an outlet's process, until SIGTERM or until `parent_alive`, the reading end of a pipe, is at end of file.

    Returns its exit code. Raises UserError.
    """
    assert settings.database_url is not None
    delivery = Delivery(settings.database_url, outlet(name, settings), after_restore)

    def stop(*_: object) -> None:
        delivery.stop()
        _later(_GRACE_SECONDS, abandon)

    def abandon() -> None:
        _later(_GRACE_SECONDS, os._exit, 0)  # should the database not answer
        try:
            delivery.abandon()
        finally:
            os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    if parent_alive is not None:

        def watch(pipe: int) -> None:
            os.read(pipe, 1)
            stop()

        threading.Thread(target=watch, args=(parent_alive,), name="parent", daemon=True).start()
    delivery.begin()
    on_ready()
    delivery.run()
    return 0


def _later(seconds: float, action: Callable[..., object], *arguments: object) -> None:
    timer = threading.Timer(seconds, action, arguments)
    timer.daemon = True
    timer.start()
