"""Tables whose columns came before are read as if they had been read in full."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.codec import binary, known_columns
from lake.protocol.codec.plain import to_plain
from lake.protocol.codec.shared_columns import decode_sharing
from lake.protocol.codec.shared_list import SharedList
from lake.protocol.codec.splice import descriptor_body
from lake.protocol.hive import AlterTableRequest, FieldSchema, StorageDescriptor, Table
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.support import builders

COLUMNS = tuple(f"column_{number}:decimal(10,2)#the {number}th" for number in range(30))
UNKNOWN = b"\x08\x00\x63\x00\x00\x00\x01"


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    known_columns._known.clear()
    yield
    known_columns._known.clear()


def _table(*columns: str, **fields: object) -> Table:
    made = builders.table("d", "t", sd=builders.storage(*(columns or COLUMNS), location="file:/t"))
    return made.replace(**fields)


def _alter(table: Table | None) -> Struct:
    arguments = METHODS["alter_table"].args()
    arguments.dbname, arguments.tbl_name, arguments.new_tbl = "d", "t", table  # type: ignore[attr-defined]
    return arguments


def _request(table: Table | None) -> Struct:
    return AlterTableRequest("hive", "d", "t", table)


def _read(encoded: bytes, cls: type[Struct]) -> Struct:
    """What is read, which must be what would be read by itself."""
    read, alone = decode_sharing(cls, b"before it" + encoded, 9), binary.decode_preserving(cls, encoded)
    assert read == alone
    assert binary.encode(read) == binary.encode(alone)
    return read


def _columns(message: Struct) -> list[FieldSchema] | None:
    table = getattr(message, "new_tbl", None) or message.table  # type: ignore[attr-defined]
    assert table.sd is not None
    columns: list[FieldSchema] | None = table.sd.cols
    return columns


@pytest.mark.parametrize("message", [_alter, _request])
def test_columns_that_came_before_are_the_same_list(message: type[Struct]) -> None:
    first, second, others = (
        _columns(_read(binary.encode(message(each)), type(message(each))))
        for each in (_table(), _table(owner="somebody", parameters={"a": "b"}), _table("other:string", *COLUMNS))
    )
    assert isinstance(first, SharedList)
    assert first is second
    assert others is not first


def test_a_shared_list_is_as_good_as_another() -> None:
    for _ in range(2):
        message = _read(binary.encode(_alter(_table())), type(_alter(None)))
        table: Table = message.new_tbl  # type: ignore[attr-defined]
        assert table.sd is not None
        plain = _table().sd
        assert plain is not None
        assert descriptor_body(table.sd) == descriptor_body(plain)
        assert to_plain(table) == to_plain(_table())


def test_columns_within_a_text_are_not_the_tables() -> None:
    """Whether the table's own columns are the same, others, or lacking."""
    sd = _table().sd
    assert sd is not None
    text = binary.encode(_alter(_table())).decode("latin-1")
    for columns in (sd.cols, [FieldSchema("a", "string")], [], None):
        for owner in ("x", text):
            table = _table(owner=owner, parameters={"b": text}, sd=sd.replace(cols=columns))
            for _ in range(2):
                _read(binary.encode(_alter(table)), type(_alter(None)))


def test_a_location_before_the_columns() -> None:
    """No client of Hive's sends it so, but it is allowed."""
    sd = _table().sd
    assert sd is not None
    encoded = binary.encode(_alter(_table(owner="x")))
    columns, location = (
        binary.encode_fields(StorageDescriptor(cols=sd.cols)),
        binary.encode_fields(StorageDescriptor(location=sd.location)),
    )
    assert columns + location in encoded
    for _ in range(2):
        _read(encoded, type(_alter(None)))
        decode_sharing(type(_alter(None)), encoded.replace(columns + location, location + columns))


def test_no_table_and_no_descriptor() -> None:
    for table in (None, Table(), _table(sd=None), _table(sd=StorageDescriptor())):
        for _ in range(2):
            _read(binary.encode(_alter(table)), type(_alter(None)))


@pytest.mark.parametrize("place", ["column", "descriptor", "table"])
def test_fields_that_nobody_knows_are_kept(place: str) -> None:
    for known_before in (False, True):
        if known_before:
            _read(binary.encode(_alter(_table())), type(_alter(None)))
        table = _table()
        assert table.sd is not None and table.sd.cols is not None
        {"column": table.sd.cols[3], "descriptor": table.sd, "table": table}[place].unknown = UNKNOWN
        for each in (table.sd, table):
            each.unknown = getattr(each, "unknown", b"")
        message = _alter(table)
        message.unknown = b""
        for _ in range(2):
            read = _read(binary.encode(message), type(message))
            assert UNKNOWN in binary.encode(read)


def test_text_that_is_not_utf8_is_refused() -> None:
    encoded = binary.encode(_alter(_table(owner="owner")))
    _read(encoded, type(_alter(None)))
    for wrong in (encoded.replace(b"the 3th", b"the \xff\xffh"), encoded.replace(b"owner", b"own\xffr")):
        with pytest.raises(UnicodeDecodeError):
            decode_sharing(type(_alter(None)), wrong)


def test_few_and_short_lists_are_kept() -> None:
    for number in range(known_columns._KNOWN + 10):
        _read(binary.encode(_alter(_table(f"c{number}:string", *COLUMNS))), type(_alter(None)))
    _read(binary.encode(_alter(_table(*COLUMNS * 100))), type(_alter(None)))
    assert len(known_columns._known) == known_columns._KNOWN
    assert max(len(encoded) for encoded, _ in known_columns._known.values()) <= known_columns._LONGEST


_names = st.text(st.characters(codec="utf-8"), max_size=20)
_fields = st.builds(FieldSchema, name=_names, type=st.sampled_from(["string", "bigint"]), comment=st.none() | _names)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_message_is_read_as_by_itself(data: st.DataObject) -> None:
    columns = st.sampled_from(data.draw(st.lists(st.none() | st.lists(_fields, max_size=6), min_size=1, max_size=3)))
    for _ in range(4):
        sd = data.draw(st.builds(StorageDescriptor, cols=columns, location=st.none() | _names))
        table = data.draw(st.builds(Table, tableName=_names, sd=st.none() | st.just(sd), owner=st.none() | _names))
        message = data.draw(st.sampled_from([_alter, _request]))(table)
        _read(binary.encode(message), type(message))
