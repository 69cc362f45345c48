"""Plays a script of calls on Hive's server and on ours, and compares."""

import contextlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AbortTxnsRequest, UnlockRequest
from tests.parity import known, normal
from tests.parity.calls import (
    NAMES,
    PUT_FILE,
    REPEATED,
    SIDE,
    WAREHOUSE,
    Call,
    Expression,
    Lock,
    Script,
    Txn,
    as_python,
    transformed,
)
from tests.parity.known import RETURNED, UNDECLARED
from tests.support.expect import directories_below, files_below
from tests.support.expressions import serialised
from tests.support.target import Target

UNKNOWN_ID = 987_654_321
SAME_MESSAGE = {"AlreadyExistsException"}
"""Exceptions whose messages clients look at."""

ID_FIELDS = {
    "txnid": Txn,
    "txn_high_water_mark": Txn,
    "min_open_txn": Txn,
    "txn_ids": Txn,
    "open_txns": Txn,
    "txnId": Txn,
    "lockid": Lock,
    "blockedByExtId": Lock,
    "aborted": Txn,
    "nosuch": Txn,
}


@dataclass(frozen=True)
class Answer:
    """What one server did: its kind is `returned` or the exception's class, its value or its message."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Difference:
    """A call that was answered differently, or the state in the end (`call` is then a read or None for the files)."""

    position: int
    call: Call
    hive: Answer
    ours: Answer
    path: str
    values: tuple[Any, Any] | None = None

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes two differences look like one cause."""
        if self.hive.kind != self.ours.kind:
            return (self.call.method, self.hive.kind, self.ours.kind, known.accident(self.hive))
        return (self.call.method, self.hive.kind, self.path)

    def __str__(self) -> str:
        hive, ours = map(abbreviated, self.values or (self.hive, self.ours))
        return f"call {self.position}: {self.call!r}\n  at {self.path}\n  hive: {hive}\n  ours: {ours}"


@dataclass
class Side:
    """One of the two servers, and what a script was given by it."""

    target: Target
    warehouse: Path
    beside: Path
    client: ThriftClient = field(init=False)
    prefix: str = ""
    ids: dict[Txn | Lock, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = self.target.connect()

    def begin(self, prefix: str) -> None:
        self.prefix = prefix
        self.ids = {}
        (self.beside / prefix).mkdir()  # Hive leaves a directory that it made above another when a call fails

    def end(self) -> None:
        """Gives back locks and transactions, which would be in the way of nobody but cost time."""
        for key, number in self.ids.items():
            if isinstance(key, Lock):
                self._quietly("unlock", UnlockRequest(lockid=number))
        if txns := [number for key, number in self.ids.items() if isinstance(key, Txn)]:
            self._quietly("abort_txns", AbortTxnsRequest(txn_ids=txns))

    def _reconnect(self) -> None:
        """Begins anew after an error: some leave a transaction open in Hive's thread, and the next calls in it."""
        self.client.close()
        self.client = self.target.connect()

    def _quietly(self, method: str, *arguments: Any) -> None:
        with contextlib.suppress(TException):
            self.client.call(method, *arguments)

    def play(self, call: Call) -> Answer:
        arguments = [transformed(argument, self._resolved) for argument in call.arguments]
        if call.method == PUT_FILE:
            return self._put_file(arguments[0])
        try:
            value = self.client.call(call.method, *arguments)
        except TApplicationException as error:
            self._reconnect()
            return Answer(UNDECLARED, self._readable(error.message))
        except TException as error:
            self._reconnect()
            return Answer(type(error).__name__, self._readable(getattr(error, "message", None)))
        self._remember(call.method, value)
        plain = normal.of_this_script(call.method, normal.plain(value), self.prefix)
        return Answer(RETURNED, normal.ordered(call.method, self._named(plain)))

    def files(self) -> Answer:
        """What lies below the warehouse, and beside it, of this play."""
        found = {}
        for where, base in ((WAREHOUSE, self.warehouse), (SIDE, self.beside)):
            for top in sorted(base.glob(f"{self.prefix}*")):
                name = f"{where}/{self._readable(top.name)}"
                found[name] = [*(d + "/" for d in directories_below(top)), *files_below(top)]
        return Answer(RETURNED, found)

    def _put_file(self, path: str) -> Answer:
        file = self.warehouse / path
        if file.parent.is_dir() and self.prefix in path and ".." not in path:
            file.write_text("data\n")
            return Answer(RETURNED, True)
        return Answer(RETURNED, False)

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, str):
            text = REPEATED.sub(lambda match: match[1] * int(match[2]), value.replace(NAMES, self.prefix))
            return text.replace(WAREHOUSE, str(self.warehouse)).replace(SIDE, str(self.beside / self.prefix))
        if isinstance(value, Txn | Lock):
            return self.ids.get(value, UNKNOWN_ID + value.number)
        if isinstance(value, Expression):
            return serialised(value.text)
        return value

    def _readable(self, value: Any) -> Any:
        if isinstance(value, str):
            text = value.replace(str(self.beside / self.prefix), SIDE).replace(str(self.warehouse), WAREHOUSE)
            return text.replace(self.prefix, NAMES)
        return value

    def _named(self, plain: Any, name: str = "") -> Any:
        """The answer with the texts of the script in place of this play's, and ids as the script writes them."""
        if isinstance(plain, dict) and name == "open_txns":  # also those of other scripts
            mine = {number: key for key, number in self.ids.items() if isinstance(key, Txn)}
            return plain | {"id": str(mine[plain["id"]])} if plain["id"] in mine else None
        if isinstance(plain, dict):
            return {self._readable(key): self._named(value, key) for key, value in plain.items()}
        if isinstance(plain, list):
            named = [self._named(item, name) for item in plain]
            return [item for item in named if item is not None]
        if name in ID_FIELDS and isinstance(plain, int):
            kind = ID_FIELDS[name]
            return next((str(k) for k, number in self.ids.items() if isinstance(k, kind) and number == plain), None)
        return self._readable(plain)

    def _remember(self, method: str, value: Any) -> None:
        if method == "open_txns":
            for number in value.txn_ids:
                self.ids[Txn(sum(isinstance(key, Txn) for key in self.ids))] = number
        elif method == "lock":
            self.ids[Lock(sum(isinstance(key, Lock) for key in self.ids))] = value.lockid


class Pair:
    """Both servers."""

    def __init__(self, hive: Target, ours: Target, directory: Path) -> None:
        self._sides = []
        for target in (hive, ours):
            beside = directory / target.name
            beside.mkdir(parents=True)
            self._sides.append(Side(target, target.warehouse(), beside))
        self._pool = ThreadPoolExecutor(2)
        self._numbers = itertools.count(1)
        self.calls = 0
        self.scripts = 0

    def close(self) -> None:
        for side in self._sides:
            side.client.close()
        self._pool.shutdown()

    def differences(self, script: Script) -> list[Difference]:
        """Plays a script and then reads all that it can have made; what differed, in order, up to the first that
        no rule explains."""
        prefix = f"n{next(self._numbers)}_"
        self.scripts += 1
        for side in self._sides:
            side.begin(prefix)
        try:
            return self._compare(script)
        finally:
            for side in self._sides:
                side.end()

    def _compare(self, script: Script) -> list[Difference]:
        earlier: list[tuple[Call, Answer]] = []
        for position, call in enumerate(script):
            hive, ours = self._both(call)
            found = compared(position, call, hive, ours)
            rule = None if found is None else known.rule_for(earlier, call, hive, ours)
            earlier.append((call, hive))
            if found is None:
                continue
            if rule is None:
                return [found]
            if rule.parts:  # from here on the two are not in the same state
                return []
        return self._state(earlier)

    def _both(self, call: Call) -> tuple[Answer, Answer]:
        self.calls += 1
        hive, ours = self._pool.map(lambda side: side.play(call), self._sides)
        return hive, ours

    def _state(self, earlier: list[tuple[Call, Answer]]) -> list[Difference]:
        """What differs in the files, or in what can be read of the script's databases; the first difference."""
        hive, ours = self._pool.map(Side.files, self._sides)
        found = compared(len(earlier), Call("files"), hive, ours)
        if found is not None and known.rule_for(earlier, found.call, hive, ours) is None:
            return [found]
        reads = [Call("get_databases", f"{NAMES}*")]
        while reads:
            call = reads.pop(0)
            hive, ours = self._both(call)
            found = compared(len(earlier), call, hive, ours)
            if found is not None and known.rule_for(earlier, call, hive, ours) is None:
                return [found]
            if hive.kind == RETURNED and call.method == "get_databases":
                reads += [read for database in hive.value for read in reads_of_database(database)]
            elif hive.kind == RETURNED and call.method == "get_all_tables":
                reads += [read for table in hive.value for read in reads_of_table(*call.arguments, table)]
        return []


def reads_of_database(name: str) -> list[Call]:
    return [Call("get_database", name), Call("get_all_tables", name), Call("get_functions", name, "*")]


def reads_of_table(database: str, name: str) -> list[Call]:
    return [Call("get_table", database, name), Call("get_partitions", database, name, -1)]


def compared(position: int, call: Call, hive: Answer, ours: Answer) -> Difference | None:
    """The difference between two answers, None if they are the same to a client."""
    if hive.kind != ours.kind:
        return Difference(position, call, hive, ours, "outcome")
    if hive.kind == RETURNED:
        found = first_difference(hive.value, ours.value)
        return None if found is None else Difference(position, call, hive, ours, found[0], found[1:])
    if hive.kind in SAME_MESSAGE and normal.message(hive.value) != normal.message(ours.value):
        return Difference(position, call, hive, ours, "message")
    return None


def first_difference(hive: Any, ours: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Where two plain values differ first, as a path without positions, and how; None if nowhere."""
    if isinstance(hive, dict) and isinstance(ours, dict):
        for key in sorted(hive.keys() | ours.keys()):
            found = first_difference(hive.get(key), ours.get(key), f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(hive, list) and isinstance(ours, list):
        for mine, theirs in zip(hive, ours, strict=False):
            if (found := first_difference(mine, theirs, f"{path}[]")) is not None:
                return (f"{path}[]:length", hive, ours) if len(hive) != len(ours) else found
        return None if len(hive) == len(ours) else (f"{path}[]:length", hive, ours)
    return None if hive == ours else (path or "value", hive, ours)


def abbreviated(value: Any) -> str:
    """A value's text, no longer than a reader reads."""
    text = f"{value.kind} {value.value!r}" if isinstance(value, Answer) else repr(value)
    return text if len(text) < 700 else text[:700] + "…"


def explain(script: Script, differences: list[Difference]) -> str:
    """A failure's text: the script as Python, and what differed."""
    return "\n".join(["both servers should answer alike:", as_python(script), *map(str, differences)])
