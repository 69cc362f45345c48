"""Writes the SQL by which a raw table becomes a typed table of `lake.layers`, kept as the source has it."""

import json
from collections import Counter
from collections.abc import Container, Iterable
from typing import NamedTuple

import pyarrow.compute as pc

from lake.capture.errors import CaptureError
from lake.capture.raw_table import rows_of
from lake.tables.lake import LakeTable

POSITION = ("epoch", "commit_lsn", "ordinal")

_AS_TEXT = {"date", "timestamp", "timestamp_ntz"}
"""Types that JSON has as a text of Postgres's, which is cast."""

_ANY_LENGTH = "'maxStringLen', '2147483647'"
"""An option of Spark's from_json, which reads no row with a text of more than 20,000,000 characters without it."""

_RESERVED = {"op", *POSITION, "_row_key", "_change_type"}
"""Names of the columns that changes and layers have beside the source's."""


class CapturedColumn(NamedTuple):
    """A column as a `schema` row describes it. `form`: a fingerprint of the columns up to this one."""

    name: str
    type: str
    in_key: bool
    may_be_unchanged: bool
    form: str


def columns_of(lake: LakeTable, table: str) -> list[CapturedColumn]:
    """The columns of a source's table as they were last written down. Raises CaptureError for a table without."""
    latest: tuple[tuple[int, ...], str] | None = None
    for rows in rows_of(lake, table):
        for row in rows.filter(pc.equal(rows.column("op"), "schema")).to_pylist():
            position = tuple(row[each] for each in POSITION)
            if latest is None or position > latest[0]:
                latest = position, row["after"]
    if latest is None:
        raise CaptureError(f"nothing of {table} is captured yet")
    return [
        CapturedColumn(each["name"], each["type"], each["key"], each["large"], each["form"])
        for each in json.loads(latest[1])
    ]


def names_of(tables: Iterable[str]) -> dict[str, str]:
    """What the definitions of some tables of a source are called, by table: as the table, or with its schema before it
    where another one's definitions have that name. Names don't differ by case alone."""
    names = {each: each.rpartition(".")[2] for each in tables}
    users = Counter(made.lower() for name in names.values() for made in _made(name))
    return {
        each: each.replace(".", "_") if any(users[made.lower()] > 1 for made in _made(name)) else name
        for each, name in names.items()
    }


def _made(name: str) -> tuple[str, str, str, str]:
    """The table, its typed changes, the flow between them, and the changes that are kept out of it."""
    return name, f"{name}_changes", f"{name}_flow", f"{name}_misfits"


def definition(
    lake: LakeTable, table: str, name: str | None = None, *, quarantines: bool = False, without: Container[str] = ()
) -> str:
    """The definitions for one table: its typed changes, and the table that they come to, by AUTO CDC.

    `name`: of the latter, by default as in the source. `quarantines`: changes with values that don't fit the types of
    their columns go to a table of their own; else they let the refresh fail. `without`: columns that are left out.
    Raises CaptureError for a table without a key, whose rows no change can name, for a key that is left out, and for
    columns whose names are taken or differ by case alone.
    """
    columns = columns_of(lake, table)
    if missing := [each.name for each in columns if each.in_key and each.name in without]:
        raise CaptureError(f"the column {missing[0]} is in the key of {table}: it can't be left out")
    columns = [each for each in columns if each.name not in without]
    key = [each.name for each in columns if each.in_key]
    if not key:
        raise CaptureError(f"{table} has no key: only its raw changes can be read")
    if taken := [each.name for each in columns if each.name.lower() in _RESERVED]:
        raise CaptureError(
            f"the column {taken[0]} of {table} has a name that changes need: write its definition by hand"
        )
    if alike := [each for each, count in Counter(each.name.lower() for each in columns).items() if count > 1]:
        names = " and ".join(each.name for each in columns if each.name.lower() == alike[0])
        raise CaptureError(
            f"the columns {names} of {table} differ by case alone, which Spark doesn't tell apart: rename one, or leave"
            " it out by a list of columns in the publication"
        )
    target, changes, flow, misfits = map(_quoted, _made(name or table.rpartition(".")[2]))
    listed = ", ".join(map(_quoted, key))
    typed = _Typed(lake, table, columns, key, quarantines=quarantines)
    kept_apart = f"CREATE MATERIALIZED VIEW {misfits} AS\n{typed.misfits()};\n\n" if quarantines else ""
    return (
        f"CREATE MATERIALIZED VIEW {changes} AS\n{typed.changes()};\n\n{kept_apart}"
        f"CREATE STREAMING TABLE {target};\n\n"
        f"CREATE FLOW {flow} AS AUTO CDC INTO {target} FROM STREAM({changes})\n"
        f"  KEYS ({listed}) APPLY AS DELETE WHEN op = 'delete'\n"
        f"  SEQUENCE BY struct({', '.join(POSITION)})\n"
        f"  COLUMNS * EXCEPT (op, {', '.join(POSITION)}) STORED AS SCD TYPE 1;\n"
    )


class _Typed:
    """Writes the queries of a table's typed changes.

    A row is read by the columns of the definition. Rows count only while the raw table says by its `schema` rows that
    they have these columns, and perhaps others after them. A value that the type of its column doesn't hold is a misfit
    rather than NULL.
    """

    def __init__(
        self, lake: LakeTable, table: str, columns: list[CapturedColumn], key: list[str], *, quarantines: bool
    ) -> None:
        self._lake = lake
        self._table = table
        self._columns = columns
        self._key = key
        self._quarantines = quarantines
        self._left_out = _free(columns, "left_out")
        self._misfit = _free(columns, "misfit")
        self._large = [each.name for each in columns if each.may_be_unchanged and not each.in_key]
        self._raw_at = f"struct({', '.join(f'raw.{each}' for each in POSITION)})"
        self._keeps_misfits = quarantines and bool(self._large)  # a later update may have left a large value out

    def changes(self) -> str:
        """Rows after a change, and deletes by the key before, since the last truncation."""
        # One row each: the groups say by which columns changes are known, so that AUTO CDC finds them in a total order.
        groups = ", ".join([*map(_quoted, self._key), *POSITION])
        others = ["op", self._left_out, *(_quoted(each.name) for each in self._columns if not each.in_key)]
        others += [self._misfit] if self._keeps_misfits else []
        single = ", ".join(f"max({each}) AS {each}" for each in others)
        return (
            f"{self._images()}, typed AS (\n{self._typed()}\n"
            f"), changes AS (\n"
            f"  SELECT {groups}, {single} FROM typed GROUP BY {groups}\n"
            f"){self._shown()}"
        )

    def misfits(self) -> str:
        """The changes that the quarantine keeps out, as they are in the raw table."""
        position = ", ".join(POSITION)
        names = []
        for each in self._columns:
            name = _quoted(each.name)
            read = f"from_json(both_images.raw, {_text(f'{name} string')}, map({_ANY_LENGTH})).{name}"
            there = f"{read} IS NOT NULL"
            names.append(f"CASE WHEN {there} AND {_typed(each)} IS NULL THEN {_text(each.name)} END")
        single = ", ".join(f"max({each}) AS {each}" for each in ("op", "misfits", "raw"))
        return (
            f"{self._images(keeps_raw=True)}, misfits AS (\n"
            f"  SELECT both_images.op, {', '.join(f'both_images.{each}' for each in POSITION)}, both_images.raw,\n"
            f"    concat_ws(', ', {_lines(names, indent=6)}) AS misfits\n{self._from_images(self._is_misfit())}\n"
            f")\nSELECT {position}, {single} FROM misfits GROUP BY {position}"
        )

    def _images(self, *, keeps_raw: bool = False) -> str:
        """The beginning of the query: which rows count, and rows before and after their changes."""
        position = ", ".join(POSITION)
        listed = [f"{_quoted(each.name)} {_json_type(each.type)}" for each in self._columns]
        # Spark says in a column more that there is a value which it can't read, and leaves that NULL.
        schema = _text(", ".join([*listed, f"{self._misfit} string"]))
        options = f"map('columnNameOfCorruptRecord', {_text(self._misfit)}, {_ANY_LENGTH})"
        of_table = f"source_table = {_text(self._table)}"
        moved = " OR ".join(f"NOT (images.old.{_quoted(name)} <=> images.new.{_quoted(name)})" for name in self._key)
        before, after = (", before AS raw", ", after AS raw") if keeps_raw else ("", "")
        raw = ", before, after" if keeps_raw else ""
        here, raw_at, lake, left_out = f"struct({position})", self._raw_at, self._lake.name, self._left_out
        return (
            f"WITH completions AS (\n"
            f"  SELECT source_table, max({here}) AS last FROM {lake}\n"
            f"  WHERE {of_table} AND op = 'complete' GROUP BY source_table\n"
            f"), truncations AS (\n"
            # A table that is read again stays as it was until that is complete.
            f"  SELECT raw.source_table,\n"
            f"    max(CASE WHEN raw.op = 'truncate' AND (raw.after IS NULL OR {raw_at} < completions.last)"
            f" THEN {raw_at} END) AS last,\n"
            f"    min(CASE WHEN raw.after IS NOT NULL AND (completions.last IS NULL OR {raw_at} > completions.last)"
            f" THEN {raw_at} END) AS incomplete\n"
            f"  FROM {lake} AS raw LEFT JOIN completions ON raw.source_table = completions.source_table\n"
            f"  WHERE raw.{of_table} AND raw.op IN ('truncate', 'incomplete') GROUP BY raw.source_table\n"
            f"), forms AS (\n"
            f"  SELECT raw.source_table, max(CASE WHEN raw.op = 'hold' THEN raw.after END) AS reason,\n"
            f"    max(CASE WHEN raw.op = 'schema' AND {_has_form(self._columns)} THEN 1 ELSE 0 END) AS known\n"
            f"  FROM {lake} AS raw LEFT JOIN truncations ON raw.source_table = truncations.source_table\n"
            f"  WHERE raw.{of_table} AND raw.op IN ('schema', 'hold') AND {_counts(raw_at)}\n"
            f"  GROUP BY raw.source_table\n"
            f"), images AS (\n"
            f"  SELECT source_table, op, from_json(before, {schema}, {options}) AS old,"
            f" from_json(after, {schema}, {options}) AS new, unchanged AS {left_out}, {position}{raw}\n"
            f"  FROM {lake} WHERE {of_table} AND op IN ('read', 'insert', 'update', 'delete')\n"
            f"), both_images AS (\n"
            f"  SELECT source_table, op, new AS image, {left_out}, {position}{after} FROM images WHERE op <> 'delete'\n"
            f"  UNION ALL\n"
            f"  SELECT source_table, 'delete' AS op, old AS image, CAST(NULL AS ARRAY<STRING>) AS {left_out},"
            f" {position}{before}\n"
            f"  FROM images WHERE op = 'delete' OR (op = 'update' AND old IS NOT NULL AND ({moved}))\n"
            f")"
        )

    def _typed(self) -> str:
        """The query of the changes with their types."""
        listed = [f"{_typed(each)} AS {_quoted(each.name)}" for each in self._columns]
        if self._keeps_misfits:
            listed.append(f"{self._is_misfit()} AS {self._misfit}")
            kept = "true"
        elif self._quarantines:
            kept = f"NOT {self._is_misfit()}"
        else:
            at = ", ', ', ".join(f"CAST(both_images.{each} AS STRING)" for each in POSITION)
            held = f"concat({_text(_misfit(self._lake, self._table))}, {at}, ')')"
            kept = f"CASE WHEN {self._is_misfit()} THEN CAST(raise_error({held}) AS BOOLEAN) ELSE true END"
        return (
            f"  SELECT both_images.op, both_images.{self._left_out},"
            f" {', '.join(f'both_images.{each}' for each in POSITION)},\n"
            f"    {_lines(listed, indent=4)}\n{self._from_images(kept)}"
        )

    def _from_images(self, kept: str) -> str:
        """The rows that count and meet a condition. Fails where they don't have the columns of the definition."""
        at = f"struct({', '.join(f'both_images.{each}' for each in POSITION)})"
        incomplete, outdated = _text(_incomplete(self._table)), _text(_outdated(self._lake, self._table))
        return (
            f"  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table\n"
            f"    LEFT JOIN forms ON both_images.source_table = forms.source_table\n"
            # All is one condition: a row that doesn't count must not fail.
            f"  WHERE CASE WHEN NOT ({_counts(at)}) THEN false\n"
            f"      WHEN forms.reason IS NOT NULL THEN CAST(raise_error(forms.reason) AS BOOLEAN)\n"
            f"      WHEN forms.known = 0 AND truncations.incomplete IS NOT NULL"
            f" THEN CAST(raise_error({incomplete}) AS BOOLEAN)\n"
            f"      WHEN forms.known = 0 THEN CAST(raise_error({outdated}) AS BOOLEAN)\n"
            f"      ELSE {kept} END"
        )

    def _is_misfit(self) -> str:
        """Whether a value of an image isn't one of its column's type. A delete needs its key alone."""
        lost = [f"both_images.image.{self._misfit} IS NOT NULL"]
        lost += [
            f"(both_images.image.{_quoted(each.name)} IS NOT NULL AND {_typed(each)} IS NULL)"
            for each in self._columns
            if _json_type(each.type) != each.type
        ]
        keys = [f"{_typed(each)} IS NULL" for each in self._columns if each.in_key]
        return f"CASE WHEN both_images.op = 'delete' THEN {' OR '.join(keys)} ELSE {' OR '.join(lost)} END"

    def _shown(self) -> str:
        """The end of the query: changes with the values that updates left out, which are the latest there were by then.

        A change of which a value isn't known is left out if a later change of its row follows, and is an error else.
        """
        listed = [_quoted(each.name) for each in self._columns]
        if not self._large:
            return f"\nSELECT op, {', '.join(POSITION)},\n  {_lines(listed)}\nFROM changes"
        by_key = f"OVER (PARTITION BY {', '.join(map(_quoted, self._key))} ORDER BY {', '.join(POSITION)})"
        position = ", ".join(f"{_text(each)}, {each}" for each in POSITION)
        # The values of a change that the quarantine has aren't known, as those of a row that is gone.
        op = f"CASE WHEN {self._misfit} THEN 'delete' ELSE op END" if self._keeps_misfits else "op"
        has_later = _free(self._columns, "has_later")
        computed = [f"lead(op) {by_key} IS NOT NULL AS {has_later}"]
        conditions = []
        for number, each in enumerate(self._large, 1):
            known = _free(self._columns, f"known_{number}")
            is_there = f"op = 'delete' OR NOT coalesce(array_contains({self._left_out}, {_text(each)}), false)"
            value = f"named_struct({position}, 'op', {op}, 'value', {_quoted(each)})"
            computed.append(f"max(CASE WHEN {is_there} THEN {value} END) {by_key} AS {known}")
            conditions.append(
                f"CASE WHEN op = 'delete' OR {known}['op'] <> 'delete' THEN true WHEN {has_later} THEN false"
                f" ELSE CAST(raise_error({_text(_unknown(self._table, each))}) AS BOOLEAN) END"
            )
            listed[listed.index(_quoted(each))] = f"{known}['value'] AS {_quoted(each)}"
        kept = " AND ".join(conditions)
        if self._keeps_misfits:  # a change in quarantine must not fail for a value that isn't known
            kept = f"CASE WHEN {self._misfit} THEN false ELSE {kept} END"
        return (
            f", filled AS (\n  SELECT *,\n  {_lines(computed)}\n  FROM changes\n)\n"
            f"SELECT op, {', '.join(POSITION)},\n  {_lines(listed)}\nFROM filled WHERE {kept}"
        )


def _counts(at: str) -> str:
    """Whether a row is behind the last truncation, and not of a table that is still being read again."""
    return (
        f"(truncations.last IS NULL OR {at} > truncations.last)"
        f" AND (truncations.incomplete IS NULL OR {at} < truncations.incomplete)"
    )


def _has_form(columns: list[CapturedColumn]) -> str:
    """Whether a `schema` row has the columns of a definition, and perhaps others after them."""
    return f"contains(raw.after, {_text(json.dumps({'form': columns[-1].form})[1:-1])})"


def _incomplete(table: str) -> str:
    return (
        f"{table} is being read again, since it changed at the source:"
        " refresh when metastore capture status says that its snapshot is done"
    )


def _outdated(lake: LakeTable, table: str) -> str:
    return (
        f"the columns of {table} changed at the source: print its definitions again, by"
        f" metastore capture definitions --into {lake.name} --table {table}"
    )


def _misfit(lake: LakeTable, table: str) -> str:
    """The beginning of a message that ends with a position."""
    return (
        f"a change of {table} has a value that the type of its column does not hold. To keep such changes apart and go"
        f" on, print its definitions by metastore capture definitions --misfits quarantine --into {lake.name} --table"
        f" {table}. The first one found has the position ("
    )


def _typed(column: CapturedColumn) -> str:
    """The value of a column; NULL where there is none, or where it is a misfit."""
    value = f"both_images.image.{_quoted(column.name)}"
    if column.type == "binary":
        return f"unhex(substring({value}, 3))"  # after \x
    if column.type == "date":
        # By a cast alone 0044-03-15 BC were a day of our era, and a number of days were a year.
        return f"CASE WHEN {value} RLIKE '^[0-9]{{4,}}-[0-9]{{2}}-[0-9]{{2}}$' THEN try_cast({value} AS DATE) END"
    if column.type == "tinyint":
        return f"try_cast({value} AS TINYINT)"
    return f"try_cast({value} AS TIMESTAMP)" if column.type in _AS_TEXT else value


def _json_type(type: str) -> str:
    """The type as which from_json reads a column."""
    if type == "tinyint":  # as that Spark reads 200 as -56
        return "smallint"
    return "string" if type in _AS_TEXT or type == "binary" else type


def _lines(listed: Iterable[str], *, indent: int = 2) -> str:
    return f",\n{' ' * indent}".join(listed)


def _free(columns: Iterable[CapturedColumn], name: str) -> str:
    """A name that none of the columns has: this one, or this one with a number."""
    taken = {each.name.lower() for each in columns}
    return next(each for each in (name, *(f"{name}_{count}" for count in range(len(taken)))) if each not in taken)


def _unknown(table: str, column: str) -> str:
    return (
        f"an update of {table} left out its large value {column}, and no earlier row of the raw table has it: let the"
        " source send the row again, by an update that changes the value or by another snapshot; REPLICA IDENTITY FULL"
        " of a table in Postgres prevents this"
    )


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
