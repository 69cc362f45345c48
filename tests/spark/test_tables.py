"""Tables that aren't partitioned, through Spark's SQL and DataFrame writer."""

from pathlib import Path

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.support.target import local_path

pytestmark = pytest.mark.usefixtures("database")

FORMATS = {
    "parquet": "USING parquet",
    "orc": "USING orc",
    "json": "USING json",
    "csv": "USING csv",
    "hive-parquet": "STORED AS PARQUET",
    "hive-orc": "STORED AS ORC",
    "hive-text": "STORED AS TEXTFILE",
    "hive-sequence": "STORED AS SEQUENCEFILE",
    "hive-delimited": "ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' STORED AS TEXTFILE",
}

#: A column of every type that both kinds of table can hold: (name, type, a value, the same as the tests see it).
COLUMNS = [
    ("c_boolean", "BOOLEAN", "true", True),
    ("c_tinyint", "TINYINT", "7Y", 7),
    ("c_smallint", "SMALLINT", "300S", 300),
    ("c_int", "INT", "70000", 70000),
    ("c_bigint", "BIGINT", "5000000000L", 5000000000),
    ("c_float", "FLOAT", "1.5F", 1.5),
    ("c_double", "DOUBLE", "2.25D", 2.25),
    ("c_decimal", "DECIMAL(20,4)", "12345678.9012", "12345678.9012"),
    ("c_string", "STRING", "'ünïcode ✓'", "ünïcode ✓"),
    ("c_char", "CHAR(5)", "'ab'", "ab   "),
    ("c_varchar", "VARCHAR(5)", "'abc'", "abc"),
    ("c_binary", "BINARY", "X'00FF'", "00ff"),
    ("c_date", "DATE", "DATE'2024-02-29'", "2024-02-29"),
    ("c_timestamp", "TIMESTAMP", "TIMESTAMP'2024-02-29 12:30:00'", "2024-02-29 12:30:00"),
    ("c_array", "ARRAY<INT>", "array(1, 2)", [1, 2]),
    ("c_map", "MAP<STRING,BIGINT>", "map('a', 1L)", {"a": 1}),
    ("c_struct", "STRUCT<x: INT, y: ARRAY<STRING>>", "named_struct('x', 1, 'y', array('z'))", [1, ["z"]]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", FORMATS.values(), ids=FORMATS)
def test_rows_come_back(spark: SparkSession, layout: str) -> None:
    spark.sql(f"CREATE TABLE t (id INT COMMENT 'a number', name STRING) {layout}")
    spark.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    spark.sql("INSERT INTO t VALUES (3, NULL)")
    assert sorted(spark.sql("SELECT id, name FROM t")) == [[1, "a"], [2, "b"], [3, None]]
    spark.sql("INSERT OVERWRITE TABLE t VALUES (9, 'z')")
    assert spark.sql("SELECT * FROM t") == [[9, "z"]]
    assert spark.sql("DESCRIBE t")[0] == ["id", "int", "a number"]


@pytest.mark.parametrize("layout", ["USING parquet", "USING orc", "STORED AS PARQUET", "STORED AS ORC"])
def test_every_type(spark: SparkSession, layout: str) -> None:
    spark.sql(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind, _, _ in COLUMNS)}) {layout}")
    spark.sql(f"INSERT INTO t SELECT {', '.join(value for _, _, value, _ in COLUMNS)}")
    assert spark.sql("SELECT * FROM t") == [[seen for _, _, _, seen in COLUMNS]]
    types = {row[0]: row[1] for row in spark.sql("DESCRIBE t")}
    assert types == {name: kind.lower().replace(": ", ":").replace(", ", ",") for name, kind, _, _ in COLUMNS}


def test_names_keep_their_case_where_spark_keeps_it(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE MixedCase (OrderId INT, `Größe` INT, `a b.c` INT) USING parquet")
    spark.sql("INSERT INTO mixedcase VALUES (1, 2, 3)")
    assert spark.column("SHOW TABLES LIKE 'mixed*'", 1) == ["mixedcase"]
    assert spark.column("SHOW COLUMNS IN MIXEDCASE") == ["OrderId", "Größe", "a b.c"]
    assert spark.value(f"SELECT `größe` FROM {database.upper()}.MIXEDCASE") == 2


def test_a_schema_longer_than_one_property(spark: SparkSession) -> None:
    columns = [f"a_rather_long_name_of_a_column_{i}" for i in range(400)]
    spark.sql(f"CREATE TABLE wide ({', '.join(f'{name} INT' for name in columns)}) USING parquet")
    assert spark.column("SHOW COLUMNS IN wide") == columns
    assert "spark.sql.sources.schema" not in "".join(spark.properties("wide"))


def test_managed_and_external(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE ours (a INT) USING parquet")
    spark.sql(f"CREATE TABLE theirs (a INT) USING parquet LOCATION '{tmp_path}/theirs'")
    spark.sql(f"CREATE EXTERNAL TABLE hives (a INT) STORED AS ORC LOCATION '{tmp_path}/hives'")
    kinds = {name: spark.describe(name)["Type"] for name in ("ours", "theirs", "hives")}
    assert kinds == {"ours": "MANAGED", "theirs": "EXTERNAL", "hives": "EXTERNAL"}
    directory = local_path(spark.describe("ours")["Location"])
    for name in kinds:
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        spark.sql(f"DROP TABLE {name}")
    assert not directory.exists()
    assert list((tmp_path / "theirs").glob("*.parquet"))
    assert [file for file in (tmp_path / "hives").iterdir() if not file.name.startswith(("_", "."))]
    spark.sql(f"CREATE TABLE again (a INT) USING parquet LOCATION '{tmp_path}/theirs'")
    assert spark.sql("SELECT * FROM again") == [[1]]


def test_create_as_select_and_like(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE source USING orc COMMENT 'origin' AS SELECT id, concat('n', id) AS name FROM range(5)")
    assert spark.value("SELECT count(*) FROM source") == 5
    spark.sql("CREATE TABLE copy LIKE source")
    assert spark.column("SHOW COLUMNS IN copy") == ["id", "name"]
    assert spark.value("SELECT count(*) FROM copy") == 0
    assert spark.describe("copy")["Provider"].lower() == "orc"
    spark.sql("CREATE TABLE hive STORED AS PARQUET AS SELECT * FROM source WHERE id < 2")
    assert spark.column("SELECT name FROM hive ORDER BY name") == ["n0", "n1"]


def test_the_data_frame_writer(spark: SparkSession, database: str) -> None:
    spark.python(f"spark.range(3).write.format('parquet').saveAsTable('{database}.frame')")
    spark.python(f"spark.range(2).write.mode('append').saveAsTable('{database}.frame')")
    assert spark.value("SELECT count(*) FROM frame") == 5
    spark.python(f"spark.range(1).write.mode('overwrite').saveAsTable('{database}.frame')")
    assert spark.value("SELECT count(*) FROM frame") == 1
    spark.python(f"spark.range(4).write.insertInto('{database}.frame')")
    assert spark.value("SELECT count(*) FROM frame") == 5
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.python(f"spark.range(1).write.saveAsTable('{database}.frame')")


def test_bucketed_and_sorted(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE b (id BIGINT, name STRING) USING parquet CLUSTERED BY (id) SORTED BY (name) INTO 4 BUCKETS")
    described = spark.describe("b")
    assert (described["Num Buckets"], described["Bucket Columns"]) == ("4", "[`id`]")
    assert described["Sort Columns"] == "[`name`]"
    spark.sql("INSERT INTO b SELECT id, 'x' FROM range(100)")
    assert spark.value("SELECT count(*) FROM b WHERE id = 42") == 1


def test_properties_and_comments(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t (a INT) STORED AS ORC COMMENT 'first' TBLPROPERTIES (k = 'v', `dotted.key` = 'x')")
    assert spark.properties("t").items() >= {"k": "v", "dotted.key": "x"}.items()
    spark.sql("ALTER TABLE t SET TBLPROPERTIES (k = 'w', comment = 'second')")
    assert spark.properties("t")["k"] == "w"
    assert spark.describe("t")["Comment"] == "second"
    spark.sql("ALTER TABLE t UNSET TBLPROPERTIES (k)")
    assert "k" not in spark.properties("t")
    spark.sql("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS (k)")
    spark.sql("ALTER TABLE t SET SERDEPROPERTIES ('serialization.format' = '7')")
    assert "serialization.format=7" in spark.describe("t")["Storage Properties"]


@pytest.mark.parametrize("layout", ["USING parquet", "STORED AS PARQUET", "STORED AS ORC"])
def test_columns_added_and_commented(spark: SparkSession, layout: str) -> None:
    spark.sql(f"CREATE TABLE t (a INT) {layout}")
    spark.sql("INSERT INTO t VALUES (1)")
    spark.sql("ALTER TABLE t ADD COLUMNS (b STRING COMMENT 'added', c DATE)")
    spark.sql("INSERT INTO t VALUES (2, 'x', DATE'2024-01-01')")
    assert spark.sql("SELECT * FROM t ORDER BY a") == [[1, None, None], [2, "x", "2024-01-01"]]
    spark.sql("ALTER TABLE t CHANGE COLUMN a a INT COMMENT 'said later'")
    assert spark.sql("DESCRIBE t")[:2] == [["a", "int", "said later"], ["b", "string", "added"]]


@pytest.mark.parametrize("layout", ["USING parquet", "STORED AS ORC"])
def test_rename_moves_a_managed_table(spark: SparkSession, database: str, layout: str) -> None:
    spark.sql(f"CREATE TABLE old (a INT) {layout}")
    spark.sql("INSERT INTO old VALUES (1)")
    before = local_path(spark.describe("old")["Location"])
    spark.sql("ALTER TABLE old RENAME TO new")
    after = local_path(spark.describe("new")["Location"])
    assert (before.name, after.name) == ("old", "new")
    assert (before.exists(), after.is_dir()) == (False, True)
    assert spark.sql("SELECT * FROM new") == [[1]]
    assert spark.column("SHOW TABLES", 1) == ["new"]
    spark.sql("CREATE TABLE old (a INT) USING parquet")
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("ALTER TABLE new RENAME TO old")
    assert spark.sql("SELECT * FROM new") == [[1]]


def test_truncate_and_drop(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t (a INT) USING parquet")
    spark.sql("INSERT INTO t VALUES (1)")
    directory = local_path(spark.describe("t")["Location"])
    spark.sql("TRUNCATE TABLE t")
    assert spark.value("SELECT count(*) FROM t") == 0
    assert directory.is_dir()
    spark.sql("DROP TABLE t PURGE")
    assert not directory.exists()
    spark.sql("DROP TABLE IF EXISTS t")
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("DROP TABLE t")
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM t")


def test_a_name_that_is_taken(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t (a INT) USING parquet")
    spark.sql("CREATE TABLE IF NOT EXISTS t (other STRING) USING orc")
    assert spark.column("SHOW COLUMNS IN t") == ["a"]
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE TABLE T (a INT) STORED AS PARQUET")


def test_listings(spark: SparkSession, database: str) -> None:
    for name in ("ab", "ac", "b"):
        spark.sql(f"CREATE TABLE {name} (x INT) USING parquet")
    assert spark.column("SHOW TABLES", 1) == ["ab", "ac", "b"]
    assert spark.column("SHOW TABLES LIKE 'a*'", 1) == ["ab", "ac"]
    assert spark.column("SHOW TABLES LIKE 'ab|b'", 1) == ["ab", "b"]
    assert spark.column(f"SHOW TABLE EXTENDED IN {database} LIKE 'a*'", 1) == ["ab", "ac"]
    names = spark.python(f"result = [t.name for t in spark.catalog.listTables('{database}')]")
    assert sorted(names) == ["ab", "ac", "b"]
    assert spark.python(f"result = spark.catalog.tableExists('{database}.ab')") is True
    assert spark.python(f"result = spark.catalog.tableExists('{database}.zz')") is False


def test_show_create_table_makes_the_same_table(spark: SparkSession, database: str) -> None:
    spark.sql("""CREATE TABLE t (a INT COMMENT 'one', b DOUBLE, c INT) USING parquet
        PARTITIONED BY (c) COMMENT 'said' TBLPROPERTIES (k = 'v')""")
    statement = spark.value("SHOW CREATE TABLE t")
    before = spark.sql("DESCRIBE t")
    spark.sql("DROP TABLE t")
    spark.sql(statement)
    assert spark.sql("DESCRIBE t") == before
    assert spark.describe("t")["Comment"] == "said"
    assert spark.properties("t")["k"] == "v"
