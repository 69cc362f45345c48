"""Writes the queries of a table's typed changes while a change of its columns is held: the agreed columns flow on."""

from collections.abc import Iterator, Sequence

from lake.capture.schema_changes.flow import Fill, Held, LaterColumns
from lake.capture.schema_changes.model import Column, Position
from lake.capture.schemas import EMPTIED
from lake.capture.typed_changes import (
    POSITION,
    CapturedColumn,
    TypedChanges,
    free,
    has_form,
    is_before,
    json_type,
    lines,
    sql_text,
    typed,
)
from lake.protocol.formats.spark_names import quoted
from lake.tables.lake import LakeTable


class HeldChanges(TypedChanges):
    """Writes the queries of a table of which a change is held.

    Rows before the change count as they did then. Once the table is read again, rows from before that are shown where
    later ones of the same key are there and wait; so rows that the source doesn't have any more are gone.
    """

    def __init__(
        self,
        lake: LakeTable,
        table: str,
        columns: list[CapturedColumn],
        key: list[str],
        fills: Sequence[Fill],
        held: Held,
        *,
        quarantines: bool,
        is_printed: bool,
        begin: Position | None,
    ) -> None:
        columns = [each._replace(may_be_unchanged=each.may_be_unchanged or each.name in held.large) for each in columns]
        super().__init__(lake, table, columns, key, fills, quarantines=quarantines, is_printed=is_printed, begin=begin)
        self._held = held
        self._keeps_misfits = True  # the row before a change in quarantine is shown, so that it must be known
        self._waits = free(columns, "waits")
        self._is_later = free(columns, "is_later")
        self._round = free(columns, "round")

    @property
    def needs_others(self) -> bool:
        return True

    def _last_truncations(self) -> str:
        # What the table was read again for before the change counts as ever, and later for whether rows are there.
        at, is_later = self._raw_at, f"NOT {is_before(self._held.since, 'raw.')}"
        if self._held.until is not None:
            is_later += f" AND {is_before(self._held.until, 'raw.')}"
        again = f"raw.op = 'truncate' AND raw.after IS NOT NULL AND {at} < completions.last"
        return (
            f"max(CASE WHEN raw.op = 'truncate' AND raw.after IS NULL"
            f" OR {again} AND ({is_before(self._held.since, 'raw.')} OR raw.after = {sql_text(EMPTIED)})"
            f" THEN {at} END) AS last,\n"
            f"    max(CASE WHEN {again} AND {is_later} THEN {at} END) AS again"
        )

    def _known_forms(self) -> str:
        held = self._held
        is_new = f"NOT {is_before(_after(held.known), 'raw.')}"
        is_other = f"raw.op = 'hold' OR NOT {has_form(held.form)}"
        # Behind `until` nothing counts, so that it needn't be known.
        known = "1" if held.until is not None else f"CASE WHEN {is_new} AND ({is_other}) THEN 0 ELSE 1 END"
        return f"CAST(NULL AS STRING) AS reason, min({known}) AS known"

    def _counts(self, at: str) -> str:
        until = "" if self._held.until is None else f" AND {is_before(self._held.until, at)}"
        return super()._counts(at) + until

    def _read(self, of_table: str, raw: str) -> str:
        position = ", ".join(POSITION)
        parsed, images = [], []
        conditions = [*self._conditions()]
        for side, name in (("before", "old"), (self._after(), "new")):
            cases = []
            for number, (condition, later) in enumerate(conditions):
                listed = self._schema(_sent(self._columns, later))
                parsed.append(f"from_json(CASE WHEN {condition} THEN {side} END, {listed}) AS {name}_{number}")
                cases.append(f"WHEN {condition} THEN {self._agreed(f'{name}_{number}', later)}")
            images.append(f"CASE {' '.join(cases)} END AS {name}")
        return (
            f"parsed AS (\n"
            f"  SELECT source_table, op, unchanged AS {self._left_out}, {position}{raw},\n"
            f"    {lines(parsed, indent=4)}\n"
            f"  FROM {self._lake.name} WHERE {of_table} AND op IN ('read', 'insert', 'update', 'delete')\n"
            f"), images AS (\n"
            f"  SELECT source_table, op, {self._left_out}, {position}{raw},\n    {lines(images, indent=4)}\n"
            f"  FROM parsed\n"
        )

    def _conditions(self) -> Iterator[tuple[str, LaterColumns | None]]:
        """By which columns a row is read, each time with the condition for it; None for the agreed ones."""
        ends = [each.at for each in self._held.later]
        yield (is_before(ends[0]) if ends else "true"), None
        for number, each in enumerate(self._held.later):
            is_last = number + 1 == len(ends)
            yield f"NOT {is_before(each.at)}" + ("" if is_last else f" AND {is_before(ends[number + 1])}"), each

    def _agreed(self, row: str, later: LaterColumns | None) -> str:
        """A row that was read by its own columns, with the agreed ones: what can't be told is NULL, and it waits."""
        fields, unknown = [], []
        for each in self._columns:
            now = None if later is None else later.columns[each.name]
            kind = json_type(each.type)
            if later is None or (now is not None and now.type == each.type):
                value = f"{row}.{quoted(each.name if now is None else now.name)}"
            elif now is None:
                value = f"CAST(NULL AS {kind})"
                unknown.append("true")
            else:
                sent = f"{row}.{quoted(now.name)}"
                made = f"try_cast({sent} AS {each.type})"
                is_same = f"try_cast({made} AS {json_type(now.type)}) <=> {sent}"
                value = f"CAST(CASE WHEN {is_same} THEN {made} END AS {kind})"
                unknown.append(f"NOT ({is_same})")
            fields.append(f"{sql_text(each.name)}, {value}")
        waits = f"CASE WHEN {' OR '.join(unknown)} THEN 'waits' END" if unknown else "CAST(NULL AS STRING)"
        fields += [
            f"{sql_text(self._misfit)}, {row}.{self._misfit}",
            f"{sql_text(self._waits)}, CAST({waits} AS STRING)",
        ]
        return f"CASE WHEN {row} IS NOT NULL THEN named_struct({', '.join(fields)}) END"

    def _typed(self) -> str:
        at = f"struct({', '.join(f'both_images.{each}' for each in POSITION)})"
        waits = f"both_images.op <> 'delete' AND both_images.image.{self._waits} IS NOT NULL"
        again = enumerate(self._held.again)
        rounds = " ".join(f"WHEN {is_before(each, 'both_images.')} THEN {number}" for number, each in again)
        listed = [f"{typed(each)} AS {quoted(each.name)}" for each in self._columns]
        listed += [
            f"{self._is_misfit()} AS {self._misfit}",
            f"{waits} AS {self._waits}",
            f"(truncations.again IS NULL OR {at} > truncations.again) AS {self._is_later}",
            f"CASE {rounds} ELSE {len(self._held.again)} END AS {self._round}" if rounds else f"0 AS {self._round}",
        ]
        others = "true" if self._quarantines else self._fails_for_misfits()
        no_key = " OR ".join(f"{typed(each)} IS NULL" for each in self._columns if each.in_key)
        kept = (
            f"CASE WHEN {is_before(self._held.since, 'both_images.')} THEN {others}"
            # No row that is shown has a key that can't be told.
            f" WHEN {no_key} THEN false WHEN {waits} THEN true ELSE {others} END"
        )
        return (
            f"  SELECT both_images.op, both_images.{self._left_out},"
            f" {', '.join(f'both_images.{each}' for each in POSITION)},\n"
            f"    {lines(listed, indent=4)}\n{self._from_images(kept)}"
        )

    def _is_apart(self) -> str:
        return f"{self._is_misfit()} AND both_images.image.{self._waits} IS NULL"

    def _marks(self) -> list[str]:
        return [self._misfit, self._waits, self._is_later, self._round]

    def _with_others(self, sent: str) -> str:
        key = ", ".join(map(quoted, self._key))
        is_there = free(self._columns, "is_there")
        windows = [f"max({self._is_later}) OVER (PARTITION BY {key}) AS {is_there}"]
        listed, kept = [quoted(each.name) for each in self._columns], "true"
        if self._large:
            # What the table had before it was read again needn't be what it has now.
            rounds = f"{key}, {self._is_later}, {self._round}"
            listed, computed, kept = self._filled(rounds, f"{{has_later}} OR NOT {self._is_later}")
            windows += computed
        is_shown = f"CASE WHEN {self._misfit} OR {self._waits} OR NOT {is_there} THEN false ELSE {kept} END"
        return self._selected(sent, listed, windows, is_shown)

    def _sent_as(self, name: str) -> str:
        found = [name, *(now.name for each in self._held.later if (now := each.columns[name]) is not None)]
        if len({*found}) == 1:
            return sql_text(name)
        cases = []
        for condition, later in self._conditions():
            now = None if later is None else later.columns[name]
            cases.append(f"WHEN {condition} THEN {sql_text(name if now is None else now.name)}")
        return f"CASE {' '.join(cases)} END"


def _sent(columns: list[CapturedColumn], later: LaterColumns | None) -> Iterator[tuple[str, str]]:
    """The columns by which a row is read, with the types that JSON has them as."""
    for each in columns:
        now: CapturedColumn | Column | None = each if later is None else later.columns[each.name]
        if now is not None:
            yield now.name, json_type(now.type)


def _after(position: Position) -> Position:
    return position._replace(ordinal=position.ordinal + 1)
