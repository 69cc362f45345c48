"""Generated calls on partitions of tables `t`, `u` and `e` with the same keys."""

import functools
import re
from collections.abc import Sequence

from hypothesis import strategies as st

from lake.protocol.hive import (
    AddPartitionsRequest,
    DropPartitionsExpr,
    DropPartitionsRequest,
    FieldSchema,
    Partition,
    PartitionListComposingSpec,
    PartitionsByExprRequest,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionValuesRequest,
    PartitionWithoutSD,
    RequestPartsSpec,
)
from tests.parity.calls import Call, Expression, Script
from tests.parity.tables import CONTEXTS
from tests.parity.values import (
    COUNTS,
    DATABASES,
    FLAGS,
    LOCATIONS,
    PARAMETERS,
    Strategy,
    call,
    columns,
    mostly,
    storage,
    struct,
)
from tests.support.builders import database, external_table, table
from tests.support.builders import storage as plain_storage

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
VALUES: dict[str, tuple[str, ...]] = {
    "string": (
        *(
            "a",
            "b",
            "A",
            "2020-01-01",
            "1",
            "10",
            "9",
            "a b",
            "a/b",
            "a=b",
            "a%b",
            "%41",
            "ü",
            "日本",
            "😀",
            "it's",
            'say "x"',
            "a\\b",
        ),
        *(
            "",
            DEFAULT,
            "{x*256}",
            "{x*257}",
            "{é*200}",
            "null",
            ".",
            "..",
            "a\nb",
            "a#b",
            "*",
            "a:b",
            "}",
            "{",
            "[",
            "^",
            "a+b",
            " ",
            "?",
        ),
        *("a,b", "\t", "~", "\x7f", "'", '"', "1.0", "{x*128}"),
    ),
    "int": (
        "1",
        "2",
        "10",
        "9",
        "-1",
        "007",
        "2147483647",
        "2147483648",
        "-2147483648",
        "1.5",
        "x",
        "",
        DEFAULT,
        " 1",
        "+1",
        "1e3",
    ),
    "bigint": ("1", "-1", "9223372036854775807", "9223372036854775808", "01", "x", DEFAULT),
    "smallint": ("1", "-1", "32767", "32768", "x"),
    "date": (
        "2020-01-01",
        "2020-01-02",
        "2020-1-1",
        "2020-02-30",
        "1969-12-31",
        "x",
        "0001-01-01",
        "9999-12-31",
        DEFAULT,
        "",
        "2020-01-01 00:00:00",
    ),
    "boolean": ("true", "false", "TRUE", "x"),
    "double": ("1.5", "1", "-1.50", "1e3", "NaN", "x"),
    "decimal(10,2)": ("1.50", "1.5", "x"),
    "timestamp": ("2020-01-01 00:00:00", "2020-01-01 00:00:00.0", "x"),
    "char(5)": ("a", "a ", "abcdefgh"),
    "varchar(5)": ("a", "a ", "abcdefgh"),
}
KEY_SETS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("ds", "string"),),
    (("ds", "string"), ("hr", "int")),
    (("ds", "string"), ("hr", "string")),
    (("n", "int"),),
    (("d", "date"), ("ds", "string")),
    (("n", "bigint"),),
    (("DS", "string"), ("n", "smallint"), ("b", "boolean")),
    (("f", "double"),),
    (("m", "decimal(10,2)"),),
    (("ts", "timestamp"),),
    (("c", "char(5)"), ("v", "varchar(5)")),
)
SPECIAL = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
"""What Hive escapes in the names of partitions."""

Keys = Sequence[tuple[str, str]]


def setup(keys: Keys) -> Script:
    """A database with a managed table `t`, another `u`, an external `e`, all with these keys, and a plain `p`."""
    specs = tuple(f"{name}:{kind}" for name, kind in keys)
    return [
        Call("create_database", database("N_a")),
        Call("create_table", table("N_a", "t", keys=specs)),
        Call("create_table", table("N_a", "u", keys=specs)),
        Call("create_table", external_table("N_a", "e", keys=specs, sd=plain_storage(location="SIDE/e"))),
    ]


DB = mostly("N_a", odd=("N_nosuch", "", None, "N_A"))
TABLE = mostly("t", "t", "u", "e", odd=("T", "nosuch", "p", "w", "", None))


@functools.cache
def vals(keys: Keys) -> Strategy:
    """Values of the keys, as many as there are; now and then too few, too many, none."""
    right = st.tuples(*(st.sampled_from(VALUES[kind][:4]) for _, kind in keys)).map(list)
    odd = st.tuples(*(st.sampled_from(VALUES[kind]) for _, kind in keys)).map(list)
    wrong = st.lists(mostly("a", "1", odd=("",)), max_size=3)
    return st.one_of(right, right, right, right, odd, odd, odd, st.one_of(wrong, st.none()))


@functools.cache
def names(keys: Keys) -> Strategy:
    """Names of partitions, most of them right."""

    def named(values: list[str]) -> str:
        steps = zip((name.lower() for name, _ in keys), values, strict=True)
        return "/".join(f"{key}={SPECIAL.sub(lambda found: f'%{ord(found[0]):02X}', value)}" for key, value in steps)

    right = st.tuples(*(st.sampled_from(VALUES[kind][:4]) for _, kind in keys)).map(list).map(named)
    odd = st.tuples(*(st.sampled_from(VALUES[kind]) for _, kind in keys)).map(list).map(named)
    wrong = mostly(
        odd=(
            "",
            None,
            "ds=a",
            "nosuch=1",
            "ds",
            "=",
            "ds=",
            "ds=a/hr=1/x=2",
            "/",
            "ds=a//hr=1",
            "hr=1/ds=a",
            "DS=a/HR=1",
            "ds=%zz",
            "a=b=c",
            "n=1",
            "d=2020-01-01/ds=a/",
        )
    )
    return st.one_of(right, right, right, odd, wrong)


@functools.cache
def partial(keys: Keys) -> Strategy:
    """Values of the first keys, with empty ones for anything."""
    alternatives = [st.sampled_from(("", *VALUES[kind][:4])) for _, kind in keys]
    right = st.tuples(*alternatives).flatmap(lambda row: st.integers(1, len(keys)).map(lambda n: list(row[:n])))
    return st.one_of(right, right, right, vals(keys))


@functools.cache
def partition(keys: Keys) -> Strategy:
    sd = st.one_of(
        st.builds(lambda place: plain_storage(location=place), LOCATIONS),
        st.builds(lambda place: plain_storage(location=place), LOCATIONS),
        storage(),
        st.none(),
    )
    usual = struct(
        Partition,
        values=vals(keys),
        dbName=st.just("N_a"),
        tableName=mostly("t", "u", "e"),
        sd=sd,
        parameters=PARAMETERS,
    )
    odd = struct(
        Partition,
        values=vals(keys),
        dbName=DATABASES,
        tableName=TABLE,
        createTime=st.sampled_from([None, 0, 5, -1]),
        lastAccessTime=st.sampled_from([None, 0, 5]),
        sd=sd,
        parameters=PARAMETERS,
    )
    return st.one_of(usual, usual, odd)


def same_table(keys: Keys, name: str) -> Strategy:
    return partition(keys).map(lambda p: p.replace(dbName="N_a", tableName=name))


@functools.cache
def filters(keys: Keys) -> Strategy:
    literals = {}
    for name, kind in keys:
        quoted = [f"'{value}'" for value in VALUES[kind] if "{" not in value and "'" not in value and "\\" not in value]
        double = [f'"{value}"' for value in VALUES[kind][:3]]
        numbers = [value for value in VALUES[kind] if value.lstrip("-").isdigit()]
        literals[name] = st.sampled_from([*quoted, *double, *numbers, "5", "'x'"])
    operators = st.sampled_from(["=", "=", "=", "<>", "!=", ">", "<", ">=", "<="])

    def leaf(name: str) -> Strategy:
        value = literals[name]
        return st.one_of(
            st.tuples(st.just(name.lower()), operators, value).map(" ".join),
            st.tuples(st.just(name), operators, value).map(" ".join),
            st.tuples(value, operators, st.just(name.lower())).map(" ".join),
            st.tuples(st.just(name.lower()), st.just("between"), value, st.just("and"), value).map(" ".join),
            st.tuples(st.just(f"({name.lower()}) in ("), value, st.just(","), value, st.just(")")).map("".join),
        )

    leaves = st.one_of(*(leaf(name) for name, _ in keys))
    trees = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or", "AND"]), inner).map(" ".join),
            inner.map(lambda text: f"({text})"),
        ),
        max_leaves=4,
    )
    wrong = st.sampled_from(
        ["", None, "nosuch = 'a'", "ds =", "ds", "= 'a'", "ds = 'a' and", "(ds = 'a'", "ds = a", "id = 1", "1 = 1"]
    )
    return st.one_of(leaves, trees, trees, trees, wrong)


def expressions(keys: Keys) -> Strategy:
    texts = [
        "ds = '2020-01-01'",
        "ds in ('2020-01-01', 'Z')",
        "ds > '2020-01-01'",
        "ds is null",
        "ds is not null",
        "ds = '2020-01-02' and hr = '10'",
        "ds = '2020-01-01' or hr = '1'",
        "n = 7",
        "n > 2",
        "n in (1, 10)",
        "d = date '2020-01-01'",
        "d >= date '2020-01-02'",
        "ds <> '2020-01-01'",
        "ds between '2020-01-01' and '2020-01-02'",
    ]
    own = {name.lower() for name, _ in keys}
    # To compare a number with a text Hive evaluates the expression, for which the reference's jars lack classes.
    hours = ("hr", "string") in keys
    fitting = [text for text in texts if text.split()[0] in own and ("hr" not in text or hours)]
    return (
        st.sampled_from([*fitting, *fitting, texts[0], "d = date '2020-01-01'"]).map(Expression)
        if fitting
        else st.sampled_from(texts).map(Expression)
    )


@functools.cache
def partition_calls(keys: Keys) -> Strategy:
    one, values, name = partition(keys), vals(keys), names(keys)
    strings = st.lists(name.filter(lambda n: n is not None), max_size=3)
    changes = st.one_of(
        call("add_partition", one),
        call("add_partition", one),
        call("add_partition_with_environment_context", one, CONTEXTS),
        call("add_partitions", st.lists(same_table(keys, "t"), min_size=1, max_size=3)),
        call("add_partitions", st.lists(one, max_size=2)),
        call(
            "add_partitions_req",
            struct(
                AddPartitionsRequest,
                dbName=DB,
                tblName=TABLE,
                parts=st.lists(same_table(keys, "t"), max_size=3),
                ifNotExists=FLAGS,
                needResult=st.sampled_from([None, True, False]),
            ),
        ),
        call("add_partitions_pspec", specs(keys)),
        call("append_partition", DB, TABLE, values),
        call("append_partition", st.just("N_a"), st.just("t"), values),
        call("append_partition_with_environment_context", DB, TABLE, values, CONTEXTS),
        call("append_partition_by_name", DB, TABLE, name),
        call("alter_partition", DB, TABLE, one),
        call("alter_partition", st.just("N_a"), st.just("t"), same_table(keys, "t")),
        call("alter_partition_with_environment_context", DB, TABLE, one, CONTEXTS),
        call("alter_partitions", DB, TABLE, st.lists(same_table(keys, "t"), max_size=2)),
        call(
            "alter_partitions_with_environment_context",
            DB,
            TABLE,
            st.lists(same_table(keys, "t"), max_size=2),
            CONTEXTS,
        ),
        call("rename_partition", DB, TABLE, values, one),
        call("rename_partition", st.just("N_a"), st.just("t"), values, same_table(keys, "t")),
        call("exchange_partition", spec(keys), DB, TABLE, DB, TABLE),
        call(
            "exchange_partitions", spec(keys), st.just("N_a"), st.just("t"), st.just("N_a"), mostly("u", odd=("e", "t"))
        ),
        call("put_file", name.map(lambda n: f"N_a.db/t/{n}/f")),
        call("alter_table_with_cascade", st.just("N_a"), st.just("t"), altered_table(keys), FLAGS),
    )
    drops = st.one_of(
        call("drop_partition", DB, TABLE, values, FLAGS),
        call("drop_partition_with_environment_context", DB, TABLE, values, FLAGS, CONTEXTS),
        call("drop_partition_by_name", DB, TABLE, name, FLAGS),
        call("drop_partition_by_name_with_environment_context", DB, TABLE, name, FLAGS, CONTEXTS),
        call("drop_partitions_req", drop_request(keys, strings)),
        call("drop_table", st.just("N_a"), TABLE, FLAGS),
    )
    return st.one_of(changes, changes, changes, drops, partition_reads(keys), partition_reads(keys))


def altered_table(keys: Keys) -> Strategy:
    fields = [FieldSchema(name=name, type=kind) for name, kind in keys]
    return st.builds(
        lambda name, cols, place: table("N_a", name, sd=plain_storage(cols=cols, location=place)).replace(
            partitionKeys=fields
        ),
        mostly("t", odd=("u2",)),
        columns(),
        LOCATIONS,
    )


def drop_request(keys: Keys, strings: Strategy) -> Strategy:
    exprs = st.lists(
        struct(DropPartitionsExpr, expr=expressions(keys), partArchiveLevel=st.sampled_from([None, 0, 1])), max_size=2
    )
    return struct(
        DropPartitionsRequest,
        dbName=DB,
        tblName=TABLE,
        parts=st.one_of(
            struct(RequestPartsSpec, names=strings), struct(RequestPartsSpec, exprs=exprs), st.just(RequestPartsSpec())
        ),
        deleteData=st.sampled_from([None, True, False]),
        ifExists=st.sampled_from([None, True, False]),
        ignoreProtection=st.sampled_from([None, True]),
        environmentContext=CONTEXTS,
        needResult=st.sampled_from([None, True, False]),
    )


def spec(keys: Keys) -> Strategy:
    own = [name.lower() for name, _ in keys]
    some = st.tuples(*(st.sampled_from((None, "", *VALUES[kind][:4])) for _, kind in keys)).map(
        lambda row: {key: value for key, value in zip(own, row, strict=True) if value is not None}
    )
    return st.one_of(some, some, some, st.sampled_from([{}, None, {"nosuch": "1"}]))


def specs(keys: Keys) -> Strategy:
    composing = st.lists(same_table(keys, "t"), min_size=1, max_size=2).map(
        lambda parts: [
            PartitionSpec(dbName="N_a", tableName="t", partitionList=PartitionListComposingSpec(partitions=parts))
        ]
    )
    without = struct(
        PartitionWithoutSD,
        values=vals(keys),
        relativePath=mostly("/x", "/y", odd=(None, "", "z")),
        parameters=PARAMETERS,
    )
    shared = st.lists(without, min_size=1, max_size=2).map(
        lambda parts: [
            PartitionSpec(
                dbName="N_a",
                tableName="t",
                rootPath="WAREHOUSE/N_a.db/t",
                sharedSDPartitionSpec=PartitionSpecWithSharedSD(
                    partitions=parts, sd=plain_storage(location="WAREHOUSE/N_a.db/t")
                ),
            )
        ]
    )
    return st.one_of(
        composing, shared, st.sampled_from([[], [PartitionSpec()], [PartitionSpec(dbName="N_a", tableName="t")]])
    )


def partition_reads(keys: Keys) -> Strategy:
    values, name = vals(keys), names(keys)
    strings = st.one_of(st.lists(name.filter(lambda n: n is not None), max_size=3), st.none())
    own = [FieldSchema(name=key, type=kind) for key, kind in keys]
    return st.one_of(
        call("get_partition", DB, TABLE, values),
        call("get_partition_by_name", DB, TABLE, name),
        call("get_partition_with_auth", DB, TABLE, values, st.just("alice"), st.just([])),
        call("get_partitions", DB, TABLE, COUNTS),
        call("get_partitions_with_auth", DB, TABLE, COUNTS, st.just("alice"), st.just([])),
        call("get_partition_names", DB, TABLE, COUNTS),
        call("get_partitions_pspec", DB, TABLE, COUNTS),
        call("get_partitions_ps", DB, TABLE, partial(keys), COUNTS),
        call("get_partitions_ps_with_auth", DB, TABLE, partial(keys), COUNTS, st.just("alice"), st.just([])),
        call("get_partition_names_ps", DB, TABLE, partial(keys), COUNTS),
        call("get_partitions_by_names", DB, TABLE, strings),
        call("get_partitions_by_filter", DB, TABLE, filters(keys), COUNTS),
        call("get_partitions_by_filter", st.just("N_a"), st.just("t"), filters(keys), st.just(-1)),
        call("get_part_specs_by_filter", DB, TABLE, filters(keys), COUNTS),
        call("get_num_partitions_by_filter", DB, TABLE, filters(keys)),
        call(
            "get_partitions_by_expr",
            struct(
                PartitionsByExprRequest,
                dbName=DB,
                tblName=TABLE,
                expr=st.one_of(
                    expressions(keys), expressions(keys), expressions(keys), st.sampled_from([b"", b"nonsense"])
                ),
                defaultPartitionName=st.sampled_from([None, DEFAULT]),
                maxParts=st.sampled_from([None, -1, 1, 0]),
            ),
        ),
        call(
            "get_partition_values",
            struct(
                PartitionValuesRequest,
                dbName=DB,
                tblName=TABLE,
                partitionKeys=st.sampled_from([own, own[:1], own[::-1], []]),
                applyDistinct=st.sampled_from([None, True, False]),
                filter=st.one_of(st.none(), filters(keys)),
                partitionOrder=st.sampled_from([None, [], own[:1]]),
                ascending=st.sampled_from([None, True, False]),
                maxParts=st.sampled_from([None, -1, 1]),
            ),
        ),
        call("partition_name_to_vals", name),
        call("partition_name_to_spec", name),
        call("partition_name_has_valid_characters", values, FLAGS),
        call("isPartitionMarkedForEvent", DB, TABLE, spec(keys), st.just(1)),
        call("markPartitionForEvent", DB, TABLE, spec(keys), st.just(1)),
    )
