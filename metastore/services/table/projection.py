"""Returns only some fields of tables, by the rules of Hive 4's TableFields."""

from collections.abc import Iterable

from lake.protocol.hive import (
    GetProjectionsSpec,
    InvalidOperationException,
    MetaException,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

_SERDE = "sd.serdeInfo."
_SD = "sd."
# Fields with one value, as they are asked for.
_SINGLE = {
    *("id", "tableName", "dbName", "owner", "ownerType", "createTime", "lastAccessTime", "retention"),
    *("viewOriginalText", "viewExpandedText", "rewriteEnabled", "tableType", "writeId"),
    *(f"{_SD}{name}" for name in ("location", "inputFormat", "outputFormat", "compressed", "numBuckets")),
    f"{_SD}storedAsSubDirectories",
    *(f"{_SERDE}{name}" for name in ("name", "serializationLib", "description", "serializerClass")),
    *(f"{_SERDE}{name}" for name in ("deserializerClass", "serdeType")),
}
# Who asks for one of these gets everything.
_SEVERAL = {
    *("values", "sd.cols.name", "sd.cols.type", "sd.cols.comment", "sd.serdeInfo.parameters", "sd.bucketCols"),
    *("sd.sortCols.col", "sd.sortCols.order", "sd.parameters", "partitionKeys.name", "partitionKeys.type"),
    *("sd.skewedInfo.skewedColNames", "sd.skewedInfo.skewedColValues", "sd.skewedInfo.skewedColValueLocationMaps"),
    *("partitionKeys.comment", "parameters"),
}
# Numbers and flags that Hive's answer holds even where they aren't wanted: as 0 and false.
_ALWAYS = ("createTime", "lastAccessTime", "retention", "rewriteEnabled")


class TableProjection:
    """The requested fields of a table."""

    def __init__(self, spec: GetProjectionsSpec | None) -> None:
        """Raises MetaException for a field that tables don't have, InvalidOperationException for parameters alone."""
        spec = spec or GetProjectionsSpec()
        if spec.fieldList is None and (
            spec.includeParamKeyPattern is not None or spec.excludeParamKeyPattern is not None
        ):
            raise InvalidOperationException("tables can't be asked for by patterns of their parameters' names")
        asked = spec.fieldList or []
        wrong = sorted(set(asked) - _SINGLE - _SEVERAL)
        if wrong:
            raise MetaException(f"Invalid table fields in the projection spec{wrong}")
        self._fields = None if not asked or _SEVERAL.intersection(asked) else asked

    def table(self, whole: Table) -> Table:
        """What is wanted of a table."""
        return whole if self._fields is None else _projected(whole, self._fields)


def _projected(whole: Table, fields: Iterable[str]) -> Table:
    found = Table()
    for field in _ALWAYS:
        setattr(found, field, type(getattr(whole, field) or 0)())
    for field in fields:
        if not field.startswith(_SD):
            setattr(found, field, getattr(whole, field))
            continue
        found.sd = found.sd or StorageDescriptor()
        if not field.startswith(_SERDE):
            name = field.removeprefix(_SD)
            setattr(found.sd, name, getattr(whole.sd, name))
            continue
        found.sd.serdeInfo = found.sd.serdeInfo or SerDeInfo()
        name = field.removeprefix(_SERDE)
        setattr(found.sd.serdeInfo, name, getattr(whole.sd and whole.sd.serdeInfo, name))
    return found
