"""Every method whose replies are kept, with every method that writes: no reply outlives what it was made of.

What a reply watches has to meet what a write notes, wherever the write changes the reply, *or what it would watch*
(`tests.metastore.cache.local.Keeper` says why that is enough).
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from metastore.api.methods import HANDLERS
from metastore.services.wiring import Metastore
from tests.metastore.cache import test_differential as differential
from tests.metastore.cache.local import Keeper, LocalClient, opened
from tests.metastore.cache.other_writes import CHAINS
from tests.support.builders import database
from tests.support.postgres import Postgres
from tests.visibility import writers
from tests.visibility.readers import DECORATION, Reader

NUMBERS = itertools.count(1)
LISTS = {"get_all_databases", "get_all_tables", "get_databases", "get_tables", "get_tables_by_type"}

WRITERS_THAT_READ = {"lake_read_group_events"}
"""They need no right to change anything, but write: a member of a group that reads takes its share."""

ELSEWHERE = {
    "lake_import_hudi": "tests/metastore/services/hudi",  # brings a timeline from a directory
    "lake_refresh_hudi": "tests/metastore/services/hudi",
    "lake_resend_events": "tests/eventbus",  # of an outlet that has dead letters
    "lake_discard_events": "tests/eventbus",
    "lake_delete_event_group": "tests/eventbus",  # of a group that has read
    "get_delegation_token": "refused where tokens are not issued",
    "renew_delegation_token": "refused where tokens are not issued",
    "cancel_delegation_token": "refused where tokens are not issued",
    "lake_cancel_tokens": "refused where tokens are not issued",
    "lake_remove_orphans": "removes files alone",
    "setOption": "changes nothing",
    "set_properties": "refused: nobody declares any",
    "repl_tbl_writeid_state": "tests/client_suite/test_transactions.py",  # only while nothing has been written
}
"""Writing methods that this test can't call so that they write. What they write is in the same tables."""


def test_every_method_that_writes_is_called() -> None:
    called = {step.method for chain in CHAINS.values() for step in chain}
    called |= {each.method for each in writers.WRITERS} | ELSEWHERE.keys()
    changing = {name for name, handler in HANDLERS.items() if handler.rule.changes}
    assert called >= changing | WRITERS_THAT_READ
    assert not {name for name in changing | WRITERS_THAT_READ if HANDLERS[name].cached}


# -- method by method --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with opened(postgres, tmp_path_factory.mktemp("pairs")) as metastore:
        yield metastore


def keeper(metastore: Metastore, db: str, *, everything: bool) -> Keeper:
    """Reads of a database: all, or of each method one that finds something, one that doesn't, and the lists."""
    client: Any = LocalClient(metastore)
    readers = Reader(client, db), Reader(client, db, suffix=DECORATION)
    reads = [(*each, reader) for reader in readers for each in differential.READS]
    if everything:
        return Keeper(metastore, reads)
    wanted: dict[Any, tuple[str, Callable[[Reader], Any], Reader]] = {}
    for method, ask, reader in reads:
        found = not isinstance(differential.outcome(ask, reader), tuple)
        key = ask if method in LISTS and reader is readers[0] else (method, found)
        wanted.setdefault(key, (method, ask, reader))
    return Keeper(metastore, list(wanted.values()))


def filled(metastore: Metastore) -> tuple[Any, str]:
    client: Any = LocalClient(metastore)
    db = f"d{next(NUMBERS)}"
    client.create_database(database(db))
    writers.fill(client, db)
    client.lake_complete_instants([_with_files(client, db)])
    return client, db


def _with_files(client: Any, db: str) -> Any:
    reference = differential.TableReference(database=db, table="t")
    begun = client.lake_begin_instant(differential.BeginInstantRequest(reference, "commit", state="inflight"))
    name = differential.OTHER_DAY
    added = [differential.DataFile(partition=name, fileGroup="g", slice=begun.timestamp, path=f"{name}/g", size=1)]
    return differential.CompleteInstantRequest(reference, begun.timestamp, "commit", added=added)


def write_all(metastore: Metastore, names: list[str], *, everything: bool) -> set[str]:
    """Each of the writes in a database of its own; the methods of which an answer was kept, and one ended."""
    changed: set[str] = set()
    for name in names:
        client, db = filled(metastore)
        looking = keeper(metastore, db, everything=everything)
        for each in differential.BEFORE.get(name, ()):
            differential.WRITES[each](client, db)
        looking.look(f"what comes before {name}")
        differential.WRITES[name](client, db)  # raises if it is refused
        looking.look(name)
        looking.look(f"{name}, a moment ago")
        changed |= looking.changed
    return changed


@pytest.mark.long
@pytest.mark.parametrize("share", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, 8))])
def test_writes_of_tables(metastore: Metastore, share: int) -> None:
    """An eighth of them is tried each time; a pair that is left out then has one of its siblings there."""
    names = sorted(differential.WRITES)[share::8]
    assert len(write_all(metastore, names, everything=False)) > 20


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("share", range(8))
def test_writes_of_tables_and_all_that_is_read(metastore: Metastore, share: int) -> None:
    names = sorted(differential.WRITES)[share::8]
    assert len(write_all(metastore, names, everything=True)) > 20


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "everything", [pytest.param(False, id="some-reads"), pytest.param(True, id="all-reads", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("chain", CHAINS)
def test_other_writes(metastore: Metastore, chain: str, everything: bool) -> None:
    client, db = filled(metastore)
    looking = keeper(metastore, db, everything=everything)
    looking.look("it was made")
    memory: dict[str, Any] = {}
    for step in CHAINS[chain]:
        step.write(client, db, memory)  # raises if it is refused
        looking.look(step.method)
    assert looking.answered == differential.CACHED
