"""Threads for the work that strangers cause before they have logged in, shared fairly between their addresses."""

import contextlib
import ipaddress
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import structlog

from metastore.server.credentials.failures import FailedLogins
from metastore.server.credentials.identity import TooMany
from metastore.server.monitoring import metrics

Kind = Literal["password", "proof", "handshake"]
Value = TypeVar("Value")

LONGEST_WAIT_SECONDS = 5.0
"""How long a job waits for a thread. After that it is refused."""

MOST_WAITING = 1_024
"""Passwords of all addresses that wait at the same time."""

MOST_OF_ADDRESS = 128
"""Passwords of one address that wait at the same time."""

MOST_OF_FAILING_ADDRESS = 4
"""The same for an address whose last logins failed. Its jobs start a second apart."""

_HALF_CLOSED_SECONDS = 0.5
_IPV6_NETWORK_BITS = 64

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Work for a client. `user`: the user's name, if the client says one: users of one address take turns, too.

    `run` works in a thread. `refuse` is called instead if there is no place for the job, from any thread; it must not
    wait. `gone` says whether the connection has ended, `half_closed` whether the client sends no more.
    """

    peer: str
    run: Callable[[], None]
    refuse: Callable[[TooMany], None]
    gone: Callable[[], bool] = lambda: False
    half_closed: Callable[[], bool] = lambda: False
    user: str = ""
    since: float = field(default_factory=time.monotonic)


class FairThreads:
    """A fixed number of threads. Addresses take turns, and no address has more than half of the threads.

    Where failures count, addresses with failed logins wait until their pause is over, and the queue has a bound.
    Otherwise it has none: a connection has one job at most. Thread-safe.
    """

    def __init__(self, kind: Kind, threads: int, failures: FailedLogins | None = None) -> None:
        """`failures`: which addresses have to pause; None: none has to."""
        self._kind = kind
        self._failures = failures
        self._of_one_address = max(threads // 2, 1)
        self._changed = threading.Condition()
        self._waiting: dict[str, dict[str, deque[Job]]] = {}  # by address and user, the next ones first
        self._count = 0
        self._working: Counter[str] = Counter()
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{kind}-{number}", daemon=True).start()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._count

    def submit(self, job: Job) -> None:
        """Queues a job. One job is refused if there are too many: this one or another one of the busiest address."""
        address = shared_address(job.peer)
        with self._changed:
            self._waiting.setdefault(address, {}).setdefault(job.user, deque()).append(job)
            self._count += 1
            refused = None if self._failures is None else self._beyond_the_bound(address, self._failures)
            self._changed.notify()
        if refused is not None:
            self._refuse(refused)

    def call(self, peer: str, user: str, function: Callable[[], Value], half_closed: Callable[[], bool]) -> Value:
        """Waits for the result of a function, which one of the threads calls.

        Raises what the function raises, and TooMany.
        """
        done = threading.Event()
        values: list[Value] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                values.append(function())
            except BaseException as error:
                errors.append(error)
            finally:
                done.set()

        def refuse(refusal: TooMany) -> None:
            errors.append(refusal)
            done.set()

        self.submit(Job(peer, run, refuse, half_closed=half_closed, user=user))
        done.wait()
        if errors:
            raise errors[0]
        return values[0]

    # -- the queue; all of this with the lock -----------------------------------------------------------------

    def _size(self, address: str) -> int:
        return sum(map(len, self._waiting[address].values()))

    def _beyond_the_bound(self, address: str, failures: FailedLogins) -> Job | None:
        """Takes a job out if there are too many, now that `address` has one more."""
        most = MOST_OF_FAILING_ADDRESS if failures.is_failing(address) else MOST_OF_ADDRESS
        if self._size(address) > most:
            return self._take_from_busiest_user(address)
        if self._count > MOST_WAITING:
            return self._take_from_busiest_user(max(self._waiting, key=self._size))
        return None

    def _take_from_busiest_user(self, address: str) -> Job:
        """The newest job of the user of an address who has most of them."""
        users = self._waiting[address]
        user = max(reversed(users), key=lambda each: len(users[each]))
        return self._taken(address, user, -1)

    def _taken(self, address: str, user: str, place: int) -> Job:
        """Takes a job out. The address and the user go to the end of their queues."""
        users = self._waiting.pop(address)
        jobs = users.pop(user)
        job = jobs[place]
        del jobs[place]
        if jobs:
            users[user] = jobs
        if users:
            self._waiting[address] = users
        self._count -= 1
        return job

    def _overdue(self) -> Iterator[Job]:
        """Takes the jobs out that have waited for too long."""
        limit = time.monotonic() - LONGEST_WAIT_SECONDS
        for address, users in list(self._waiting.items()):
            for user, jobs in list(users.items()):
                while jobs and jobs[0].since < limit:
                    yield self._taken(address, user, 0)

    def _next(self) -> tuple[Job | None, float]:
        """The job whose turn it is; if there is none, after how many seconds to look again."""
        soonest = LONGEST_WAIT_SECONDS
        for address, users in self._waiting.items():
            pause = 0.0 if self._failures is None else self._failures.pause(address)
            failing = self._failures is not None and self._failures.is_failing(address)
            if pause > 0:
                soonest = min(soonest, pause)
            elif self._working[address] < (1 if failing else self._of_one_address):
                return self._taken(address, next(iter(users)), 0), 0.0
        return None, soonest

    # -- the threads ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                overdue = list(self._overdue())
                job, seconds = self._next()
                address = None if job is None else shared_address(job.peer)
                if address is not None:
                    self._working[address] += 1
                elif not overdue:
                    self._changed.wait(seconds if self._count else None)
            for each in overdue:
                self._refuse(each)
            if job is not None and address is not None:
                try:
                    self._run(job)
                except BaseException:
                    log.exception("a login's thread failed")
                with self._changed:
                    self._working[address] -= 1
                    if not self._working[address]:
                        del self._working[address]
                    self._changed.notify()
            del job, overdue  # until the next ones come, they would keep connections alive

    def _run(self, job: Job) -> None:
        # A client that sends no more may still wait for the answer: it gets one if there is no crowd.
        crowded = time.monotonic() - job.since > _HALF_CLOSED_SECONDS
        if job.gone() or (crowded and job.half_closed()):
            metrics.login_checked(self._kind, "dropped")
            job.refuse(_too_many())
            return
        metrics.login_checked(self._kind, "checked")
        job.run()

    def _refuse(self, job: Job) -> None:
        metrics.login_checked(self._kind, "refused")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            job.refuse(_too_many())


def shared_address(peer: str) -> str:
    """What clients of one network have in common, of `host:port`: the address, of IPv6 its first 64 bits."""
    host = peer.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _IPV6_NETWORK_BITS), strict=False))


def _too_many() -> TooMany:
    return TooMany("too many logins wait for their check: try again in a few seconds")
