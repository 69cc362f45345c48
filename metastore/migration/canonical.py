"""The form in which objects of two metastores are compared, and its digest.

What can't be the same on both sides is left out: ids, and the name of the catalog, which Hive 2.3 doesn't have. Nor is
there a difference between what isn't set, and what is empty, zero or false: versions of Hive tell these in both ways.
Texts and parameters count to the letter.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lake.protocol.codec.plain import to_plain
from lake.protocol.formats.column_ids import COLUMN_IDS
from lake.protocol.hive import (
    ColumnStatisticsData,
    ColumnStatisticsObj,
    Database,
    DatabaseType,
    FieldSchema,
    HiveObjectPrivilege,
    LongColumnStatsData,
    Partition,
    PrincipalType,
    Table,
)
from lake.protocol.struct import Struct
from metastore.migration.objects import without_marks
from metastore.services.model import hive_objects
from metastore.warehouse import WarehouseError
from metastore.warehouse.locations import Location

Plain = dict[str, Any]

_LEFT_OUT = frozenset({
    *("id", "catName", "catalogName", "privileges", "temporary", "colStats", "txnId", "validWriteIdList"),
    *("accessType", "requiredReadCapabilities", "requiredWriteCapabilities", "isStatsCompliant", "fileMetadata"),
})  # fmt: skip
_NAMES_OF_CATALOGS = frozenset({"catName", "catalogName"})
_LOCATIONS = frozenset({"location", "locationUri", "managedLocationUri"})
_SKETCHES = ("bitVectors", "histogram")


def of_struct(value: Struct) -> Plain:
    """A catalog, database, function, table, partition, constraint, role or membership in the form that is compared."""
    plain = to_plain(value, without=_LEFT_OUT)
    if plain.get("writeId") in hive_objects.WITHOUT_WRITE_ID:
        plain.pop("writeId", None)
    if plain.get("ownerType") == PrincipalType.USER:
        del plain["ownerType"]
    if isinstance(value, Database) and value.type == DatabaseType.NATIVE:  # Hive 4 tells it, older ones don't
        plain.pop("type", None)
    if isinstance(value, Database) and value.parameters:
        plain["parameters"] = without_marks(value.parameters)
    if isinstance(value, Table) and COLUMN_IDS in (value.parameters or {}):
        plain["parameters"] = {key: each for key, each in plain["parameters"].items() if key != COLUMN_IDS}
    bare: Plain = _bare(plain)
    return bare


class Columns(list[Plain]):
    """Columns in the form that is compared, which partitions share. Their digest is made once."""

    def __init__(self, columns: Sequence[FieldSchema]) -> None:
        super().__init__(_bare(to_plain(each, without=_LEFT_OUT)) for each in columns)
        self.digest = digest(list(self)).hex()


class Partitions:
    """Makes the forms of partitions one after the other. Most have the same columns, so their form is made once."""

    def __init__(self) -> None:
        self._columns: list[tuple[str | None, str | None, str | None]] = []
        self._form = Columns(())

    def form(self, value: Partition) -> Plain:
        """As `of_struct`."""
        columns = value.sd and value.sd.cols
        if value.sd is None or not columns:
            return of_struct(value)
        fields = [(each.name, each.type, each.comment) for each in columns]  # several times as quick as structs
        if fields != self._columns:
            self._columns, self._form = fields, Columns(columns)
        plain = of_struct(value.replace(sd=value.sd.replace(cols=None)))
        plain.setdefault("sd", {})["cols"] = self._form
        return plain


def of_statistics(value: ColumnStatisticsObj, *, sketches: bool = True) -> Plain:
    """Statistics of a column. `sketches`: whether they count.

    Those of timestamps have a kind of their own in Hive 4.
    """
    kinds = value.statsData or ColumnStatisticsData()
    kind, data = next((name, each) for name in kinds.field_names() if (each := getattr(kinds, name)) is not None)
    if value.colType == "timestamp" and isinstance(data, LongColumnStatsData):
        kind = "timestampStats"
    plain = to_plain(data, without=() if sketches else _SKETCHES)
    for bound in ("lowValue", "highValue"):
        if isinstance(plain.get(bound), dict) and kind == "timestampStats":
            plain[bound] = plain[bound].get("secondsSinceEpoch")
    numbers = {key: each for key, each in plain.items() if each not in (None, "")}
    return {"type": value.colType, kind: numbers}


def has_sketch(value: ColumnStatisticsObj) -> bool:
    """Whether a sketch of the distinct values came along."""
    data = value.statsData
    kinds = [each for name in (data.field_names() if data else ()) if (each := getattr(data, name)) is not None]
    return any(getattr(each, name, None) is not None for each in kinds for name in _SKETCHES)


def of_grant(value: HiveObjectPrivilege) -> Plain:
    """A privilege; when it was given counts, too."""
    return of_struct(value)


def _bare(value: Any) -> Any:
    """Without what isn't set or is empty, but for texts, and for entries of maps."""
    if not isinstance(value, dict):
        return [_bare(each) for each in value] if isinstance(value, list) else value
    bare: Plain = {}
    for key, each in value.items():
        if key == "parameters":
            if each:
                bare[key] = dict(each)
            continue
        if key in _NAMES_OF_CATALOGS:
            continue
        own = _bare(each)
        if own is None or own is False or own == 0 or own == [] or own == {}:
            continue
        bare[key] = _place(own) if key in _LOCATIONS else own
    return bare


def _place(location: str) -> str:
    """One place is written in several ways: `file:///a` and `file:/a`."""
    try:
        return str(Location.parse(location))
    except WarehouseError:
        return location


def digest(plain: Any) -> bytes:
    """32 bytes that say whether two objects of a kind are the same."""
    descriptor = plain.get("sd") if isinstance(plain, dict) else None
    if descriptor is not None and isinstance(columns := descriptor.get("cols"), Columns):
        plain = {**plain, "sd": {**descriptor, "cols": columns.digest}}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def differences(here: Mapping[str, Any], there: Mapping[str, Any], path: str = "") -> list[str]:
    """What differs between two objects, in words."""
    found = []
    for key in sorted(here.keys() | there.keys()):
        one, other = here.get(key), there.get(key)
        if one == other:
            continue
        place = f"{path}{key}"
        if isinstance(one, dict) and isinstance(other, dict):
            found += differences(one, other, f"{place}.")
        else:
            found.append(f"{place}: here {_shown(one)}, there {_shown(other)}")
    return found


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
