"""Where the front's names lie: a name means one place, and a place has one name.

A name of the front is looked up among the renamed databases first, then by its catalog, then by the longest prefix of
those in its catalog. What is found that way and what another rule hides is decided here alone, so that lists, lookups
and `explain` agree.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from metastore.federation.configuration import Backend, Configuration, FederationError, load
from metastore.federation.names import DEFAULT_CATALOG, Name, in_words

_KEPT = 10_000  # names that are remembered


@dataclass(frozen=True, slots=True)
class Place:
    """A database of a backend, by its name there, and which rule leads to it."""

    backend: str
    name: Name
    rule: str


class Mapping:
    """The names of a configuration. Immutable."""

    def __init__(self, configuration: Configuration) -> None:
        """Raises FederationError for names that clash or hide one another, with both places."""
        self.configuration = configuration
        self.beside = _beside(configuration.backends)
        """By backend the one beside it, which has tables of the same databases."""
        self.backends = _named_alike(configuration.backends)
        """The backends. Those beside others have the names of these."""
        self._renamed = dict(self._renames())
        self._prefixes = self._by_prefix()
        self._check_renames()
        self._check_allowed()
        self.primary = self._primary()
        self.followed = self._followed()
        """The backends whose notification logs are part of the front's."""
        # Each name of a request is looked up several times.
        self.place = lru_cache(_KEPT)(self._place)
        """Where a name of the front lies; None if no rule leads anywhere."""
        self.name = lru_cache(_KEPT)(self._name)
        """The name of a backend's database in the front; None for one that has none."""

    @classmethod
    def load(cls, path: Path) -> "Mapping":
        """Reads a file. Raises FederationError."""
        try:
            return cls(load(path))
        except FederationError as error:
            text = str(error)
            raise FederationError(text if str(path) in text else f"{path}: {text}") from None

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def catalogs(self) -> tuple[str, ...]:
        """The catalogs that the front has."""
        return tuple(dict.fromkeys((DEFAULT_CATALOG, *(each.catalog for each in self.backends.values()))))

    def at(self, backend: str, name: Name) -> Name | None:
        """What a database of the front is called at a backend; None if it isn't there.

        It is there as well where tables of the database may lie beside.
        """
        place = self.place(name)
        if place is None or backend not in (place.backend, self.beside.get(place.backend)):
            return None
        return Name(self.backends[backend].backend_catalog, place.name.database)

    def owner(self, backend: str) -> str:
        """The backend whose rules give a backend's databases their names."""
        return self.backends[backend].beside or backend

    def _place(self, name: Name) -> Place | None:
        """Where a name of the front lies; None if no rule leads anywhere."""
        place = self._lookup(name)
        return place if place is not None and self.backends[place.backend].admits(place.name.database) else None

    def _name(self, backend: str, there: Name) -> Name | None:
        """The name of a backend's database in the front; None for one that has none."""
        settings = self.backends[backend]
        if there.catalog != settings.backend_catalog or not settings.admits(there.database):
            return None
        front = _renamed_to(settings, there.database)
        name = Name(settings.catalog, settings.prefix + there.database if front is None else front)
        place, owner = self._lookup(name), self.owner(backend)
        return name if place is not None and (place.backend, place.name.database) == (owner, there.database) else None

    def is_identity(self, backend: str) -> bool:
        """Whether the names of a backend are the same in the front, as far as they have one."""
        it = self.backends[backend]
        return not it.prefix and not it.rename and it.catalog == it.backend_catalog == DEFAULT_CATALOG

    def number(self, backend: str) -> int | None:
        """What marks the ids of a backend's transactions and locks: 0 for none; None where they can't be marked."""
        return 0 if backend == self.primary else self.backends[backend].number

    def explain(self, name: Name) -> str:
        """Where a name goes and why, in a sentence or two."""
        place = self._lookup(name)
        if place is None:
            return f"{name}: no backend. {self._offers(name.catalog)}"
        settings = self.backends[place.backend]
        where = f"{place.name} of backend {place.backend} ({', '.join(settings.uris)})"
        if not settings.admits(place.name.database):
            return f"{name}: no backend. {place.rule} leads to {where}, whose allow and deny leave it out"
        access = "read-write" if settings.writable(place.name.database) else "read-only"
        return f"{name}: {where}, {access}, by {place.rule}{self._by_kind(place)}"

    def _by_kind(self, place: Place) -> str:
        """Where some kinds of requests about a place go instead, for `explain`."""
        found = ""
        for backend in (place.backend, self.beside.get(place.backend)):
            if backend is None:
                continue
            settings = self.backends[backend]
            if settings.beside is not None:
                access = "" if settings.writable(place.name.database) else ", read-only"
                found += (
                    f". Its tables that backend {backend} ({', '.join(settings.uris)}) has are there{access}, and"
                    f" so are new ones of kind {' or '.join(settings.kinds)} (backends.{backend}.beside)"
                )
            if settings.read_uris:
                found += (
                    f". Reads at {backend} go to {', '.join(settings.read_uris)}, but those of a connection that has"
                    f" written there in the last {settings.read_after_write_seconds:g} s (read_uris)"
                )
        return found

    def _offers(self, catalog: str) -> str:
        known = [f"prefix {prefix!r} ({backend})" for prefix, backend in self._prefixes.get(catalog, {}).items()]
        if not known and catalog != DEFAULT_CATALOG:
            return f"The catalogs are {', '.join(self.catalogs)}"
        return f"Names of catalog {catalog} begin with {' or '.join(known) or 'nothing'}, or are renamed"

    def _lookup(self, name: Name) -> Place | None:
        backend = self._renamed.get(name)
        if backend is not None:
            there = self.backends[backend].rename[name.database]
            return Place(backend, Name(self.backends[backend].backend_catalog, there), self._rule_of(backend, name))
        for prefix, backend in self._prefixes.get(name.catalog, {}).items():
            settings = self.backends[backend]
            there = name.database.removeprefix(prefix)
            if name.database.startswith(prefix) and (there or not name.database):
                if _renamed_to(settings, there) is not None:
                    return None  # the renamed database has its new name alone
                return Place(backend, Name(settings.backend_catalog, there), self._rule_of(backend, name))
        return None

    def _rule_of(self, backend: str, name: Name) -> str:
        if name in self._renamed:
            return f"backends.{backend}.rename.{name.database}"
        settings = self.backends[backend]
        if settings.prefix:
            return f"backends.{backend}.prefix {settings.prefix!r}"
        if settings.catalog != DEFAULT_CATALOG:
            return f"backends.{backend}.catalog {settings.catalog!r}"
        return f"backends.{backend}, which has no prefix"

    def _with_names(self) -> Iterator[tuple[str, Backend]]:
        """The backends whose rules give names: those beside others have none of their own."""
        return ((backend, settings) for backend, settings in self.backends.items() if settings.beside is None)

    # -- checks ------------------------------------------------------------------------------------------------

    def _renames(self) -> Iterator[tuple[Name, str]]:
        taken: dict[Name, str] = {}
        for backend, settings in self._with_names():
            for front in settings.rename:
                name = Name(settings.catalog, front)
                if name in taken:
                    raise FederationError(
                        f"backends.{taken[name]}.rename.{front} and backends.{backend}.rename.{front} give two"
                        f" databases the name {name}: rename one of them otherwise"
                    )
                taken[name] = backend
                yield name, backend

    def _by_prefix(self) -> dict[str, dict[str, str]]:
        """By catalog the backends by their prefixes, the longest first."""
        found: dict[str, dict[str, str]] = {}
        for backend, settings in self._with_names():
            of_catalog = found.setdefault(settings.catalog, {})
            if (other := of_catalog.get(settings.prefix)) is not None:
                what = f"prefix {settings.prefix!r}" if settings.prefix else "no prefix"
                raise FederationError(
                    f"backends.{other} and backends.{backend} both have {what} in catalog {settings.catalog}: their"
                    " databases would have the same names. Give one of them a prefix or a catalog"
                )
            of_catalog[settings.prefix] = backend
        return {
            catalog: dict(sorted(of_catalog.items(), key=lambda each: -len(each[0])))
            for catalog, of_catalog in found.items()
        }

    def _check_renames(self) -> None:
        """No renamed database may hide one that has the name by its prefix."""
        for name, backend in self._renamed.items():
            hidden = self._by_prefix_alone(name)
            if hidden is not None:
                raise FederationError(
                    f"backends.{backend}.rename.{name.database} hides database {hidden.name} of backends."
                    f"{hidden.backend}, whose name by its prefix is {name}, too: rename that one, or put it into"
                    f" backends.{hidden.backend}.deny"
                )

    def _by_prefix_alone(self, name: Name) -> Place | None:
        for prefix, backend in self._prefixes.get(name.catalog, {}).items():
            settings = self.backends[backend]
            there = name.database.removeprefix(prefix)
            if name.database.startswith(prefix) and there:
                if _renamed_to(settings, there) is not None or not settings.admits(there):
                    return None
                return Place(backend, Name(settings.backend_catalog, there), "")
        return None

    def _check_allowed(self) -> None:
        """A database that `allow` names must have a name in the front."""
        for backend, settings in self._with_names():
            for there in settings.allow:
                if "*" in there or not settings.admits(there):
                    continue
                if self._name(backend, Name(settings.backend_catalog, there)) is None:
                    name = Name(settings.catalog, settings.prefix + there)
                    other = self._lookup(name)
                    where = f"{other.rule} takes it" if other is not None else "that name is taken"
                    raise FederationError(
                        f"backends.{backend}.allow names database {there}, whose name {name} is hidden: {where}."
                        f" Give it another name by backends.{backend}.rename"
                    )

    def _primary(self) -> str | None:
        marked = [backend for backend, settings in self.backends.items() if settings.primary]
        if len(marked) > 1:
            raise FederationError(f"backends.{marked[0]} and backends.{marked[1]} are both primary: one may be")
        numbers: dict[int, str] = {}
        for backend, settings in self.backends.items():
            if settings.number is not None:
                if settings.number in numbers:
                    raise FederationError(
                        f"backends.{numbers[settings.number]} and backends.{backend} have the same number"
                        f" {settings.number}: ids would not say which of them they are from"
                    )
                numbers[settings.number] = backend
        if not marked and len(self.backends) == 1:
            return next(iter(self.backends))
        return marked[0] if marked else None

    def _followed(self) -> tuple[str, ...]:
        found = tuple(backend for backend, settings in self.backends.items() if settings.follow)
        for backend in found:
            if self.number(backend) is None:
                raise FederationError(
                    f"backends.{backend}.follow needs a number, or primary = true: its log names transactions"
                )
            if (other := self.beside.get(backend)) is not None:
                raise FederationError(
                    f"backends.{backend}.follow and backends.{other}.beside don't go together: the merged log would"
                    f" have only some of the tables' events. Read the logs of {backend} and {other} themselves"
                )
        if found and not self.configuration.federation.log_readers:
            raise FederationError(
                f"backends.{found[0]}.follow needs federation.log_readers, which says who may read the events of all"
                ' databases: users, "group:NAME", or "*" for everybody'
            )
        return found


def named(text: str) -> tuple[Name, str]:
    """A database and a table, from `table`'s full name in words: `db`, `db.t` or `catalog.db.t`."""
    parts = text.strip().lower().split(".")
    if len(parts) == 3:
        return Name(parts[0], parts[1]), parts[2]
    return in_words(parts[0]), parts[1] if len(parts) > 1 else ""


def _beside(backends: dict[str, Backend]) -> dict[str, str]:
    found: dict[str, str] = {}
    for backend, settings in backends.items():
        if (of := settings.beside) is None:
            continue
        if of not in backends or backends[of].beside is not None:
            known = ", ".join(each for each, other in backends.items() if other.beside is None)
            raise FederationError(f"backends.{backend}.beside names {of}: it may be one of {known}")
        if of in found:
            raise FederationError(f"backends.{found[of]} and backends.{backend} are both beside {of}: one may be")
        found[of] = backend
    return found


def _named_alike(backends: dict[str, Backend]) -> dict[str, Backend]:
    """The backends, in which those beside others have the names of these."""
    keys = ("prefix", "catalog", "rename", "allow", "deny")
    return {
        backend: settings
        if settings.beside is None
        else settings.model_copy(update={key: getattr(backends[settings.beside], key) for key in keys})
        for backend, settings in backends.items()
    }


def _renamed_to(settings: Backend, there: str) -> str | None:
    return next((front for front, name in settings.rename.items() if name == there), None)
