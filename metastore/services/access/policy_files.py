"""Cedar policies in files: read, checked, and read anew when a file changes."""

import json
import re
import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from lake.protocol.errors import UsageError
from metastore.services.access.rights import Action, Decision

if TYPE_CHECKING:
    import cedarpy

LOOK_SECONDS = 1.0
"""Seconds between looks whether a file has changed."""

REMIND_SECONDS = 60.0
"""Seconds between log lines about changed files that can't be used."""

TYPES = frozenset(
    {"User", "Group", "Role", "Anonymous", "Nobody", "Action", "Metastore", "Catalog", "Database", "Table", "Partition"}
)
GROUPS_OF_ACTIONS = {
    "reading": (Action.SEE, Action.LIST, Action.SELECT),
    "writing": (
        Action.INSERT,
        Action.UPDATE,
        Action.DELETE,
        Action.WRITE,
        Action.REMOVE_ROWS,
        Action.LOCK,
        Action.COMMIT,
        Action.RECORD,
        Action.READ_UNCOMMITTED,
    ),
}
"""Actions that policies may name together: `action in Action::"reading"`."""

log = structlog.get_logger(__name__)


class BadPolicy(UsageError):
    """Policies that can't be read or don't make sense. The message names the file, and the line if there is one."""


class Statement(NamedTuple):
    """One policy. `principal`: the entity that a caller must be, or be in, for it to hold; None: any may."""

    text: str
    place: str
    principal: tuple[str, str] | None
    looks_at_names: bool = False


MAX_SLICES = 1_000
"""Selections of policies that are kept parsed, one for all callers of the same groups and roles."""

MAX_DECIDED = 50_000
"""Decisions that a selection of policies remembers. Then it begins anew."""

_NAMES = frozenset({"name", "values"})
"""Attributes of objects by which policies can tell all of them apart."""


@dataclass(frozen=True, slots=True)
class Policies:
    """Policies that were read together. `places`: the file and line of each, in their order.

    `words`: all texts in them. What isn't there, no policy looks at. `names`: the last parts of those texts, among them
    the names of all tables that policies name. `looks_at_names`: whether they look at objects' names in another way,
    too. `decided`: what they have decided, by all that they look at.
    """

    parsed: "cedarpy.PolicySet"
    places: tuple[str, ...]
    words: frozenset[str]
    statements: tuple[Statement, ...]
    names: frozenset[str]
    looks_at_names: bool
    slices: "dict[tuple[int, ...], Policies]" = field(default_factory=dict)
    decided: dict[Hashable, Decision] = field(default_factory=dict)

    def remember(self, key: Hashable, decision: Decision) -> None:
        """Keeps a decision in `decided`."""
        if len(self.decided) >= MAX_DECIDED:
            self.decided.clear()
        self.decided[key] = decision

    def about(self, principals: Sequence[Mapping[str, str]]) -> "Policies":
        """Those policies that can hold for a caller, by the entities that it is or is in. The others decide nothing.

        The library looks at each policy for each decision, so that many policies about others cost time.
        """
        own = {(each["type"], each["id"]) for each in principals}
        kept = tuple(i for i, each in enumerate(self.statements) if each.principal is None or each.principal in own)
        if len(kept) == len(self.statements):
            return self
        known = self.slices.get(kept)
        if known is None:
            if len(self.slices) >= MAX_SLICES:
                self.slices.clear()
            known = self.slices[kept] = _together([self.statements[i] for i in kept], self.words)
        return known

    def place(self, id: str) -> str:
        """Where a policy is, by the id that the library gives it."""
        number = id.removeprefix("policy")
        known = number.isdecimal() and int(number) < len(self.places)
        return self.places[int(number)] if known else id


class PolicyFiles:
    """The policies of a file, or of all `*.cedar` in a directory. Thread-safe.

    Changed files that can't be used leave the policies as they were before; the log says so until that is mended.
    """

    def __init__(self, path: Path) -> None:
        """Raises BadPolicy."""
        self._path = path
        self._lock = threading.Lock()
        self._state = _state(path)
        self._policies = read(path)
        self._looked = time.monotonic()
        self._broken: BadPolicy | None = None
        self._reminded = 0.0

    @property
    def broken(self) -> BadPolicy | None:
        """Why the files as they are now can't be used; None if they are in use."""
        return self._broken

    def current(self) -> Policies:
        """The policies, read anew if a file has changed and the last look is older than `LOOK_SECONDS`."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            with self._lock:
                if now - self._looked >= LOOK_SECONDS:
                    self._look()
                    self._looked = time.monotonic()
        return self._policies

    def _look(self) -> None:
        state = _state(self._path)
        if state != self._state:
            self._state = state
            try:
                self._policies = read(self._path)
            except BadPolicy as error:
                self._broken, self._reminded = error, 0.0
            else:
                self._broken = None
                log.warning("the policies were read anew", path=str(self._path), policies=len(self._policies.places))
        if self._broken is not None and time.monotonic() - self._reminded >= REMIND_SECONDS:
            self._reminded = time.monotonic()
            log.error("the changed policies can't be used: those before them stay in force", error=str(self._broken))


def read(path: Path) -> Policies:
    """Reads the policies of a file or directory. Raises BadPolicy."""
    try:
        import cedarpy
    except ImportError:
        raise BadPolicy(
            "authorization = policy needs the package cedarpy: pip install 'lake-metastore[cedar]'"
        ) from None
    statements: list[Statement] = []
    words: set[str] = set()
    for file in _files(path):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadPolicy(f"policies can't be read from {file}: {error}") from None
        for line, statement in _statements(text):
            place = f"{file.name}:{line}"
            try:
                cedarpy.PolicySet.from_str(statement)
                parsed = json.loads(cedarpy.policies_to_json_str(statement))
                words |= _checked(parsed)
            except ValueError as error:
                raise BadPolicy(f"line {line} of {file}: the policy that begins here is wrong: {error}") from None
            statements += [
                Statement(statement, place, _principal(each), _looks_at_names(each))
                for each in parsed["staticPolicies"].values()
            ]
    if not statements:
        raise BadPolicy(f"there is no policy in {path}: with none everything is refused to everybody")
    return _together(statements, frozenset(words))


def _together(statements: Sequence[Statement], words: frozenset[str]) -> Policies:
    import cedarpy

    parsed = cedarpy.PolicySet.from_str("\n".join(each.text for each in statements))
    names = frozenset(each.rpartition(".")[2] for each in words)
    by_name = any(each.looks_at_names for each in statements)
    return Policies(parsed, tuple(each.place for each in statements), words, tuple(statements), names, by_name)


def _principal(policy: Any) -> tuple[str, str] | None:
    """The entity that the head of a policy names as its principal, if there is one."""
    scope = policy["principal"]
    if scope["op"] not in ("==", "in"):
        return None
    entity = scope["entity"]
    return entity["type"], entity["id"]


def _looks_at_names(policy: Any) -> bool:
    """Whether a part of a policy's JSON reads `resource.name` or the like; the principal's own doesn't count."""
    if isinstance(policy, list):
        return any(map(_looks_at_names, policy))
    if not isinstance(policy, dict):
        return False
    if policy.get("attr") in _NAMES and policy.get("left") != {"Var": "principal"}:
        return True
    return any(map(_looks_at_names, policy.values()))


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.cedar")) if path.is_dir() else [path]


def _state(path: Path) -> tuple[tuple[str, int, int, int], ...]:
    """What tells whether a file was changed, added or removed."""
    found = []
    for file in _files(path):
        try:
            stat = file.stat()
        except OSError:
            continue
        found.append((file.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return tuple(found)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|;|[^\s"/;]+|/|"|\s+', re.DOTALL)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The policies of a text, each with the line on which it begins. The library's errors name no line."""
    begin: int | None = None
    for token in _TOKEN.finditer(text):
        if begin is None and not token[0].isspace() and not token[0].startswith("//"):
            begin = token.start()
        if begin is not None and token[0] == ";":
            yield text.count("\n", 0, begin) + 1, text[begin : token.end()]
            begin = None
    if begin is not None:
        yield text.count("\n", 0, begin) + 1, text[begin:]


def _checked(policy: Any) -> set[str]:
    """All texts in a policy's JSON. Raises ValueError for unknown names: a `forbid` with one would forbid nothing."""
    if isinstance(policy, str):
        return {policy}
    if isinstance(policy, list):
        return set().union(*map(_checked, policy))
    if not isinstance(policy, dict):
        return set()
    if policy.get("templates"):
        raise ValueError("it is a template (?principal or ?resource); write a policy")
    if isinstance(entity_type := policy.get("entity_type"), str):
        _check_type(entity_type)
    if policy.keys() == {"type", "id"}:
        _check_type(policy["type"])
        if policy["type"] == "Action" and policy["id"] not in (*Action.__members__, *GROUPS_OF_ACTIONS):
            raise ValueError(f"there is no action {policy['id']!r}; docs/rights.md lists them")
    return {*policy, *set().union(*map(_checked, policy.values()))}


def _check_type(name: str) -> None:
    if name not in TYPES:
        raise ValueError(f"there is no type {name!r}; there are {', '.join(sorted(TYPES))}")
