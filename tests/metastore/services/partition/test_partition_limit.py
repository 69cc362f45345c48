"""A server that answers with so many partitions at most."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lake.protocol.hive import MetaException
from metastore.services.model.visibility import Scope
from metastore.services.partition.reads import PartitionQuery
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.support import builders
from tests.support.postgres import Postgres

MOST = 2
VALUES = ["1", "2", "3"]


@pytest.fixture(scope="module")
def metastore(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    """With a table `t` of one partition more than may be asked for."""
    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    with postgres.fresh_database(upgraded=True) as url:
        settings = Settings(database_url=url, warehouse_dir=str(warehouse), max_partitions_per_request=MOST)
        opened = Metastore.open(settings)
        opened.tables.create(builders.table("default", keys=("k",)), {})
        opened.partitions.add("default", "t", [builders.partition("default", "t", value) for value in VALUES], {})
        yield opened
        opened.close()


READS: dict[str, Callable[[Metastore, PartitionQuery], object]] = {
    "list": lambda metastore, wanted: list(metastore.partition_reads.listing(Scope.READY, "default", "t", wanted)),
    "specs": lambda metastore, wanted: list(
        metastore.partition_reads.spec_listing(Scope.READY, "default", "t", wanted)
    ),
    "objects": lambda metastore, wanted: metastore.partition_reads.read(Scope.READY, "default", "t", wanted),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "wanted", [PartitionQuery(), PartitionQuery(limit=-1), PartitionQuery(limit=3), PartitionQuery(filter="k > '0'")]
)
def test_more_are_refused(metastore: Metastore, read: str, wanted: PartitionQuery) -> None:
    with pytest.raises(MetaException, match="answers with 2 at most"):
        READS[read](metastore, wanted)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(
    "wanted",
    [
        PartitionQuery(limit=MOST),
        PartitionQuery(filter="k > '1'", limit=100),
        PartitionQuery(names=[f"k={each}" for each in VALUES]),
    ],
)
def test_others_are_answered(metastore: Metastore, read: str, wanted: PartitionQuery) -> None:
    assert READS[read](metastore, wanted)


def test_names_are_returned(metastore: Metastore) -> None:
    assert len(metastore.partition_reads.names(Scope.READY, "default", "t")) == len(VALUES)
