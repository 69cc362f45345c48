"""What the generated calls are made of: names, texts and numbers, most of them good, some odd."""

from typing import Any

from hypothesis import strategies as st

from lake.protocol.hive import FieldSchema, Order, SerDeInfo, SkewedInfo, StorageDescriptor
from tests.parity.calls import Call
from tests.support.builders import SERDE

Strategy = st.SearchStrategy[Any]


def mostly(*usual: Any, odd: Any = ()) -> Strategy:
    """One of the usual values, and now and then an odd one."""
    common = [value for value in usual for _ in range(max(1, 6 * max(1, len(odd)) // (2 * len(usual))))]
    return st.sampled_from([*common, *odd])


def call(method: str, *arguments: Strategy) -> Strategy:
    return st.tuples(*arguments).map(lambda given: Call(method, *given))


def struct(kind: type, **fields: Strategy) -> Strategy:
    """A Thrift struct with generated fields."""
    return st.fixed_dictionaries(fields).map(lambda given: kind(**given))


DATABASES = mostly("N_a", odd=("N_b", "N_A", "N_nosuch", "", None, "N_ü", " N_a "))
TABLES = mostly("t", "u", "v", odd=("T", "nosuch", "", None, "t.id", " t"))
COLUMN_TYPES = mostly(
    *("string", "int", "bigint"),
    odd=(
        "decimal(10,2)",
        "array<int>",
        "struct<a:int,b:map<string,int>>",
        "varchar(3)",
        "INT",
        "nosuch",
        "",
        None,
        "date",
    ),
)
COLUMN_NAMES = mostly("id", "name", "x", odd=("ID", "ü", "", None, "a b", "{n*129}", "ds"))
TEXTS = st.sampled_from(
    ["", "x", "X", "a b", "it's", 'say "x"', "ü", "日本", "😀", "%", "a/b", "{x*300}", "{x*4000}", "\n", "\\"]
)
FLAGS = st.booleans()
KEYS = st.sampled_from(
    ["a", "b", "EXTERNAL", "comment", "numFiles", "transient_lastDdlTime", "ü", "A", "{k*256}", "EMPTY"]
)
PARAMETERS = st.one_of(
    st.none(),
    st.dictionaries(KEYS, mostly("x", "1", "TRUE", odd=("", "ü", "{x*4000}", "😀")), max_size=3),
)
COMMENTS = mostly(None, "said", odd=("", "ü", "{c*256}"))
INT32 = st.sampled_from([0, 1, -1, 5, 2**31 - 1, -(2**31)])
COUNTS = mostly(-1, 1, 2, odd=(0, 32767, -32768, -2))


def columns(min_size: int = 0, max_size: int = 3) -> Strategy:
    field = struct(FieldSchema, name=COLUMN_NAMES, type=COLUMN_TYPES, comment=COMMENTS)
    usual = st.sampled_from(
        [
            [FieldSchema(name="id", type="bigint"), FieldSchema(name="name", type="string")],
            [FieldSchema(name="id", type="bigint"), FieldSchema(name="name", type="string", comment="said")],
            [FieldSchema(name="id", type="int")],
            [FieldSchema(name="Id", type="string"), FieldSchema(name="x", type="date")],
        ]
    )
    return st.one_of(usual, usual, st.lists(field, min_size=min_size, max_size=max_size))


LOCATIONS = mostly(
    None,
    odd=(
        "SIDE/x",
        "SIDE/x/",
        "file:SIDE/y",
        "file://SIDE/z",
        "WAREHOUSE/N_a.db/elsewhere",
        "",
        "relative",
        "SIDE/a b",
        "SIDE/%25",
        "SIDE//d",
        "nosuch://h/p",
        "SIDE/ü",
    ),
)
SERDES = st.one_of(
    st.just(SerDeInfo(serializationLib=SERDE)),
    st.just(SerDeInfo(serializationLib=SERDE)),
    struct(
        SerDeInfo,
        name=mostly(None, "n", odd=("", "ü")),
        serializationLib=mostly(SERDE, odd=(None, "")),
        parameters=PARAMETERS,
    ),
)


def storage(locations: Strategy = LOCATIONS) -> Strategy:
    usual = st.builds(
        lambda cols, place: StorageDescriptor(cols=cols, location=place, serdeInfo=SerDeInfo(serializationLib=SERDE)),
        columns(),
        locations,
    )
    full = struct(
        StorageDescriptor,
        cols=st.one_of(columns(), st.none()),
        location=locations,
        inputFormat=mostly("in", odd=(None, "")),
        outputFormat=mostly("out", odd=(None, "")),
        compressed=st.sampled_from([None, True, False]),
        numBuckets=st.sampled_from([None, 0, -1, 4]),
        serdeInfo=st.one_of(SERDES, st.none()),
        bucketCols=st.sampled_from([None, [], ["id"], ["Name", "id"], ["nosuch"]]),
        sortCols=st.sampled_from(
            [None, [], [Order(col="Id", order=1)], [Order(col="x", order=0), Order(col="id", order=1)]]
        ),
        parameters=PARAMETERS,
        skewedInfo=st.sampled_from(
            [
                None,
                SkewedInfo(),
                SkewedInfo(skewedColNames=["Id"], skewedColValues=[["1"], ["2"]], skewedColValueLocationMaps={}),
                SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
            ]
        ),
        storedAsSubDirectories=st.sampled_from([None, True, False]),
    )
    return st.one_of(usual, usual, full)
