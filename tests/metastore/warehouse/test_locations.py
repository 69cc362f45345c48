"""Where the warehouse says things lie: spelled as Hadoop's Path and Hive's Warehouse spell it."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.warehouse import Warehouse, WarehouseError

WAREHOUSE = Warehouse("/warehouse", "/external")

# What Hadoop 3.5 answers for new Path(given), qualified by its file system as Hive's getDnsPath does.
AS_HADOOP = {
    "/a/b": "file:/a/b",
    "/a/b/": "file:/a/b",
    "/a//b///c": "file:/a/b/c",
    "///a/b": "file:/a/b",
    "file:/a/b": "file:/a/b",
    "file:///a/b": "file:/a/b",
    "file:////a//b/": "file:/a/b",
    "file://localhost/a": "file:/a",
    "FILE:/a": "file:/a",
    "file:/": "file:/",
    "file:///": "file:/",
    "file://": "file:/",
    "/": "file:/",
    "/a/./b": "file:/a/b",
    "/a/.": "file:/a",
    "/a/../b": "file:/b",
    "/a/..": "file:/",
    "/a/b/../": "file:/a",
    "/a/...": "file:/a/...",
    "/a/..b": "file:/a/..b",
    "/.a": "file:/.a",
    "/a%3Ab": "file:/a%3Ab",
    "/a%2Fb": "file:/a%2Fb",
    "/a%": "file:/a%",
    "/a b": "file:/a b",
    "/ a": "file:/ a",
    "/a ": "file:/a ",
    "/a:b": "file:/a:b",
    "/a?b#c": "file:/a?b#c",
    "/a\\b": "file:/a\\b",
    "/a\nb": "file:/a\nb",
    "/a*b[c]{d}": "file:/a*b[c]{d}",
    "/a::b": "file:/a::b",
    "file:/~": "file:/~",
    "/ü/日本": "file:/ü/日本",
    "/a/ds=2020-01-01 10%3A00%3A00": "file:/a/ds=2020-01-01 10%3A00%3A00",
    "s3a://bucket/x/": "s3a://bucket/x",
    "s3a://bucket/": "s3a://bucket/",
    "s3a://bucket//x//y": "s3a://bucket/x/y",
    "s3a://bucket/x/../y": "s3a://bucket/y",
    "s3a://my_bucket/x": "s3a://my_bucket/x",
    "s3a://bucket/ds=10%3A00": "s3a://bucket/ds=10%3A00",
    "hdfs://nn:8020/a": "hdfs://nn:8020/a",
    "abfss://c@acc.dfs.core.windows.net/x": "abfss://c@acc.dfs.core.windows.net/x",
}

# Hadoop refuses these too.
REFUSED_BY_HADOOP = [
    "",
    " ",
    "a",
    "a/b",
    "./a",
    "~/a",
    " /a",
    "file:",
    "file:a/b",
    "a:b",
    "1a:/b",
    "s3 a://b/x",
    " file:/a",
    "//host/a",
    "a+b:/c",
]

# Hadoop lets these pass, or fails at them later.
REFUSED_BY_US = [
    "/..",
    "/../a",
    "/a/../../b",
    "s3a://bucket/../x",
    "file://host/a",
    "/a\0b",
    "/a\ud800",
    "s3a:/x",
    "s3a:///x",
    "s3a://my bucket/x",
    "s3a://b?x/y",
    "s3a://b#x/y",
    "s3a://b%20c/y",
    "s3a://../x",
    "s3a://key:secret@bucket/x",
    "hdfs://nn:port/x",
    "abfss://container/x",
    "abfss://c@acc.evil.example/x",
    "abfss://c@acc.dfs.core.windows.net.evil.example/x",
    "s3a://bucket/table*",
    "s3a://bucket/t?versionId=1",
    "gs://bucket/t#1",
    "gs://bucket/[t]",
]

NOT_A_WAREHOUSE = [
    "http://host/x",
    "https://host/x",
    "ftp://host/x",
    "ssh://host/x",
    "zip://x",
    "simplecache::s3://bucket/x",
    "zip://*.csv::file:///x.zip",
    "github://org:repo@main/x",
    "memory://bucket/x",
    "local:/a",
    "data:/a",
    "jdbc:/a",
]


@pytest.mark.parametrize("given", AS_HADOOP)
def test_a_location_is_spelled_as_hadoop_spells_it(given: str) -> None:
    assert WAREHOUSE.qualify(given) == AS_HADOOP[given]


@pytest.mark.parametrize("given", REFUSED_BY_HADOOP + REFUSED_BY_US + NOT_A_WAREHOUSE)
def test_what_is_no_location_is_refused(given: str) -> None:
    with pytest.raises(WarehouseError, match=r"cannot use .*\w{3}"):
        WAREHOUSE.qualify(given)


def test_what_a_location_leaves_out_is_the_root_s() -> None:
    warehouse = Warehouse("s3a://bucket/wh")
    assert warehouse.qualify("/x/y") == "s3a://bucket/x/y"
    assert warehouse.qualify("s3a:/x") == "s3a://bucket/x"
    assert warehouse.qualify("file:/x") == "file:/x"
    assert Warehouse("hdfs://nn:8020/wh").qualify("hdfs:///x") == "hdfs://nn:8020/x"


def test_a_root_may_be_any_path(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Warehouse("wh").database_location("default") == f"file:{tmp_path}/wh"
    assert Warehouse(f"{tmp_path}/a b/").database_location("default") == f"file:{tmp_path}/a b"
    assert Warehouse("file://localhost/wh").database_location("default") == "file:/wh"


@pytest.mark.parametrize("root", ["", "http://host/wh", "memory://m/wh", "s3a:/wh", "/../wh"])
def test_a_root_that_can_t_be_is_refused(root: str) -> None:
    with pytest.raises(WarehouseError):
        Warehouse(root)
    with pytest.raises(WarehouseError):
        Warehouse("/wh", external_root=root)


def test_only_the_schemes_it_was_given_are_used() -> None:
    warehouse = Warehouse("/wh", schemes=["file", "memory"])
    assert warehouse.qualify("memory://m/x") == "memory://m/x"
    with pytest.raises(WarehouseError, match="file, memory"):
        warehouse.qualify("s3a://bucket/x")
    with pytest.raises(WarehouseError, match="http"):
        Warehouse("/wh", schemes=["file", "http"])
    with pytest.raises(WarehouseError, match="s3x"):
        Warehouse("/wh", options={"s3x": {}})


def test_databases_and_tables_lie_where_hive_puts_them() -> None:
    assert WAREHOUSE.database_location("Sales") == "file:/warehouse/sales.db"
    assert WAREHOUSE.database_location("DEFAULT") == "file:/warehouse"
    assert WAREHOUSE.external_database_location("sales") == "file:/external/sales.db"
    assert WAREHOUSE.external_database_location("default") == "file:/external"
    assert Warehouse("/wh").external_database_location("sales") == "file:/wh/sales.db"
    assert WAREHOUSE.table_location("file:/warehouse/sales.db", "Orders_1") == "file:/warehouse/sales.db/orders_1"
    assert WAREHOUSE.table_location("/warehouse/sales.db/", "t") == "file:/warehouse/sales.db/t"
    assert WAREHOUSE.table_location("s3a://b", "t") == "s3a://b/t"


# What Hive's MetaStoreUtils.encodeTableName makes of a table's name.
@pytest.mark.parametrize(
    ("table", "directory"),
    {
        "a/b": "a-47-b",
        "..": "-46--46-",
        "a b": "a-32-b",
        "a-b": "a-45-b",
        "größe": "größe",
        "三": "三",
        "a²": "a-178-",
        "x٣": "x٣",
        "😀": "-55357--56832-",
    }.items(),
)
def test_special_characters_of_a_table_are_encoded(table: str, directory: str) -> None:
    assert WAREHOUSE.table_location("/db", table) == f"file:/db/{directory}"


@pytest.mark.parametrize("name", ["", "a/b", "../x", "/x", "x/../.."])
def test_a_database_is_one_name(name: str) -> None:
    with pytest.raises(WarehouseError):
        WAREHOUSE.database_location(name)


def test_partitions_lie_below_their_table() -> None:
    locate = WAREHOUSE.partition_location
    assert locate("file:/t", "ds=2024-01-01/hr=10%3A00") == "file:/t/ds=2024-01-01/hr=10%3A00"
    assert locate("s3a://b/t", "ds=1/") == "s3a://b/t/ds=1"
    assert locate("file:/t", "ds=a b:c") == "file:/t/ds=a b:c"


@pytest.mark.parametrize("relative", ["", "/", ".", "./", "/x", "..", "../x", "a/../../x", "a/..", "a\0b"])
def test_nothing_joined_leaves_its_base(relative: str) -> None:
    with pytest.raises(WarehouseError):
        WAREHOUSE.join("file:/t", relative)


@pytest.mark.parametrize(
    ("location", "base", "relative"),
    [
        ("file:/t/ds=1", "file:/t", "ds=1"),
        ("file:/t/ds=1/hr=2", "file:/t/", "ds=1/hr=2"),
        ("/t/ds=1", "file:///t", "ds=1"),
        ("file:/t", "file:/t", None),
        ("file:/", "file:/", None),
        ("file:/t", "file:/t/ds=1", None),
        ("file:/t10", "file:/t1", None),
        ("file:/t/../u", "file:/t", None),
        ("file:/t", "file:/", "t"),
        ("s3a://b/t/x", "s3a://b/t", "x"),
        ("s3a://b/t", "s3a://b/", "t"),
        ("s3a://b/t/x", "s3a://c/t", None),
        ("s3a://b/t/x", "s3://b/t", None),
        ("s3a://bb/t", "s3a://b", None),
        ("http://host/t/x", "http://host/t", "x"),
    ],
)
def test_relative_goes_name_by_name(location: str, base: str, relative: str | None) -> None:
    assert WAREHOUSE.relative_to(location, base) == relative


def test_parents_end_at_the_root() -> None:
    assert WAREHOUSE.parent("s3a://b/x/y") == "s3a://b/x"
    assert WAREHOUSE.parent("s3a://b/x") == "s3a://b/"
    assert WAREHOUSE.parent("s3a://b") is None
    assert WAREHOUSE.parent("/x") == "file:/"
    assert WAREHOUSE.parent("/") is None


def test_a_storage_is_a_bucket_or_a_file_system() -> None:
    assert WAREHOUSE.same_storage("/a", "file:/b")
    assert WAREHOUSE.same_storage("s3a://b/x", "s3://b/y")
    assert not WAREHOUSE.same_storage("s3a://b/x", "s3a://c/x")
    assert not WAREHOUSE.same_storage("/a", "s3a://b/a")


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name not in (".", "..")
)
plain_paths = st.lists(names, min_size=1).map("/".join)
bases = st.one_of(st.just("file:/"), plain_paths.map(lambda path: f"file:/{path}"))
sloppy_paths = st.lists(st.one_of(names, st.sampled_from(["", ".", ".."]))).map(lambda parts: "/" + "/".join(parts))


@given(sloppy_paths)
def test_any_path_is_normalised_or_refused(path: str) -> None:
    depth = 0
    for name in path.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(name, 1)
        if depth < 0:
            with pytest.raises(WarehouseError):
                WAREHOUSE.qualify("file://" + path)
            return
    normal = WAREHOUSE.qualify("file://" + path)
    assert normal == "file:/" + posixpath.normpath(path).lstrip("/")
    assert WAREHOUSE.qualify(normal) == normal


@given(bases, plain_paths)
def test_relative_undoes_join(base: str, relative: str) -> None:
    location = WAREHOUSE.join(base, relative)
    assert WAREHOUSE.qualify(location) == location
    assert WAREHOUSE.relative_to(location, base) == relative


@given(bases, bases)
def test_join_undoes_relative(location: str, base: str) -> None:
    relative = WAREHOUSE.relative_to(location, base)
    below, above = location[6:].split("/"), [name for name in base[6:].split("/") if name]
    strictly_below = location != "file:/" and len(below) > len(above) and below[: len(above)] == above
    assert (relative is not None) == strictly_below
    if relative is not None:
        assert WAREHOUSE.join(base, relative) == location


@given(st.text())
def test_any_text_is_a_location_or_an_error(text: str) -> None:
    try:
        normal = WAREHOUSE.qualify(text)
    except WarehouseError:
        return
    assert WAREHOUSE.qualify(normal) == normal
