"""A connection that outlives the server it leads to: for calls that may be repeated."""

import itertools
import logging
from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, wait_random_exponential
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.closing import Closing
from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from lake.protocol.struct import ExceptionStruct

logger = logging.getLogger(__name__)

Connect = Callable[[], ThriftClient]
Result = TypeVar("Result")

#: How the server marks an error that isn't caused by the request: its database is away or busy.
_PASSING = "try again"


def connect_to(uris: str, *, timeout: float | None = 60.0, login: Login | None = None) -> Connect:
    """A function that connects to `thrift://host:port`, or to the next of several with commas between them.

    `timeout` and `login` are `ThriftClient`'s. Raises ValueError, when connecting, if a URI is not of that form.
    """
    turns = itertools.cycle(uri.strip() for uri in uris.split(","))
    return lambda: ThriftClient.from_uri(next(turns), timeout=timeout, login=login)


class ReconnectingClient(Closing):
    """Repeats a call, over a new connection if need be, until the server answers it.

    After a lost answer the call is repeated: `call` is for calls that change nothing when they come twice, `change`
    for those that are refused the second time. What counts as no answer: a connection that breaks or isn't accepted,
    and a MetaException that says "try again".
    """

    def __init__(self, connect: Connect, *, retry_seconds: float = 300.0) -> None:
        """`retry_seconds`: how long a call is repeated before its last error is raised. Connects when first used."""
        self._connect = connect
        self._client: ThriftClient | None = None
        self._retrying = Retrying(
            retry=retry_if_exception(_passes),
            stop=stop_after_delay(retry_seconds),
            wait=wait_random_exponential(multiplier=0.2, max=5.0),
            before_sleep=_tell,
            reraise=True,
        )

    def call(self, request: Callable[[ThriftClient], Result]) -> Result:
        """What `request(client)` returns, once the server has answered.

        Raises the server's own exceptions at once, and the last TTransportException, OSError or MetaException after
        `retry_seconds` without an answer.
        """
        result: Result = self._retrying(self._once, request)
        return result

    def change(self, request: Callable[[ThriftClient], object], *, done: type[TException]) -> None:
        """Has something changed by a call that a server answers with `done` if it comes twice.

        Such as `AlreadyExistsException` to create_table, `NoSuchObjectException` to drop_table. Once an answer was lost
        it counts as success: what the call was for is so. Whether this client did it, or somebody else meanwhile, it
        doesn't say. Raises what `call` does.
        """
        lost = False

        def changed(client: ThriftClient) -> None:
            nonlocal lost
            try:
                request(client)
            except done:
                if not lost:
                    raise
            except Exception as error:
                lost = lost or _passes(error)
                raise

        self.call(changed)

    def _once(self, request: Callable[[ThriftClient], Result]) -> Result:
        if self._client is None:
            self._client = self._connect()
        try:
            return request(self._client)
        except (ExceptionStruct, TApplicationException) as answer:
            # The connection is in order, unless the server couldn't read the call to its end.
            if getattr(answer, "type", None) == TApplicationException.PROTOCOL_ERROR:
                self.close()
            raise
        except BaseException:
            # After Ctrl-C, for example, the answer may still come, and would be taken for that of the next call.
            self.close()
            raise

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _passes(error: BaseException) -> bool:
    if isinstance(error, MetaException):
        return _PASSING in (error.message or "")
    return isinstance(error, TTransportException | OSError)


def _tell(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    reason = getattr(error, "message", None) or str(error)
    logger.warning(
        "the metastore does not answer (%s); trying again, for %.0f s so far", reason, state.seconds_since_start or 0
    )
