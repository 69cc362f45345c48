"""Merging by key against a plain model: whatever is merged when, the rows are those of the model."""

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.formats.keyed_table import DELETED, INSTANT, KeyedTable
from lake.tables.keyed.batches import log_records
from lake.tables.keyed.changes import CHANGE_TYPE, net_changes
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.merging import Merged, merge
from tests.lake.tables.keyed.model import Key, Model, Record, instants_by_key, rows_by_key
from tests.lake.tables.keyed.strategies import SCHEMA, batches, definition, histories, properties, table_of
from tests.support.long_runs import share_of


class Bucket:
    """The files of one bucket, in memory."""

    def __init__(self, table: KeyedTable) -> None:
        self.table = table
        self.files: list[pa.Table] = []

    def write(self, batch: list[Record], instant: str) -> None:
        self.files.append(log_records(self.table, table_of(batch), instant))

    def read(self) -> Merged:
        return merge(self.table, SCHEMA, self.files)

    def compact(self) -> None:
        merged = self.read()
        self.files = [merged.rows]
        if merged.tombstones.num_rows:
            self.files.append(_filled(merged.tombstones))


def _filled(tombstones: pa.Table) -> pa.Table:
    """Tombstones with all columns, as they are read from their file."""
    missing = [
        pa.nulls(tombstones.num_rows, field.type) if field.name not in tombstones.column_names else None
        for field in SCHEMA
    ]
    columns = [
        tombstones.column(field.name) if nulls is None else pa.chunked_array([nulls])
        for field, nulls in zip(SCHEMA, missing, strict=True)
    ]
    names = [*SCHEMA.names, INSTANT, DELETED]
    return pa.table([*columns, tombstones.column(INSTANT), tombstones.column(DELETED)], names=names)


def _instant(number: int) -> str:
    return f"2026010100000000{number}"


SHORT = settings(max_examples=25, deadline=None)
LONG = settings(max_examples=share_of(7_000), deadline=None)

History = tuple[KeyedTable, list[list[Record] | None]]


@SHORT
@given(histories())
def test_rows_are_the_models_whenever_files_are_merged(history: History) -> None:
    check_rows(history)


@pytest.mark.long
@pytest.mark.timeout(1800)
@LONG
@given(histories())
def test_rows_are_the_models_in_many_histories(history: History) -> None:
    check_rows(history)


@pytest.mark.long
@SHORT
@given(st.data())
def test_a_batch_has_no_order(data: st.DataObject) -> None:
    check_batch(data)


@pytest.mark.long
@pytest.mark.timeout(1800)
@LONG
@given(st.data())
def test_many_batches_have_no_order(data: st.DataObject) -> None:
    check_batch(data)


@SHORT
@given(histories(), st.data())
def test_changes_are_what_turns_one_state_into_another(history: History, data: st.DataObject) -> None:
    check_changes(history, data)


@pytest.mark.long
@pytest.mark.timeout(1800)
@LONG
@given(histories(), st.data())
def test_changes_of_many_histories(history: History, data: st.DataObject) -> None:
    check_changes(history, data)


def check_rows(history: History) -> None:
    table, steps = history
    merged_late, merged_at_once, model = Bucket(table), Bucket(table), Model(table, SCHEMA.names)
    for number, batch in enumerate(steps):
        if batch is None:
            merged_late.compact()
            continue
        model.apply(batch, _instant(number))
        merged_late.write(batch, _instant(number))
        merged_at_once.write(batch, _instant(number))
        merged_at_once.compact()
        for bucket in (merged_late, merged_at_once):
            rows = bucket.read().rows
            assert rows_by_key(table, rows) == model.rows
            changed = instants_by_key(table, rows)
            assert changed == {key: model.instants[key] for key in model.rows}
            keys = [(row["id"], row["part"]) for row in rows.to_pylist()]
            assert keys == sorted(keys)


def check_batch(data: st.DataObject) -> None:
    """Several versions of a key come to the same record in any order, or are refused in any order."""
    table = definition(data.draw(properties))
    batch = data.draw(batches(table, repeats=True))
    turned = list(batch)
    random.Random(data.draw(st.integers(0, 1000))).shuffle(turned)
    try:
        found = log_records(table, table_of(batch), _instant(1))
    except UnfitRows:
        with pytest.raises(UnfitRows):
            log_records(table, table_of(turned), _instant(1))
        return
    assert log_records(table, table_of(turned), _instant(1)).equals(found)
    model = Model(table, SCHEMA.names)
    model.apply(turned, _instant(1))
    assert rows_by_key(table, merge(table, SCHEMA, [found]).rows) == model.rows


def check_changes(history: History, data: st.DataObject) -> None:
    table, steps = history
    states, instants = [Model(table, SCHEMA.names).rows], [dict[Key, str]()]
    bucket, model, logs = Bucket(table), Model(table, SCHEMA.names), [0]
    merged = [bucket.read()]
    for number, batch in enumerate(steps):
        if batch is not None:
            model.apply(batch, _instant(number))
            bucket.write(batch, _instant(number))
        states.append(dict(model.rows))
        instants.append(dict(model.instants))
        merged.append(bucket.read())
        logs.append(len(bucket.files))
    first = data.draw(st.integers(0, len(states) - 1))
    last = data.draw(st.integers(first, len(states) - 1))
    between = bucket.files[logs[first] : logs[last]]
    before, after = merged[first], merged[last].rows
    deletes = merge(table, SCHEMA, [before.rows, _filled(before.tombstones), *between]).deletes
    changes = net_changes(table, before.rows, after, deletes).to_pylist()
    state = dict(states[first])
    for each in changes:
        kind, instant = each.pop(CHANGE_TYPE), each.pop(INSTANT)
        key = (each["id"], each["part"])
        if kind != "update_preimage":
            assert instant == instants[last][key]
        match kind:
            case "insert":
                assert key not in state
                state[key] = each
            case "update_preimage":
                assert state[key] == each
                assert states[last][key] != each
            case "update_postimage":
                state[key] = each
            case "delete":
                assert state.pop(key) == each
    assert state == states[last]
    unchanged = {key for key in states[first] if states[last].get(key) == states[first][key]}
    assert not unchanged & {(each["id"], each["part"]) for each in changes}
