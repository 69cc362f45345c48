"""How commands show instants and lengths of time, which are milliseconds on the wire."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1}


def iso(instant: int | None) -> str | None:
    """An instant in ISO 8601, for programs; None for none. One beyond the year 9999 as its number."""
    try:
        return None if instant is None else (_EPOCH + instant * _MILLISECOND).isoformat(timespec="milliseconds")
    except OverflowError:
        return str(instant)


def shown(instant: int | None) -> str | None:
    """An instant as a person reads it, to the second, in UTC; None for none."""
    text = iso(instant)
    return text and text[:19].replace("T", " ")


def in_words(milliseconds: int) -> str:
    """A length of time by its two largest units: `2 h 5 min`."""
    parts = []
    rest = milliseconds
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        parts.append(f"{count} {unit}" if count else "")
    first = next((index for index, part in enumerate(parts) if part), None)
    # Milliseconds matter where there is nothing else.
    return "0" if first is None else " ".join(filter(None, parts[first : first + (1 if first >= 3 else 2)]))


def compared(instant: int, now: int) -> str:
    """Where an instant lies from now: `12 min behind now`."""
    if abs(now - instant) < 1000:
        return "now"
    return f"{in_words(abs(now - instant))} {'behind' if instant < now else 'ahead of'} now"
