"""The table properties for readiness: when partitions become ready, and what happens with late rows.

Names and meanings are Flink's (FileSystemConnectorOptions) where Flink has such a property.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar
from zoneinfo import ZoneInfo

from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.durations import Interval, parse_duration
from metastore.services.commit_flag.timestamp_extractor import TimestampExtractor
from metastore.services.commit_flag.timestamp_formats import FLINK_DEFAULT, TimestampFormat

COMMIT_DELAY = "sink.partition-commit.delay"
WATERMARK_TIME_ZONE = "sink.partition-commit.watermark-time-zone"
EXTRACTOR_KIND = "partition.time-extractor.kind"
TIMESTAMP_PATTERN = "partition.time-extractor.timestamp-pattern"
TIMESTAMP_FORMATTER = "partition.time-extractor.timestamp-formatter"
COMMIT_POLICY = "sink.partition-commit.policy.kind"
SUCCESS_FILE_NAME = "sink.partition-commit.success-file.name"
INTERVAL = "partition.interval"
LATE_ROWS = "partition.late-rows"
IDLE_TIMEOUT = "partition.watermark.idle-timeout"
MAX_AHEAD = "partition.watermark.max-ahead"
CREATE_EMPTY = "partition.create-empty"

Value = TypeVar("Value")
Default = TypeVar("Default")
Choice = TypeVar("Choice", bound=StrEnum)

_MINUTE = Interval(milliseconds=60_000)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")

_PROPERTIES = (
    *(COMMIT_MODE, COMMIT_DELAY, WATERMARK_TIME_ZONE, EXTRACTOR_KIND, TIMESTAMP_PATTERN, TIMESTAMP_FORMATTER),
    *(COMMIT_POLICY, SUCCESS_FILE_NAME, INTERVAL, LATE_ROWS, IDLE_TIMEOUT, MAX_AHEAD, CREATE_EMPTY),
)


class LatePolicy(StrEnum):
    """Where rows go whose partition is ready already."""

    NEXT = "next"  # they go to the earliest partition that isn't
    REOPEN = "reopen"  # it is uncommitted again
    DROP = "drop"


@dataclass(frozen=True)
class ReadinessProperties:
    """A table's parsed properties for readiness. Durations are in milliseconds."""

    mode: CommitMode
    delay: int
    time_zone: tzinfo
    extractor: TimestampExtractor | None  # None: the values say no time. Never so in event-time mode
    interval: Interval | None  # None: it isn't given, and the pattern doesn't say it. Never so in event-time mode
    success_file: str | None  # the name of the file that goes into a partition before it becomes ready, if one does
    late_rows: LatePolicy
    idle_timeout: int | None  # after which a silent source holds nobody up; None: never
    max_ahead: int  # how far event times may lie beyond the server's clock
    create_empty: bool  # partitions that got no rows until their time passed; only if all keys say the time

    @classmethod
    def of_table(cls, parameters: Mapping[str, str], partition_keys: Sequence[str]) -> "ReadinessProperties":
        """Reads them out of a table's parameters.

        A table of mode `none` may be one whose partitions Flink commits: properties that are no good to us are then as
        if they weren't there. In the mode `event-time`, it is an error already if no partition could ever become ready.

        Raises ValueError, with one line that names the property, its value and what is expected.
        """
        given = tuple((name, parameters[name]) for name in _PROPERTIES if name in parameters)
        return _parse(given, tuple(partition_keys))


@lru_cache(maxsize=1024)
def _parse(given: tuple[tuple[str, str], ...], keys: tuple[str, ...]) -> ReadinessProperties:
    parameters = _Parameters(dict(given))
    mode = parameters.get(COMMIT_MODE, _one_of(CommitMode), CommitMode.NONE)
    parameters.forgiving = mode is CommitMode.NONE
    policies = parameters.get(COMMIT_POLICY, _policies, frozenset({"metastore"}))
    if "metastore" not in policies and mode in (CommitMode.EVENT_TIME, CommitMode.PROCESS_TIME):
        raise parameters.bad(COMMIT_POLICY, "expected metastore too, without which no partition becomes ready")
    success_file = parameters.get(SUCCESS_FILE_NAME, _file_name, "_SUCCESS")
    interval = parameters.get(INTERVAL, Interval.parse, None)
    extractor = None
    if mode is CommitMode.EVENT_TIME:
        extractor = _extractor(parameters, keys)
        interval = _checked_interval(parameters, extractor, interval)
    else:
        # Nothing depends on it: a partition's time is shown where the table says how to read it.
        with suppress(ValueError):
            extractor = _extractor(parameters, keys)
            interval = _checked_interval(parameters, extractor, interval)
    create_empty = parameters.get(CREATE_EMPTY, _boolean, False)
    if create_empty and extractor is not None and mode is CommitMode.EVENT_TIME:
        others = ", ".join(key for position, key in enumerate(keys) if position not in extractor.parts)
        if others:
            raise parameters.bad(CREATE_EMPTY, f"expected false: which values of {others} to create can't be known")
    return ReadinessProperties(
        mode=mode,
        delay=parameters.get(COMMIT_DELAY, parse_duration, 0),
        time_zone=parameters.get(WATERMARK_TIME_ZONE, parse_time_zone, UTC),
        extractor=extractor,
        interval=interval,
        success_file=success_file if "success-file" in policies else None,
        late_rows=parameters.get(LATE_ROWS, _one_of(LatePolicy), LatePolicy.NEXT),
        idle_timeout=parameters.get(IDLE_TIMEOUT, parse_duration, 3_600_000) or None,
        max_ahead=parameters.get(MAX_AHEAD, parse_duration, 86_400_000),
        create_empty=create_empty,
    )


@dataclass
class _Parameters:
    """Parameters of a table; `forgiving` takes a bad value for none."""

    values: dict[str, str]
    forgiving: bool = False

    def get(self, name: str, parse: Callable[[str], Value], default: Default) -> Value | Default:
        if name not in self.values:
            return default
        try:
            return parse(self.values[name])
        except ValueError as error:
            if self.forgiving:
                return default
            raise self.bad(name, str(error)) from None

    def bad(self, name: str, reason: str) -> ValueError:
        return ValueError(f"{name}: bad value {self.values.get(name)!r}: {reason}")


def _extractor(parameters: _Parameters, keys: Sequence[str]) -> TimestampExtractor:
    if not keys:
        raise parameters.bad(COMMIT_MODE, "expected a table with partition keys")
    strict = _Parameters(parameters.values)
    strict.get(EXTRACTOR_KIND, _extractor_kind, None)
    format = strict.get(TIMESTAMP_FORMATTER, TimestampFormat.of_pattern, FLINK_DEFAULT)
    return strict.get(
        TIMESTAMP_PATTERN,
        lambda pattern: TimestampExtractor.of_pattern(pattern, keys, format),
        TimestampExtractor.of_pattern(None, keys, format),
    )


def _checked_interval(parameters: _Parameters, extractor: TimestampExtractor, given: Interval | None) -> Interval:
    """The interval that a table gives, or that of its pattern, if its values can say times at that distance."""
    blamed = next((name for name in (TIMESTAMP_PATTERN, TIMESTAMP_FORMATTER) if name in parameters.values), COMMIT_MODE)
    try:
        step = extractor.example().step
        blamed = INTERVAL if given else blamed
        extractor.example(given or step)
    except ValueError as error:
        raise parameters.bad(blamed, str(error)) from None
    if given is None and not step.is_multiple_of(_MINUTE):
        # `$dt $hr` without `:00:00` reads like this, and no partition's hour does.
        raise parameters.bad(blamed, f"its values say seconds; expected {INTERVAL} too, or fewer of them")
    return given or step


def _one_of(choices: type[Choice]) -> Callable[[str], Choice]:
    def parse(text: str) -> Choice:
        try:
            return choices(text.strip().lower())
        except ValueError:
            raise ValueError(f"expected one of {', '.join(choices)}") from None

    return parse


def _policies(text: str) -> frozenset[str]:
    kinds = frozenset(kind.strip().lower() for kind in text.split(","))
    if "custom" in kinds:
        raise ValueError("custom is a class that only Flink can run; expected metastore, success-file or both")
    if not kinds <= {"metastore", "success-file"}:
        raise ValueError("expected metastore, success-file or both, with a comma between them")
    return kinds


def _file_name(text: str) -> str:
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        raise ValueError("expected the name of a file, without a directory")
    return text


def _extractor_kind(text: str) -> None:
    if text.strip().lower() != "default":
        raise ValueError("expected default; a custom one is a class that only Flink can run")


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.strip().lower() == "true"


def parse_time_zone(text: str) -> tzinfo:
    """A time zone by its name (`Europe/Berlin`) or distance from UTC (`GMT-08:00`, `+8`), as Java's ZoneId has them.

    Raises ValueError if there is none of this name.
    """
    if match := _OFFSET.fullmatch(text.strip()):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset <= timedelta(hours=18) and int(match[3] or 0) < 60:
            return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(text.strip())
    # What it raises depends on why there is no such file.
    except (ValueError, KeyError, OSError):
        raise ValueError("expected a time zone such as UTC, Europe/Berlin or GMT+08:00") from None
