"""Returns only some fields of partitions, and groups partitions by the common parts of their storage descriptors.

The rules are those of Hive 4's PartitionProjectionEvaluator and MetaStoreServerUtils.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from lake.protocol.codec import binary
from lake.protocol.events import wildcards
from lake.protocol.hive import (
    GetPartitionsFilterSpec,
    GetProjectionsSpec,
    MetaException,
    Partition,
    PartitionFilterMode,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    StorageDescriptor,
)
from lake.protocol.struct import Struct
from metastore.services.model import patterns
from metastore.services.partition.reads import EVERYTHING, PartitionQuery
from metastore.store.engine.names import TableName

S = TypeVar("S", bound=Struct)

# What may be asked for; `sd` asks for all that begins so.
_FIELDS = (
    *("values", "createTime", "lastAccessTime", "parameters", "writeId", "dbName", "tableName", "catName"),
    *("privileges.userPrivileges", "privileges.groupPrivileges", "privileges.rolePrivileges"),
    *("sd.location", "sd.inputFormat", "sd.outputFormat", "sd.compressed", "sd.numBuckets", "sd.bucketCols"),
    *("sd.cols.name", "sd.cols.type", "sd.cols.comment", "sd.sortCols.col", "sd.sortCols.order", "sd.parameters"),
    *("sd.serdeInfo.name", "sd.serdeInfo.serializationLib", "sd.serdeInfo.parameters"),
    *("sd.serdeInfo.description", "sd.serdeInfo.serializerClass", "sd.serdeInfo.deserializerClass"),
    *("sd.serdeInfo.serdeType", "sd.skewedInfo.skewedColNames", "sd.skewedInfo.skewedColValues"),
    "sd.skewedInfo.skewedColValueLocationMaps",
)
# Left out even then: names, which are sent once for all partitions, and privileges.
_LEFT_OUT = re.compile(
    r"(db|table|cat)Name|privileges\..*|sd\.serdeInfo\.(description|serializerClass|deserializerClass|serdeType)"
)

Tree = dict[str, "Tree"]


class Projection:
    """The requested fields and parameters of a partition."""

    def __init__(self, spec: GetProjectionsSpec | None) -> None:
        """Raises MetaException for a field that partitions don't have, and a pattern that `patterns` doesn't allow."""
        spec = spec or GetProjectionsSpec()
        self._tree = _tree(spec.fieldList) if spec.fieldList else None
        self._include = _like(spec.includeParamKeyPattern)
        self._exclude = _like(spec.excludeParamKeyPattern)

    def partition(self, whole: Partition) -> Partition:
        """The requested fields of a partition. Other numbers and booleans are 0 and false, as in Java."""
        if self._tree is None:
            return whole.replace(parameters=self._parameters(whole))
        found = _projected(whole, self._tree)
        found.createTime, found.lastAccessTime = found.createTime or 0, found.lastAccessTime or 0
        if found.parameters is not None:
            found.parameters = self._parameters(found) or None
        if found.sd is not None:
            found.sd.compressed, found.sd.numBuckets = bool(found.sd.compressed), found.sd.numBuckets or 0
            for order in found.sd.sortCols or ():
                order.order = order.order or 0
        return found

    def _parameters(self, partition: Partition) -> dict[str, str]:
        return {
            key: value
            for key, value in (partition.parameters or {}).items()
            if (self._include is None or self._include.fullmatch(key))
            and (self._exclude is None or not self._exclude.fullmatch(key))
        }


def _tree(asked: Iterable[str]) -> Tree:
    """The fields as a tree of their parts."""
    tree: Tree = {}
    for name in dict.fromkeys(asked):
        found = [field for field in _FIELDS if field == name] or [f for f in _FIELDS if name and f.startswith(name)]
        if not found:
            raise MetaException(f"Invalid partition fields in the projection spec[{name}]")
        for field in found:
            if not _LEFT_OUT.fullmatch(field):
                node = tree
                for part in field.split("."):
                    node = node.setdefault(part, {})
    return tree


def _projected(value: S, tree: Tree) -> S:
    found = type(value)()
    for field, inner in tree.items():
        part: Any = getattr(value, field)
        if inner and isinstance(part, list):
            part = [_projected(item, inner) for item in part]
        elif inner and part is not None:
            part = _projected(part, inner)
        setattr(found, field, part)
    return found


def _like(pattern: str | None) -> re.Pattern[str] | None:
    """A pattern of SQL's LIKE, None for one that says nothing."""
    if not pattern:
        return None
    patterns.check_like(pattern)
    return wildcards.expression(pattern, many="%", one="_")


def wanted(spec: GetPartitionsFilterSpec | None) -> PartitionQuery:
    """Which partitions a filter selects: those of the given names, first values, or for which every text holds.

    Raises MetaException for a filter that says how but not what.
    """
    if spec is None or spec.filterMode is None:
        return EVERYTHING
    filters = spec.filters or []
    if not filters:
        raise MetaException("Invalid filter expressions in the filter spec")
    if spec.filterMode == PartitionFilterMode.BY_NAMES:
        return PartitionQuery(names=filters)
    if spec.filterMode == PartitionFilterMode.BY_VALUES:
        return PartitionQuery(values=filters)
    if spec.filterMode == PartitionFilterMode.BY_EXPR:
        return PartitionQuery(filter=" AND ".join(f"({text})" for text in filters))
    raise MetaException(f"Unsupported filter mode {spec.filterMode}")


class _Shared(NamedTuple):
    """What the partitions of one group have in common."""

    base: str | None
    descriptor: bytes | None


def grouped(name: TableName, location: str | None, partitions: Sequence[Partition]) -> list[PartitionSpec]:
    """Partitions below the table's directory, or without any, share a descriptor if theirs are alike; others don't."""
    buckets = partitions[0].sd.numBuckets if partitions and partitions[0].sd is not None else None
    alike: dict[_Shared, list[Partition]] = {}
    elsewhere = []
    for partition in partitions:
        shared = _shared(partition.sd, location, buckets)
        if shared.base is None or shared.base == location:
            alike.setdefault(shared, []).append(partition)
        else:
            elsewhere.append(partition)
    about = PartitionSpec(dbName=name.database, tableName=name.table, catName=name.catalog)
    specs = [_with_shared(about, shared.base, group) for shared, group in alike.items()]
    if elsewhere:
        specs.append(about.replace(partitionList=PartitionListComposingSpec(elsewhere)))
    return specs


def _shared(sd: StorageDescriptor | None, location: str | None, buckets: int | None) -> _Shared:
    if sd is None:
        return _Shared(None, None)
    base = sd.location
    inside = base is not None and location is not None and f"{base}/".startswith(f"{location}/")
    skewed = sd.skewedInfo is not None and bool(sd.skewedInfo.skewedColNames)
    if inside and not skewed and sd.numBuckets == buckets:
        base = location
    known = StorageDescriptor(
        cols=sd.cols, inputFormat=sd.inputFormat, outputFormat=sd.outputFormat, serdeInfo=sd.serdeInfo
    )
    return _Shared(base, binary.encode(known))


def _with_shared(about: PartitionSpec, base: str | None, group: Sequence[Partition]) -> PartitionSpec:
    sd = (group[0].sd or StorageDescriptor(compressed=False, numBuckets=0)).replace(location=base)
    members = [
        PartitionWithoutSD(
            values=partition.values,
            createTime=partition.createTime,
            lastAccessTime=partition.lastAccessTime,
            relativePath=_relative(partition.sd, base),
            parameters=partition.parameters,
        )
        for partition in group
    ]
    return about.replace(rootPath=base, sharedSDPartitionSpec=PartitionSpecWithSharedSD(members, sd))


def _relative(sd: StorageDescriptor | None, base: str | None) -> str | None:
    return None if sd is None or sd.location is None or base is None else sd.location[len(base) :]
