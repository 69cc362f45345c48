"""How commands reach a running server."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lake.protocol.errors import UsageError, UserError

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient

Command = TypeVar("Command", bound=Callable[..., Any])

TIMEOUT_SECONDS = 30.0


_LOGIN_OPTIONS = {
    "--user": ("METASTORE_USER", "NAME", "Log in by password, which METASTORE_PASSWORD or a file holds."),
    "--password-file": ("METASTORE_PASSWORD_FILE", "FILE", "File with the password."),
    "--kerberos-principal": (
        "METASTORE_KERBEROS_PRINCIPAL",
        "PRINCIPAL",
        "Log in with the tickets of `kinit`; this is the server's principal, such as hive/_HOST@REALM.",
    ),
    "--acting-as": ("METASTORE_ACTING_AS", "NAME", "Act as another user, as a proxy user may."),
    "--token-file": ("METASTORE_TOKEN_FILE", "FILE", "Log in with the token in this file."),
    "--tls-ca": ("METASTORE_TLS_CA", "FILE", "Encrypt; the server's authorities in PEM, or `system`."),
}


def uri_option(command: Command) -> Command:
    """Give a command `--uri`, the server it talks to, and how it logs in; it gets `uri`.

    The rest is put where every client of the command looks for it: into the environment.
    """
    for flag, (variable, metavar, text) in reversed(_LOGIN_OPTIONS.items()):
        command = click.option(
            flag,
            metavar=metavar,
            expose_value=False,
            callback=_remember(variable),
            help=f"{text} [env: {variable}]",
        )(command)
    return click.option(
        "--uri",
        envvar="METASTORE_URI",
        default="thrift://127.0.0.1:9083",
        metavar="thrift://HOST:PORT",
        show_default=True,
        help="The server. [env: METASTORE_URI]",
    )(command)


def _remember(variable: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def remember(context: click.Context, _option: click.Parameter, value: str | None) -> None:
        if value is None:
            return
        before = os.environ.get(variable)
        os.environ[variable] = value
        context.call_on_close(lambda: _restore(variable, before))

    return remember


def _restore(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


@contextmanager
def connect(uri: str, *, timeout: float = TIMEOUT_SECONDS) -> "Iterator[ThriftClient]":
    """A connection to the server at `uri`, closed at the end of the block. `timeout`: in seconds.

    Raises UsageError for an invalid URI, UserError if no server answers there or a call in the block fails.
    """
    from thrift.Thrift import TException
    from thrift.transport.TTransport import TTransportException

    from lake.protocol.connection.thrift_client import ThriftClient

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
