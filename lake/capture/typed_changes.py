"""Writes the queries by which the rows of a raw table become the typed changes of a source's table."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lake.capture.schema_changes.flow import Fill
from lake.capture.schema_changes.model import Position
from lake.capture.schemas import mark_of
from lake.protocol.formats.spark_names import quoted
from lake.tables.lake import LakeTable

POSITION = ("epoch", "commit_lsn", "ordinal")

_AS_TEXT = {"date", "timestamp", "timestamp_ntz"}
"""Types that JSON has as a text of Postgres's, which is cast."""

_ANY_LENGTH = "'maxStringLen', '2147483647'"
"""An option of Spark's from_json, which reads no row with a text of more than 20,000,000 characters without it."""


class CapturedColumn(NamedTuple):
    """A column as a `schema` row describes it. `form`: a fingerprint of the columns up to this one."""

    name: str
    type: str
    in_key: bool
    may_be_unchanged: bool
    form: str


class TypedChanges:
    """Writes the queries of a table's typed changes.

    A row is read by the columns of the definition. Rows count only while the raw table says by its `schema` rows that
    they have these columns, and perhaps others after them. A value that the type of its column doesn't hold is a misfit
    rather than NULL.
    """

    def __init__(
        self,
        lake: LakeTable,
        table: str,
        columns: list[CapturedColumn],
        key: list[str],
        fills: Sequence[Fill],
        *,
        quarantines: bool,
        is_printed: bool = True,
        begin: Position | None = None,
    ) -> None:
        """`fills`: what columns have in rows that were written before they came. `begin`: no row before it counts, now
        or later, so that files of the raw table from before aren't read; None if nobody says so."""
        self._lake = lake
        self._table = table
        self._columns = columns
        self._key = key
        self._fills = fills
        self._quarantines = quarantines
        self._is_printed = is_printed
        self._begin = begin
        self._left_out = free(columns, "left_out")
        self._misfit = free(columns, "misfit")
        self._large = [each.name for each in columns if each.may_be_unchanged and not each.in_key]
        self._raw_at = f"struct({', '.join(f'raw.{each}' for each in POSITION)})"
        self._keeps_misfits = quarantines and bool(self._large)  # a later update may have left a large value out

    @property
    def needs_others(self) -> bool:
        """Whether what is shown of a change takes other changes of its row: then `sent` belongs in a table, in which
        these are found without reading the raw table from its beginning."""
        return bool(self._large)

    def sent(self) -> str:
        """The changes as the source has sent them."""
        no_row = ""
        if self._keeps_misfits:  # the quarantine has them, and they say of no row what it has
            no_key = " OR ".join(f"{quoted(each)} IS NULL" for each in self._key)
            no_row = f" WHERE NOT ({self._misfit} AND ({no_key}))"
        return f"{self._all()}\nSELECT * FROM changes{no_row}"

    def changes(self, sent: str | None) -> str:
        """The changes to show. `sent`: the name of a table of `sent`, in SQL, if other changes are needed."""
        if sent is not None:
            return self._with_others(sent)
        shown = lines(quoted(each.name) for each in self._columns)
        return f"{self._all()}\nSELECT op, {', '.join(POSITION)},\n  {shown}\nFROM changes"

    def _all(self) -> str:
        """The queries up to `changes`: rows after, and deletes by the key before, since the last truncation."""
        # One row each: the groups say by which columns changes are known, so that AUTO CDC finds them in a total order.
        groups = ", ".join([*map(quoted, self._key), *POSITION])
        others = ["op", self._left_out, *(quoted(each.name) for each in self._columns if not each.in_key)]
        others += self._marks()
        single = ", ".join(f"max({each}) AS {each}" for each in others)
        return (
            f"{self._images()}, typed AS (\n{self._typed()}\n"
            f"), changes AS (\n"
            f"  SELECT {groups}, {single} FROM typed GROUP BY {groups}\n"
            f")"
        )

    def misfits(self) -> str:
        """The changes that the quarantine keeps out, as they are in the raw table."""
        position = ", ".join(POSITION)
        names = []
        for each in self._columns:
            name = quoted(each.name)
            read = f"from_json(both_images.raw, {sql_text(f'{name} string')}, map({_ANY_LENGTH})).{name}"
            there = f"{read} IS NOT NULL"
            names.append(f"CASE WHEN {there} AND {typed(each)} IS NULL THEN {sql_text(each.name)} END")
        single = ", ".join(f"max({each}) AS {each}" for each in ("op", "misfits", "raw"))
        return (
            f"{self._images(keeps_raw=True)}, misfits AS (\n"
            f"  SELECT both_images.op, {', '.join(f'both_images.{each}' for each in POSITION)}, both_images.raw,\n"
            f"    concat_ws(', ', {lines(names, indent=6)}) AS misfits\n{self._from_images(self._is_apart())}\n"
            f")\nSELECT {position}, {single} FROM misfits GROUP BY {position}"
        )

    def _images(self, *, keeps_raw: bool = False) -> str:
        """The beginning of the query: which rows count, and rows before and after their changes."""
        position = ", ".join(POSITION)
        of_table, of_raw = self._of_table(), self._of_table("raw.")
        moved = " OR ".join(f"NOT (images.old.{quoted(name)} <=> images.new.{quoted(name)})" for name in self._key)
        sides = (
            f"CASE WHEN op = 'delete' THEN array('old') WHEN op = 'update' AND old IS NOT NULL AND ({moved})"
            f" THEN array('new', 'old') ELSE array('new') END"
        )
        raw_side = ", CASE WHEN side = 'old' THEN before ELSE after END AS raw" if keeps_raw else ""
        raw = ", before, after" if keeps_raw else ""
        here, raw_at, lake, left_out = f"struct({position})", self._raw_at, self._lake.name, self._left_out
        return (
            f"WITH completions AS (\n"
            f"  SELECT source_table, max({here}) AS last FROM {lake}\n"
            f"  WHERE {of_table} AND op = 'complete' GROUP BY source_table\n"
            f"), truncations AS (\n"
            # A table that is read again stays as it was until that is complete.
            f"  SELECT raw.source_table,\n"
            f"    {self._last_truncations()},\n"
            f"    min(CASE WHEN raw.after IS NOT NULL AND (completions.last IS NULL OR {raw_at} > completions.last)"
            f" THEN {raw_at} END) AS incomplete\n"
            f"  FROM {lake} AS raw LEFT JOIN completions ON raw.source_table = completions.source_table\n"
            f"  WHERE {of_raw} AND raw.op IN ('truncate', 'incomplete') GROUP BY raw.source_table\n"
            f"), forms AS (\n"
            f"  SELECT raw.source_table, {self._known_forms()}\n"
            f"  FROM {lake} AS raw LEFT JOIN truncations ON raw.source_table = truncations.source_table\n"
            f"  WHERE {of_raw} AND raw.op IN ('schema', 'hold') AND {self._counts('raw.')}\n"
            f"  GROUP BY raw.source_table\n"
            f"), {self._read(of_table, raw)}), both_images AS (\n"
            # A union would read the raw table twice.
            f"  SELECT source_table, CASE WHEN side = 'old' THEN 'delete' ELSE op END AS op,\n"
            f"    CASE WHEN side = 'old' THEN old ELSE new END AS image,\n"
            f"    CASE WHEN side = 'new' THEN {left_out} END AS {left_out}, {position}{raw_side}\n"
            f"  FROM images LATERAL VIEW explode({sides}) sides AS side\n"
            f")"
        )

    def _of_table(self, at: str = "") -> str:
        """Which rows of the raw table are looked at. `at`: what stands before their columns."""
        of_table = f"{at}source_table = {sql_text(self._table)}"
        return of_table if self._begin is None else f"{of_table} AND NOT {is_before(self._begin, at)}"

    def _last_truncations(self) -> str:
        """The aggregates that say which rows don't count any more."""
        at = self._raw_at
        is_last = f"raw.op = 'truncate' AND (raw.after IS NULL OR {at} < completions.last)"
        return f"max(CASE WHEN {is_last} THEN {at} END) AS last"

    def _known_forms(self) -> str:
        """The aggregates that say whether rows have the columns of the definition."""
        return (
            f"max(CASE WHEN raw.op = 'hold' THEN raw.after END) AS reason,\n"
            f"    max(CASE WHEN raw.op = 'schema' AND {has_form(self._columns[-1].form)} THEN 1 ELSE 0 END) AS known"
        )

    def _read(self, of_table: str, raw: str) -> str:
        """The queries up to `images`: the rows before and after each change. `raw`: further columns to keep."""
        schema = self._schema((each.name, json_type(each.type)) for each in self._columns)
        return (
            f"images AS (\n"
            f"  SELECT source_table, op, from_json(before, {schema}) AS old,"
            f" from_json({self._after()}, {schema}) AS new, unchanged AS {self._left_out}, {', '.join(POSITION)}{raw}\n"
            f"  FROM {self._lake.name} WHERE {of_table} AND op IN ('read', 'insert', 'update', 'delete')\n"
        )

    def _after(self) -> str:
        """The text of a row after a change, with what columns have in it that came later."""
        text = "after"
        for each in self._fills:
            # No row before the column came has it.
            filled = f"concat({sql_text(each.json[:-1])}, ', ', substring({text}, 2))"
            text = f"CASE WHEN after IS NOT NULL AND {is_before(each.before)} THEN {filled} ELSE {text} END"
        return text

    def _schema(self, columns: Iterable[tuple[str, str]]) -> str:
        """The arguments of from_json for a row of some columns, with their types."""
        # Spark says in a column more that there is a value which it can't read, and leaves that NULL.
        listed = [*(f"{quoted(name)} {kind}" for name, kind in columns), f"{self._misfit} string"]
        options = f"map('columnNameOfCorruptRecord', {sql_text(self._misfit)}, {_ANY_LENGTH})"
        return f"{sql_text(', '.join(listed))}, {options}"

    def _counts(self, at: str) -> str:
        """Whether a row is behind the last truncation, and not of a table that is still being read again.

        `at`: what stands before the columns of its position.
        """
        place = f"struct({', '.join(f'{at}{each}' for each in POSITION)})"
        return (
            f"(truncations.last IS NULL OR {place} > truncations.last)"
            f" AND (truncations.incomplete IS NULL OR {place} < truncations.incomplete)"
        )

    def _typed(self) -> str:
        """The query of the changes with their types."""
        listed = [f"{typed(each)} AS {quoted(each.name)}" for each in self._columns]
        if self._keeps_misfits:
            listed.append(f"{self._is_misfit()} AS {self._misfit}")
            kept = "true"
        elif self._quarantines:
            kept = f"NOT {self._is_misfit()}"
        else:
            kept = self._fails_for_misfits()
        return (
            f"  SELECT both_images.op, both_images.{self._left_out},"
            f" {', '.join(f'both_images.{each}' for each in POSITION)},\n"
            f"    {lines(listed, indent=4)}\n{self._from_images(kept)}"
        )

    def _fails_for_misfits(self) -> str:
        """A condition that all rows meet, and that fails for a misfit."""
        at = ", ', ', ".join(f"CAST(both_images.{each} AS STRING)" for each in POSITION)
        said = f"concat({sql_text(self._misfit_said())}, {at}, ')')"
        return f"CASE WHEN {self._is_misfit()} THEN CAST(raise_error({said}) AS BOOLEAN) ELSE true END"

    def _from_images(self, kept: str) -> str:
        """The rows that count and meet a condition. Fails where they don't have the columns of the definition."""
        incomplete, outdated = sql_text(_incomplete(self._table)), sql_text(self._outdated())
        return (
            f"  FROM both_images LEFT JOIN truncations ON both_images.source_table = truncations.source_table\n"
            f"    LEFT JOIN forms ON both_images.source_table = forms.source_table\n"
            # All is one condition: a row that doesn't count must not fail.
            f"  WHERE CASE WHEN NOT ({self._counts('both_images.')}) THEN false\n"
            f"      WHEN forms.reason IS NOT NULL THEN CAST(raise_error(forms.reason) AS BOOLEAN)\n"
            f"      WHEN forms.known = 0 AND truncations.incomplete IS NOT NULL"
            f" THEN CAST(raise_error({incomplete}) AS BOOLEAN)\n"
            f"      WHEN forms.known = 0 THEN CAST(raise_error({outdated}) AS BOOLEAN)\n"
            f"      ELSE {kept} END"
        )

    def _is_apart(self) -> str:
        """Whether the quarantine has an image."""
        return self._is_misfit()

    def _is_misfit(self) -> str:
        """Whether a value of an image isn't one of its column's type. A delete needs its key alone."""
        lost = [f"both_images.image.{self._misfit} IS NOT NULL"]
        lost += [
            f"(both_images.image.{quoted(each.name)} IS NOT NULL AND {typed(each)} IS NULL)"
            for each in self._columns
            if json_type(each.type) != each.type
        ]
        keys = [f"{typed(each)} IS NULL" for each in self._columns if each.in_key]
        return f"CASE WHEN both_images.op = 'delete' THEN {' OR '.join(keys)} ELSE {' OR '.join(lost)} END"

    def _marks(self) -> list[str]:
        """Columns of the typed changes beside those of the source."""
        return [self._misfit] if self._keeps_misfits else []

    def _with_others(self, sent: str) -> str:
        """Changes with the values that updates left out, which are the latest there were by then.

        A change of which a value isn't known is left out if a later change of its row follows, and is an error else.
        """
        listed, computed, kept = self._filled(", ".join(map(quoted, self._key)), "{has_later}")
        if self._keeps_misfits:  # a change in quarantine must not fail for a value that isn't known
            kept = f"CASE WHEN {self._misfit} THEN false ELSE {kept} END"
        return self._selected(sent, listed, computed, kept)

    def _selected(self, sent: str, listed: list[str], computed: list[str], kept: str) -> str:
        return (
            f"WITH filled AS (\n  SELECT *,\n  {lines(computed)}\n  FROM {sent}\n)\n"
            f"SELECT op, {', '.join(POSITION)},\n  {lines(listed)}\nFROM filled WHERE {kept}"
        )

    def _filled(self, partition: str, is_left_out: str) -> tuple[list[str], list[str], str]:
        """The columns to show, window functions that these need, and which rows are shown.

        `partition`: columns of rows that have values for each other. `is_left_out`: a condition by which a change of
        which a value isn't known is left out.
        """
        listed = [quoted(each.name) for each in self._columns]
        by_key = f"OVER (PARTITION BY {partition} ORDER BY {', '.join(POSITION)})"
        position = ", ".join(f"{sql_text(each)}, {each}" for each in POSITION)
        # The values of a change that the quarantine has aren't known, as those of a row that is gone.
        op = f"CASE WHEN {self._misfit} THEN 'delete' ELSE op END" if self._keeps_misfits else "op"
        has_later = free(self._columns, "has_later")
        computed = [f"lead(op) {by_key} IS NOT NULL AS {has_later}"]
        conditions = []
        for number, each in enumerate(self._large, 1):
            known = free(self._columns, f"known_{number}")
            is_there = f"op = 'delete' OR NOT coalesce(array_contains({self._left_out}, {self._sent_as(each)}), false)"
            value = f"named_struct({position}, 'op', {op}, 'value', {quoted(each)})"
            computed.append(f"max(CASE WHEN {is_there} THEN {value} END) {by_key} AS {known}")
            conditions.append(
                f"CASE WHEN op = 'delete' OR {known}['op'] <> 'delete' THEN true"
                f" WHEN {is_left_out.format(has_later=has_later)} THEN false"
                f" ELSE CAST(raise_error({sql_text(_unknown(self._table, each))}) AS BOOLEAN) END"
            )
            listed[listed.index(quoted(each))] = f"{known}['value'] AS {quoted(each)}"
        return listed, computed, " AND ".join(conditions)

    def _outdated(self) -> str:
        """What is said where rows have other columns than the definition."""
        if not self._is_printed:
            return f"the columns of {self._table} have changed at the source meanwhile: refresh again"
        return (
            f"the columns of {self._table} changed at the source: print its definitions again, by"
            f" metastore capture definitions --into {self._lake.name} --table {self._table}"
        )

    def _misfit_said(self) -> str:
        """The beginning of a message that ends with a position."""
        how = (
            f"print its definitions by metastore capture definitions --misfits quarantine --into {self._lake.name}"
            f" --table {self._table}"
            if self._is_printed
            else "add MISFITS QUARANTINE to its definition"
        )
        return (
            f"a change of {self._table} has a value that the type of its column does not hold. To keep such changes"
            f" apart and go on, {how}. The first one found has the position ("
        )

    def _sent_as(self, name: str) -> str:
        """The name of a column in a row's list of those that an update left out."""
        return sql_text(name)


def is_before(position: Position, at: str = "") -> str:
    """Whether a row is before a position. `at`: what stands before the columns of its own."""
    epoch, commit, ordinal = (f"{at}{each}" for each in POSITION)
    return (
        f"({epoch} < {position.epoch} OR {epoch} = {position.epoch} AND ({commit} < {position.commit_lsn}"
        f" OR {commit} = {position.commit_lsn} AND {ordinal} < {position.ordinal}))"
    )


def has_form(form: str) -> str:
    """Whether a `schema` row has the columns that a fingerprint is of, and perhaps others after them."""
    return f"contains(raw.after, {sql_text(mark_of(form))})"


def _incomplete(table: str) -> str:
    return (
        f"{table} is being read again, since it changed at the source:"
        " refresh when metastore capture status says that its snapshot is done"
    )


def typed(column: CapturedColumn) -> str:
    """The value of a column; NULL where there is none, or where it is a misfit."""
    value = f"both_images.image.{quoted(column.name)}"
    if column.type == "binary":
        return f"unhex(substring({value}, 3))"  # after \x
    if column.type == "date":
        # By a cast alone 0044-03-15 BC were a day of our era, and a number of days were a year.
        return f"CASE WHEN {value} RLIKE '^[0-9]{{4,}}-[0-9]{{2}}-[0-9]{{2}}$' THEN try_cast({value} AS DATE) END"
    if column.type == "tinyint":
        return f"try_cast({value} AS TINYINT)"
    return f"try_cast({value} AS TIMESTAMP)" if column.type in _AS_TEXT else value


def json_type(type: str) -> str:
    """The type as which from_json reads a column."""
    if type == "tinyint":  # as that Spark reads 200 as -56
        return "smallint"
    return "string" if type in _AS_TEXT or type == "binary" else type


def lines(listed: Iterable[str], *, indent: int = 2) -> str:
    return f",\n{' ' * indent}".join(listed)


def free(columns: Iterable[CapturedColumn], name: str) -> str:
    """A name that none of the columns has: this one, or this one with a number."""
    taken = {each.name.lower() for each in columns}
    return next(each for each in (name, *(f"{name}_{count}" for count in range(len(taken)))) if each not in taken)


def _unknown(table: str, column: str) -> str:
    return (
        f"an update of {table} left out its large value {column}, and no earlier row of the raw table has it: let the"
        " source send the row again, by an update that changes the value or by another snapshot; REPLICA IDENTITY FULL"
        " of a table in Postgres prevents this"
    )


def sql_text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
