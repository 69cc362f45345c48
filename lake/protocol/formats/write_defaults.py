"""What a table's properties say for writes that don't say it themselves: `write.event-time`, `write.source`.

The extension for Spark also knows `write.source-column`. Streams name their source themselves.
"""

from collections.abc import Mapping

EVENT_TIME, SOURCE = "write.event-time", "write.source"

_WITHOUT_TIMES = ("delete", "update_columns")
"""Operations whose rows have their key alone, or some columns."""


def event_time_of(properties: Mapping[str, str], given: str | None, operation: str) -> str | None:
    """The column that has the event times of a write's rows; None for none. `given`: what the write says."""
    if given is not None or operation in _WITHOUT_TIMES:
        return given
    return properties.get(EVENT_TIME, "").strip() or None


def source_of(properties: Mapping[str, str], given: str | None, default: str) -> str:
    """As of which source a write's event times come. `given`: what the write says; `default`: the kind of writer."""
    return given or properties.get(SOURCE, "").strip() or default
