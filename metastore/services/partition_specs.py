"""PartitionSpec: lists of partitions, which may share one storage descriptor."""

from collections.abc import Iterable, Sequence

from metastore.wire.hive import MetaException, Partition, PartitionSpec, PartitionSpecWithSharedSD


def expanded(specs: Sequence[PartitionSpec]) -> list[Partition]:
    """The partitions that specs stand for. Raises MetaException for a spec without a list."""
    partitions: list[Partition] = []
    for spec in specs:
        if spec.partitionList is not None:
            partitions += spec.partitionList.partitions or []
        elif spec.sharedSDPartitionSpec is not None and spec.sharedSDPartitionSpec.sd is not None:
            partitions += _from_shared(spec, spec.sharedSDPartitionSpec)
        else:
            raise MetaException("a partition spec holds neither a list of partitions nor a shared descriptor")
    return partitions


def _from_shared(spec: PartitionSpec, shared: PartitionSpecWithSharedSD) -> Iterable[Partition]:
    assert shared.sd is not None
    for one in shared.partitions or ():
        location = f"{shared.sd.location or spec.rootPath or ''}{one.relativePath}" if one.relativePath else None
        yield Partition(
            values=one.values,
            dbName=spec.dbName,
            tableName=spec.tableName,
            createTime=one.createTime,
            lastAccessTime=one.lastAccessTime,
            sd=shared.sd.replace(location=location),
            parameters=one.parameters,
        )
