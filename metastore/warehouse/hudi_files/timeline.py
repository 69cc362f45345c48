"""Hudi's timelines as files: which instants the names in a `.hoodie` folder tell of, and in which order they happened.

Up to table version 6 (Hudi 0.x) the files lie in the folder itself: `<timestamp>.<action>` for a completed one,
`.requested` or `.inflight` behind that for one that is not. Later they lie in a folder below, and a completed one says
when: `<timestamp>_<completion time>.<action>`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FOLDER = ".hoodie"
PROPERTIES = "hoodie.properties"

VERSION = "hoodie.table.version"
LAST_FLAT_VERSION = 6
"""The last table version whose timeline is in the folder itself."""

_NAME = re.compile(
    r"(?P<timestamp>\d{1,32})(_(?P<completed>\d{1,32}))?\.(?P<action>[a-z]{1,32})(\.(?P<state>requested|inflight))?"
)
_COMPLETES = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
_SAVEPOINT = "savepoint"


@dataclass(slots=True)
class FolderInstant:
    """An instant by its files' names, None for a state that has no file. `action` is the one it began as,
    `completed_as` the one of its last file.
    """

    timestamp: str
    action: str
    requested: str | None = None
    inflight: str | None = None
    completed: str | None = None
    completed_as: str | None = None
    completion_time: str | None = None

    @property
    def is_completed(self) -> bool:
        return self.completed is not None


def instants(names: Iterable[str]) -> list[FolderInstant]:
    """The instants that some files are of, by timestamp; names that are of none are passed over."""
    found: dict[tuple[str, str], FolderInstant] = {}
    done: list[tuple[re.Match[str], str]] = []
    for name in sorted(names):
        parts = _NAME.fullmatch(name)
        if parts is None:
            continue
        action, state = parts["action"], parts["state"]
        if action == "inflight" and state is None:  # of a commit, since before there were other actions
            action, state = "commit", "inflight"
        if state is None:
            done.append((parts, name))
        else:
            each = found.setdefault((parts["timestamp"], action), FolderInstant(parts["timestamp"], action))
            setattr(each, state, name)
    for parts, name in done:
        timestamp, action = parts["timestamp"], parts["action"]
        began = [begun for begun, ends in _COMPLETES.items() if ends == action and (timestamp, begun) in found]
        key = (timestamp, began[0] if began else action)
        each = found.setdefault(key, FolderInstant(*key))
        each.completed, each.completed_as, each.completion_time = name, action, parts["completed"]
    return [found[key] for key in sorted(found)]


@dataclass(frozen=True, slots=True)
class Step:
    """An instant as it was at a moment of the table's history."""

    instant: FolderInstant
    completed: bool


def history(found: Iterable[FolderInstant]) -> list[Step]:
    """What happened, one after the other: instants that began, and those that were completed.

    Without completion times, instants count as completed in the order of their timestamps: that is how Hudi 0.x reads
    them. Beginnings matter of what is not complete yet, and of compactions, whose slices are open from then on.
    """
    steps = []
    for each in found:
        if not each.is_completed or each.action == "compaction":
            steps.append((each.timestamp, 0, Step(each, False)))
        if each.is_completed:
            # A savepoint has its commit's timestamp.
            steps.append((each.completion_time or each.timestamp, 1 + (each.action == _SAVEPOINT), Step(each, True)))
    return [step for _, _, step in sorted(steps, key=lambda step: (step[:2], step[2].instant.timestamp))]


def properties(content: bytes) -> dict[str, str]:
    """The properties in a file of Java's; lines that go on in the next one are not among Hudi's. Never fails."""
    found = {}
    for line in content.decode("utf-8", errors="replace").splitlines():
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            key, _, value = line.partition("=")
            found[key.strip()] = re.sub(r"\\(.)", r"\1", value.strip())
    return found


def timeline_folder(given: Mapping[str, str]) -> str:
    """Where a table's timeline is, relative to the table, by its properties."""
    version = given.get(VERSION, "")
    if version.isdecimal() and int(version) > LAST_FLAT_VERSION:
        return f"{FOLDER}/{given.get('hoodie.timeline.path', 'timeline')}"
    return FOLDER


def archive_folder(given: Mapping[str, str]) -> str:
    """Where Hudi puts what it takes off a table's timeline, relative to the table, by its properties."""
    if timeline_folder(given) == FOLDER:
        return f"{FOLDER}/{given.get('hoodie.archivelog.folder', 'archived')}"
    return f"{timeline_folder(given)}/{given.get('hoodie.timeline.history.path', 'history')}"
