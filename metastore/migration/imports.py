"""What an import keeps here, so that the metastore it reads can be followed."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from thrift.Thrift import TApplicationException

from lake.protocol.errors import UserError
from lake.protocol.struct import ExceptionStruct
from metastore.migration.followed import (
    IMPORT,
    Followed,
    all_of,
    begin,
    brought_by_others,
    check_free,
    known_text,
    living_here,
    mark_at,
    patterns_name,
    source_name,
)
from metastore.migration.mapping import Renaming, Selection, database_key
from metastore.migration.objects import DatabaseKey
from metastore.migration.source import Source
from metastore.migration.thrift_source import ThriftSource


@contextmanager
def begun(
    old: Source,
    here: ThriftSource,
    source: str,
    selection: Selection,
    renaming: Renaming,
    say: Callable[[str], None],
) -> Iterator[tuple[Selection, Followed]]:
    """Around an import. Keeps first where the notification log stood, and which databases weren't here before; at last
    those that were brought, which the import adds to.

    The databases that are there now, without those that live here by now: one that comes there meanwhile is for a
    follower, which knows that it wasn't here before. Raises UserError for a source that was brought under
    other names before.
    """
    found = _databases(old, selection)
    renaming.check_apart(found)
    for option, names in (("--databases", selection.unmet(found)), ("--rename", renaming.unmet(found))):
        if names:
            say(f"{option}: no database there is called {', '.join(names)}")
    for place in renaming.merged:
        say(f"--location: several places become {place}, so roll-back will be refused")
    _check_apart(here, source, found, renaming)
    position = old.last_event() or 0  # before anything is read
    mark = None
    with suppress(ExceptionStruct, TApplicationException):  # what tells no entries can still be read
        mark = mark_at(old, position)
    others = brought_by_others(all_of(here), source_name(source))
    followed = begin(here, source, selection, renaming, others)
    living = living_here(all_of(here))  # a cut-over by another selection from here on has this import end
    keys = [key for key in found if renaming.database_key(key) not in living]
    state = followed.state
    if not state.imported and followed.position == 0 and state.held is None:  # else what was read before is older
        followed.position, state.mark = position, mark
    state.mirrored |= {
        key for key in keys if (own := renaming.database_key(key)) not in others and _is_empty(here, own)
    }
    state.held = IMPORT
    followed.keep()
    yield replace(selection, only=frozenset(keys), but=frozenset(found) - frozenset(keys)), followed
    state.held, state.imported = None, True
    followed.keep()


def _check_apart(here: ThriftSource, source: str, keys: Iterable[DatabaseKey], renaming: Renaming) -> None:
    """Raises UserError if a database would become one that another has become, which another import has brought."""
    brought = {
        each.state.renaming.database_key(key): key
        for each in all_of(here, source)
        for key in (*each.state.mirrored, *each.state.brought, *each.state.homes)
        if key.database
    }
    for key in keys:
        own = renaming.database_key(key)
        if brought.get(own, key) != key:
            raise UserError(f"--rename: {brought[own]} and {key} would both become {own}")


def _is_empty(here: ThriftSource, key: DatabaseKey) -> bool:
    """Whether a database has nothing that may be of others."""
    return here.database(key) is None or not (here.tables(key) or here.functions(key))


def known(here: ThriftSource, source: str, databases: str | None, after: int | None) -> Followed:
    """What an import has kept. `after`: go on after this entry of the log.

    Raises UserError if nothing was imported so.
    """
    name = patterns_name(Selection.parse(databases).patterns)
    of_source = all_of(here, source)
    found = next((each for each in of_source if each.databases == name), None)
    if found is None or not found.state.imported:
        raise UserError(
            f"no import of {source_name(source)} with these databases has ended here: import them first, or name both"
            f" as before ({known_text(here)})"
        )
    if after is not None:
        check_free(found, "follow")
        found.take()
        found.position, found.state.mark = after, None
        found.keep()
    return found


def _databases(old: Source, selection: Selection) -> list[DatabaseKey]:
    catalogs = [each.name or "" for each in old.catalogs()] or ["hive"]
    found = (database_key(each) for name in catalogs for each in old.databases(name))
    return [each for each in found if selection.includes(each)]
