"""The decoder of pgoutput, its values, and positions: without a server."""

import json
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.capture.errors import CaptureError
from lake.capture.postgres.pgoutput import UNCHANGED, Begin, Change, Column, Commit, Message, Truncate, decode
from lake.capture.postgres.positions import SnapshotOfTransactions, format_lsn, parse_lsn
from lake.capture.postgres.state import State
from lake.capture.postgres.values import RowEncoder, lake_type, numeric_limits
from lake.capture.state import Phase, TableProgress

VALUE = st.one_of(st.none(), st.just(UNCHANGED), st.text(st.characters(exclude_characters="\0", codec="utf-8")))


def row(values: list[object]) -> bytes:
    parts = [pack("!H", len(values))]
    for each in values:
        if isinstance(each, str):
            parts.append(b"t" + pack("!I", len(each.encode())) + each.encode())
        else:
            parts.append(b"n" if each is None else b"u")
    return b"".join(parts)


@given(st.lists(VALUE), st.lists(VALUE))
def test_rows(old: list[object], new: list[object]) -> None:
    relation = pack("!I", 17)
    assert decode(b"I" + relation + b"N" + row(new)) == Change("I", 17, None, False, new)
    assert decode(b"U" + relation + b"N" + row(new)) == Change("U", 17, None, False, new)
    assert decode(b"U" + relation + b"K" + row(old) + b"N" + row(new)) == Change("U", 17, old, True, new)
    assert decode(b"U" + relation + b"O" + row(old) + b"N" + row(new)) == Change("U", 17, old, False, new)
    assert decode(b"D" + relation + b"O" + row(old)) == Change("D", 17, old, False, None)


def test_other_messages() -> None:
    assert decode(b"B" + pack("!qqI", 77, 0, 5)) == Begin(77, 946_684_800_000_000, 5)
    assert decode(b"C" + pack("!Bqqq", 0, 77, 99, 0)) == Commit(77, 99)
    assert decode(b"T" + pack("!IBII", 2, 0, 8, 9)) == Truncate((8, 9))
    assert decode(b"M" + pack("!Bq", 1, 77) + b"p\0" + pack("!I", 3) + b"abc") == Message("p", b"abc")
    assert decode(b"O" + b"x") is None
    with pytest.raises(CaptureError, match="unknown kind 'S'"):
        decode(b"S")
    with pytest.raises(CaptureError, match="only values in text form"):
        decode(b"I" + pack("!I", 1) + b"N" + pack("!H", 1) + b"b")


def test_values_as_json() -> None:
    types = {"i": 23, "n": 1700, "d": 701, "b": 16, "s": 25, "j": 3802}
    limits = {"n": (30 << 16 | 2) + 4}
    encoder = RowEncoder([Column(name, oid, limits.get(name, -1), name == "i") for name, oid in types.items()])
    values = ["7", "100000000000000000000.10", "1e-07", "t", 'a"\\\n\x01é', '{"x": 1}']
    made = encoder.encode(values)
    assert made.startswith('{"i":7,"n":100000000000000000000.10,"d":1e-07,"b":true,')
    assert json.loads(made)["s"] == values[4]
    assert json.loads(made)["j"] == '{"x": 1}'
    assert encoder.encode(["1", "NaN", "-Infinity", "f", None, UNCHANGED]) == (
        '{"i":1,"n":"NaN","d":"-Infinity","b":false,"s":null}'
    )
    assert encoder.encode_key(values) == '{"i":7}'


def test_types() -> None:
    def numeric(precision: int, scale: int) -> Column:
        return Column("n", 1700, (precision << 16 | scale & 0x7FF) + 4, False)

    assert lake_type(numeric(12, 2)) == "decimal(12,2)"
    assert lake_type(numeric(39, 2)) == "string"
    assert numeric_limits(numeric(3, -2).modifier) == (3, -2)
    assert lake_type(numeric(3, -2)) == "string"
    assert lake_type(Column("n", 1700, -1, False)) == "string"
    assert lake_type(Column("e", 99_999, -1, False)) == "string"


@given(st.integers(0, (1 << 64) - 1))
def test_positions(lsn: int) -> None:
    assert parse_lsn(format_lsn(lsn)) == lsn


@given(st.integers(1, 1 << 40), st.integers(-1000, 1000))
def test_transaction_numbers_of_32_bits(xmax: int, distance: int) -> None:
    xid = max(0, xmax + distance)
    assert SnapshotOfTransactions(1, xmax, frozenset()).whole_xid(xid % (1 << 32)) == xid


def test_what_a_snapshot_sees() -> None:
    seen = SnapshotOfTransactions.parse("10:20:12,15")
    assert [seen.sees(each) for each in (9, 11, 12, 15, 19, 20)] == [True, True, False, False, True, False]
    assert SnapshotOfTransactions.parse("10:10:").running == frozenset()


def test_a_state_comes_back_from_an_instant() -> None:
    state = State("slot", "shop", "7", 1, "db", epoch=2, batch=5, lsn=99)
    state.tables["public.t"] = TableProgress(7, Phase.CHUNKS, ("a", "b"), ("1", "x"), 10, 0, "ff")
    state.rereads["public.t"] = {("2", "y")}
    assert State.parse(state.metadata(3)) == state
    assert State.parse(b'{"operation": "upsert"}') is None
    assert State.parse(b"not json") is None
    assert State.parse(None) is None
