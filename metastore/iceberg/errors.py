"""Errors in the form of Iceberg's REST specification, and which of them stands for what a worker raises.

The status decides what a client does with its files. After 409 it tries again or cleans up, after 400, 403 and 404 it
removes what it wrote. After 500 or 503 it removes nothing: so every outcome that isn't known is one of these.
"""

from collections.abc import Iterable
from typing import Any

from thrift.Thrift import TApplicationException, TException

from lake.protocol.errors import (
    DATABASE_BUSY,
    DATABASE_UNREACHABLE,
    INTERNAL_ERROR,
    NOTHING_DONE,
    OUTCOME_UNKNOWN,
    PERMISSION_DENIED,
)
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)

MODIFIED = "The table has been modified."
"""How a worker refuses an alteration of a table that isn't as it was expected to be."""

Headers = Iterable[tuple[str, str]]

_RETRY_AFTER = [("Retry-After", "1")]


class RestError(Exception):
    """An answer other than 2xx. `type`: the name of Iceberg's exception."""

    def __init__(self, status: int, type: str, message: str, headers: Headers = ()) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.headers = list(headers)

    def body(self) -> dict[str, Any]:
        return {"error": {"message": str(self), "type": self.type, "code": self.status}}


def bad_request(message: str) -> RestError:
    return RestError(400, "BadRequestException", message)


def no_namespace(name: str) -> RestError:
    return RestError(404, "NoSuchNamespaceException", f"Namespace does not exist: {name}")


def no_table(name: str) -> RestError:
    return RestError(404, "NoSuchTableException", f"Table does not exist: {name}")


def no_view(name: str) -> RestError:
    return RestError(404, "NoSuchViewException", f"View does not exist: {name}")


def exists(message: str) -> RestError:
    return RestError(409, "AlreadyExistsException", message)


def conflict(message: str) -> RestError:
    """A commit that wasn't done because something changed meanwhile. Clients read the table again and retry."""
    return RestError(409, "CommitFailedException", message)


def unknown_outcome(message: str) -> RestError:
    """A change that may have been done."""
    return RestError(500, "CommitStateUnknownException", f"It is not known whether the change was made: {message}")


def done_before(message: str) -> RestError:
    """A change that was made when the request came first, and whose answer can't be given any more."""
    return RestError(500, "CommitStateUnknownException", f"The change was made when the request came first: {message}")


def unavailable(message: str) -> RestError:
    """Nothing was done."""
    return RestError(503, "ServiceUnavailableException", message, _RETRY_AFTER)


_LOGINS = {
    401: "NotAuthorizedException",
    403: "ForbiddenException",
    413: "BadRequestException",
    429: "SlowDownException",
}


def of_status(status: int, text: str, headers: Headers) -> RestError:
    """What the HTTP port refuses before the catalog is entered."""
    kind = _LOGINS.get(status, "BadRequestException" if status < 500 else "ServiceUnavailableException")
    return RestError(status, kind, text, headers)


def is_denied(error: BaseException) -> bool:
    """Whether a worker refused because the caller has no right."""
    return _text(error).startswith(PERMISSION_DENIED)


def is_refusal(error: BaseException) -> bool:
    """Whether an exception of a worker says for certain that nothing was done."""
    text = _text(error)
    if isinstance(error, MetaException) and text.startswith((DATABASE_UNREACHABLE, INTERNAL_ERROR)):
        return False
    if OUTCOME_UNKNOWN in text:
        return False
    return isinstance(
        error,
        AlreadyExistsException
        | InvalidInputException
        | InvalidObjectException
        | InvalidOperationException
        | MetaException
        | NoSuchObjectException,
    ) or (isinstance(error, TApplicationException) and text.startswith(PERMISSION_DENIED))


def of_worker(error: Exception, *, changes: bool) -> RestError:
    """The answer for what a call of a worker raised: OSError, TException. `changes`: the call may have changed things.

    Exceptions that mean something particular in their place are handled there.
    """
    text = _text(error)
    if text.startswith(PERMISSION_DENIED):
        return RestError(403, "ForbiddenException", text)
    if not is_refusal(error):
        return unknown_outcome(text) if changes else unavailable(text)
    if isinstance(error, AlreadyExistsException):
        return exists(text)
    if isinstance(error, NoSuchObjectException):
        return RestError(404, "NotFoundException", text)
    if text.startswith(MODIFIED):
        return conflict(text)
    if text.startswith(DATABASE_BUSY) or NOTHING_DONE in text:
        return unavailable(text)
    return bad_request(text)


def _text(error: BaseException) -> str:
    message = getattr(error, "message", None)
    return str(message or error) or type(error).__name__


WORKER_ERRORS = (OSError, TException)
"""What calls of a worker raise."""
