"""Expands PartitionSpecs: lists of partitions that may share one storage descriptor."""

from collections.abc import Iterable, Sequence

from lake.protocol.hive import MetaException, Partition, PartitionSpec, PartitionSpecWithSharedSD
from metastore.services.model.names import normalized


def expanded(specs: Sequence[PartitionSpec]) -> list[Partition]:
    """The partitions of specs, with normalised names of database and table.

    Raises MetaException for a spec without a list.
    """
    partitions: list[Partition] = []
    for spec in specs:
        if spec.partitionList is not None:
            partitions += (
                one.replace(dbName=name(one.dbName), tableName=name(one.tableName))
                for one in spec.partitionList.partitions or ()
            )
        elif spec.sharedSDPartitionSpec is not None and spec.sharedSDPartitionSpec.sd is not None:
            partitions += _from_shared(spec, spec.sharedSDPartitionSpec)
        else:
            raise MetaException("a partition spec has neither a list of partitions nor a shared descriptor")
    return partitions


def name(given: str | None) -> str | None:
    """A database's or table's name in the form in which names are compared."""
    return None if given is None else normalized(given)


def _from_shared(spec: PartitionSpec, shared: PartitionSpecWithSharedSD) -> Iterable[Partition]:
    assert shared.sd is not None
    for one in shared.partitions or ():
        location = f"{shared.sd.location or spec.rootPath or ''}{one.relativePath}" if one.relativePath else None
        yield Partition(
            values=one.values,
            dbName=name(spec.dbName),
            tableName=name(spec.tableName),
            createTime=one.createTime,
            lastAccessTime=one.lastAccessTime,
            sd=shared.sd.replace(location=location),
            parameters=one.parameters,
        )
