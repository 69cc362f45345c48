"""Changes the file of a front, so that a database is frozen, or is found in another metastore.

Only four keys of a backend are changed: `rename`, `allow`, `deny` and `read_only`. The rest of the text stays, comments
too. A new file is written beside the old one and takes its name, so the front finds one of them, and whole.
"""

import copy
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import ValidationError

from lake.protocol.errors import UserError
from metastore.federation.configuration import Configuration, FederationError, load
from metastore.federation.mapping import Mapping
from metastore.federation.names import Name
from metastore.migration.objects import DatabaseKey

Values = dict[str, Any]
_KEYS = ("rename", "allow", "deny", "read_only")


class Site(NamedTuple):
    """A database of a backend, by its name there."""

    backend: str
    key: DatabaseKey

    @property
    def name(self) -> Name:
        return Name(self.key.catalog, self.key.database)


class FrontFile:
    """The file of a front."""

    def __init__(self, path: Path) -> None:
        """Raises FederationError for a file that a front can't use."""
        self.path = path.resolve()  # a link stays one
        self.mapping()

    def mapping(self) -> Mapping:
        return Mapping.load(self.path)

    def backend_at(self, uri: str) -> str:
        """The backend with a server at an address. Raises UserError if it isn't one backend."""
        wanted = _address(uri)
        configuration = load(self.path)
        found = [name for name, each in configuration.backends.items() if wanted in map(_address, each.uris)]
        if len(found) != 1:
            raise UserError(
                f"{self.path}: {len(found)} backends have a server at {wanted}: name the backend by --old-backend or"
                " --new-backend"
            )
        return found[0]

    def common_name(self, key: DatabaseKey, old: Site, new: Site) -> str:
        """How the front calls a database that lives in one of two places. Raises UserError if it calls it nothing.

        Both may have a name, as where the new metastore has a prefix: then it is that of the old one.
        """
        mapping = self.mapping()
        for place in (old, new):
            found = mapping.name(place.backend, place.name)
            if found is not None:
                return DatabaseKey(found.catalog, found.database).on_the_wire
        raise UserError(
            f"{self.path}: database {key} has a name in the front neither at {old.backend} nor at {new.backend}"
        )

    def leads_to(self, front: str, place: Site) -> bool:
        """Whether a name of the front means this database."""
        found = self.mapping().place(_front_name(front))
        return found is not None and (found.backend, found.name) == (place.backend, place.name)

    def is_frozen(self, place: Site) -> bool:
        """Whether the front lets nobody change a database."""
        return not self.mapping().backends[place.backend].writable(place.key.database)

    def freeze(self, place: Site) -> None:
        """Nobody changes a database through the front any more.

        Raises UserError for a file that can't be changed so.
        """
        if not self.is_frozen(place):

            def changed(values: Values) -> None:
                own = values["backends"][place.backend]
                own["read_only"] = [*_listed(own.get("read_only")), place.key.database]

            self._change(changed)

    def thaw(self, place: Site) -> None:
        """Ends what `freeze` has begun. Raises UserError if the database is read-only by another pattern."""

        def changed(values: Values) -> None:
            _without(values["backends"][place.backend], "read_only", place.key.database)

        self._change(changed)

    def lead(self, front: str, old: Site, new: Site, *, only_tried: bool = False) -> None:
        """From here on a name of the front means the database `new`, and no more `old`, which isn't shown any more.

        `only_tried`: the file stays. Raises UserError where the file can't say so by these keys.
        """
        if (beside := self.mapping().beside.get(old.backend)) is not None:
            raise UserError(
                f"{self.path}: backend {beside} is beside {old.backend}, and nobody would find its tables of {old.key}"
                " any more: give it names of its own first"
            )
        reasons = []
        for named in (False, True):
            try:
                change = partial(_lead, front=front, old=old, new=new, named=named)
                self._change(change, front, new, only_tried=only_tried)
            except (FederationError, UserError) as error:
                reasons.append(str(error))
            else:
                return
        raise UserError(f"{self.path}: {front} can't be led to {new.key} of backend {new.backend}: {reasons[-1]}")

    def _change(
        self,
        change: Callable[[Values], None],
        front: str | None = None,
        to: Site | None = None,
        *,
        only_tried: bool = False,
    ) -> None:
        while True:
            before = self.path.read_text(encoding="utf-8")
            after = self._changed(before, change, front, to)
            if only_tried or after == before:
                return
            # Somebody may have changed it meanwhile, as for another database: that mustn't be lost.
            if self.path.read_text(encoding="utf-8") == before:
                self._write(after)
                return

    def _changed(self, text: str, change: Callable[[Values], None], front: str | None, to: Site | None) -> str:
        before = tomllib.loads(text)
        values = copy.deepcopy(before)
        change(values)
        if values == before:
            return text
        try:
            mapping = Mapping(Configuration(**values))
        except ValidationError as error:
            raise UserError(f"{self.path}: {error.errors()[0]['msg']}") from None
        if front is not None and to is not None:
            found = mapping.place(_front_name(front))
            if found is None or (found.backend, found.name) != (to.backend, to.name):
                raise UserError(mapping.explain(_front_name(front)))
            if not mapping.backends[to.backend].writable(to.key.database):
                raise UserError(
                    f"backends.{to.backend}.read_only makes {to.key} read-only: it has to be a list without it"
                )
        for backend, own in values["backends"].items():
            for key in _KEYS:
                if own.get(key) != before["backends"][backend].get(key):
                    text = _with_key(text, backend, key, own.get(key))
        try:
            same = tomllib.loads(text) == values
        except tomllib.TOMLDecodeError:
            same = False
        if not same:
            raise UserError(f"{self.path} is written in a way that can't be changed: write each key of a backend below"
                            " its [backends.…], without tables of their own")  # fmt: skip
        return text

    def _write(self, text: str) -> None:
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            now = self.path.stat()
            with new.open("w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), now.st_mode & 0o7777)
                if (now.st_uid, now.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), now.st_uid, now.st_gid)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
        except OSError as error:
            with suppress(OSError):  # on a disk that is read-only, also where it isn't there
                new.unlink()
            raise UserError(f"{self.path} can't be replaced: {error.strerror}") from None


def _lead(values: Values, *, front: str, old: Site, new: Site, named: bool) -> None:
    one, other = values["backends"][old.backend], values["backends"][new.backend]
    left = {here: there for here, there in one.get("rename", {}).items() if there != old.key.database}
    _set(one, "rename", left)
    if old.key.database in _listed(one.get("allow")) and len(_listed(one.get("allow"))) > 1:
        _without(one, "allow", old.key.database)
    elif old.key.database not in _listed(one.get("deny")):  # or this is done again
        one["deny"] = [*_listed(one.get("deny")), old.key.database]
    _without(one, "read_only", old.key.database)
    _without(other, "deny", new.key.database)
    allowed = other.get("allow")
    if allowed is not None and not _admitted(new.key.database, _listed(allowed)):
        other["allow"] = [*_listed(allowed), new.key.database]
    _without(other, "read_only", new.key.database)
    if named:
        _set(other, "rename", {**other.get("rename", {}), _front_name(front).database: new.key.database})


def _admitted(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, each.lower()) for each in patterns)


def _listed(value: Any) -> list[str]:
    if value is None or isinstance(value, bool):
        return []
    return [value] if isinstance(value, str) else list(value)


def _without(own: Values, key: str, name: str) -> None:
    """A list without a name; without the key, if nothing is left."""
    found = own.get(key)
    if isinstance(found, bool) or name not in _listed(found):
        return
    _set(own, key, [each for each in _listed(found) if each != name])


def _set(own: Values, key: str, value: Any) -> None:
    if value or key == "allow":
        own[key] = value
    else:
        own.pop(key, None)


def _front_name(front: str) -> Name:
    if front.startswith("@"):
        catalog, _, database = front[1:].partition("#")
        return Name(catalog, database)
    return Name("hive", front)


def _address(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.hostname}:{parts.port or 9083}"


# --- text -----------------------------------------------------------------------------------------------------------


def _with_key(text: str, backend: str, key: str, value: Any) -> str:
    """A text of TOML in which a key of a backend has another value; None: it hasn't it any more."""
    lines = text.splitlines(keepends=True)
    header = re.compile(rf"\s*\[\s*backends\s*\.\s*[\"']?{re.escape(backend)}[\"']?\s*\]\s*(#.*)?$")
    own = next((place for place, line in enumerate(lines) if header.match(line.rstrip("\r\n"))), None)
    if own is None:
        return text
    new = [] if value is None else [f"{key} = {_toml(value)}\n"]
    at = own + 1
    while at < len(lines) and not lines[at].lstrip().startswith("["):
        end = _end_of_statement(lines, at)
        if re.match(rf"\s*[\"']?{key}[\"']?\s*=", lines[at]):
            return "".join([*lines[:at], *new, *lines[end:]])
        at = end
    if not lines[own].endswith("\n"):
        lines[own] += "\n"
    return "".join([*lines[: own + 1], *new, *lines[own + 1 :]])


def _end_of_statement(lines: list[str], begin: int) -> int:
    """Behind the last line of what begins in a line: lists and texts may have several."""
    for end in range(begin + 1, len(lines) + 1):
        try:
            tomllib.loads("".join(lines[begin:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return begin + 1


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_quoted(key)} = {_quoted(each)}" for key, each in value.items()) + " }"
    if isinstance(value, str):
        return _quoted(value)
    return "[" + ", ".join(map(_quoted, value)) + "]"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
