"""Pages of names: a token holds the last name of the page before, so pages stay right while names come and go."""

import base64
import binascii
from collections.abc import Mapping, Sequence

from metastore.iceberg.errors import bad_request

MOST = 10_000
"""Names on a page, whatever a client requests."""


def page(names: Sequence[str], query: Mapping[str, str]) -> tuple[list[str], str | None]:
    """The names of a page, and the token of the next one. Without a token or a size in the query, all names.

    `names`: in order. Raises RestError (400).
    """
    token, size = query.get("pageToken"), query.get("pageSize")
    if token is None and size is None:
        return list(names), None
    limit = MOST if size is None else _size(size)
    after = _name(token) if token else None
    left = [each for each in names if after is None or each > after]
    some = left[:limit]
    more = len(left) > len(some)
    return some, base64.urlsafe_b64encode(some[-1].encode()).decode() if more else None


def _size(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0):
        raise bad_request(f"pageSize must be a positive number, not {text[:40]!r}")
    return min(int(text[:9]), MOST)


def _name(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise bad_request("pageToken is none that this server gave: begin again without one") from None
