"""How commands reach a running server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from metastore.errors import UsageError, UserError

if TYPE_CHECKING:
    from metastore.client.thrift_client import ThriftClient

Command = TypeVar("Command", bound=Callable[..., Any])

TIMEOUT_SECONDS = 30.0


def uri_option(command: Command) -> Command:
    """Give a command `--uri`, the server it talks to; it gets `uri`."""
    return click.option(
        "--uri",
        envvar="METASTORE_URI",
        default="thrift://127.0.0.1:9083",
        metavar="thrift://HOST:PORT",
        show_default=True,
        help="The server. [env: METASTORE_URI]",
    )(command)


@contextmanager
def connect(uri: str, *, timeout: float = TIMEOUT_SECONDS) -> "Iterator[ThriftClient]":
    """A connection to the server at `uri`, closed at the end of the block. `timeout`: in seconds.

    Raises UsageError for an invalid URI, UserError if no server answers there or a call in the block fails.
    """
    from thrift.Thrift import TException
    from thrift.transport.TTransport import TTransportException

    from metastore.client.thrift_client import ThriftClient

    try:
        with ThriftClient.from_uri(uri, timeout=timeout) as client:
            yield client
    except ValueError as error:
        raise UsageError(f"bad --uri: {error}") from None
    except TTransportException as error:
        raise UserError(f"no metastore answers at {uri}{_reason(error)}") from None
    except TException as error:
        raise UserError(f"{uri}: {error}") from None


def _reason(error: Exception) -> str:
    """What the operating system said, if it did."""
    cause = getattr(error, "inner", None) or error.__cause__ or error.__context__
    return f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
