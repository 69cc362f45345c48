"""INSERT: columns by name and by place, defaults, values that don't fit, and several tables at once."""

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Holds, Python, Refused

CASES = [
    Case(
        name="insert-by-name",
        trap="Delta DeltaInsertIntoTableSuite: insertInto: append by name; DeltaInsertIntoColumnOrderSuite",
        columns="id INT, Label STRING, n INT",
        on=ALL,
        steps=[
            Do("INSERT INTO {t} BY NAME SELECT 3 AS N, 1 AS ID, 'a' AS label"),
            Holds([[1, "a", 3]]),
            Refused("INSERT INTO {t} BY NAME SELECT 2 AS id, 'b' AS label, 3 AS other", "other|cannot"),
            Refused("INSERT INTO {t} BY NAME SELECT 2 AS id, 'b' AS label, 3 AS n, 4 AS N", "."),
        ],
    ),
    Case(
        name="insert-by-name-fields-of-structs",
        trap="Paimon InsertOverwriteTableTestBase: insert by name reorders same-type nested struct fields, "
        "case-insensitive",
        columns="id INT, s STRUCT<a: INT, B: INT>, l ARRAY<STRUCT<x: INT, y: INT>>",
        on=ALL,
        steps=[
            Do(
                "INSERT INTO {t} BY NAME SELECT array(named_struct('y', 2, 'X', 1)) AS l, "
                "named_struct('b', 20, 'A', 10) AS s, 1 AS id"
            ),
            Gives("SELECT id, s.a, s.b, l.x, l.y FROM {t}", [[1, 10, 20, [1], [2]]]),
            Refused(
                "INSERT INTO {t} BY NAME SELECT 2 AS id, named_struct('a', 1, 'c', 2) AS s, NULL AS l",
                "cannot|`c`",
            ),
        ],
    ),
    Case(
        name="insert-by-place-fields-of-structs",
        trap="Delta DeltaInsertIntoColumnOrderSuite: insert with different struct fields ordering",
        why="an INSERT without BY NAME goes by place, for fields of structs, too: that is Spark's rule",
        columns="id INT, s STRUCT<a: INT, b: INT>",
        on=ALL,
        steps=[
            Do("INSERT INTO {t} SELECT 1, named_struct('b', 1, 'a', 2)"),
            Gives("SELECT s.a, s.b FROM {t}", [[1, 2]]),
            Refused("INSERT INTO {t} SELECT 2, named_struct('a', 1)", "cannot|too few|not enough"),
            Refused("INSERT INTO {t} SELECT 2, named_struct('a', 1, 'b', 2, 'c', 3)", "cannot|too many|extra"),
        ],
    ),
    Case(
        name="insert-with-a-list-of-columns",
        trap="Paimon InsertOverwriteTableTestBase: insert with column list; Delta: Column DEFAULT value support",
        columns="id INT, a STRING DEFAULT 'none', b INT, c INT DEFAULT 1 + 1",
        on=ALL,
        steps=[
            Do("INSERT INTO {t} (b, id) VALUES (10, 1)"),
            Do("INSERT INTO {t} (c, id, a) SELECT 5, 2, NULL"),
            Do("INSERT INTO {t} (id, b) VALUES (3, DEFAULT)"),
            Do("INSERT INTO {t} VALUES (4, DEFAULT, 0, DEFAULT)"),
            Holds([[1, "none", 10, 2], [2, None, None, 5], [3, "none", None, 2], [4, "none", 0, 2]]),
            Refused("INSERT INTO {t} (id, id) VALUES (5, 5)", "."),
            Refused("INSERT INTO {t} (id, nothing) VALUES (5, 5)", "nothing"),
            Refused("INSERT INTO {t} (id, a) VALUES (5)", "."),
            Refused("INSERT INTO {t} (id, a) VALUES (5, 'a', 5)", "."),
        ],
    ),
    Case(
        name="insert-leaves-out-the-key",
        trap="Paimon DDLTestBase: create primary-key table with not null; write nullable expression to non-null column",
        columns="id INT, v STRING",
        steps=[
            Refused("INSERT INTO {t} (v) VALUES ('a')", "`id`|null"),
            Refused("INSERT INTO {t} VALUES (NULL, 'a')", "null"),
            Refused("INSERT INTO {t} SELECT IF(id > 0, NULL, 1), 'a' FROM range(3)", "null"),
            Refused("INSERT INTO {t} SELECT CAST(DEFAULT AS INT), 'a'", "."),
        ],
    ),
    Case(
        name="insert-has-other-columns-than-the-table",
        trap="Delta DeltaInsertIntoTableSuite: insertInto: fails when missing a column, schema enforcement",
        columns="id INT, a STRING, b INT",
        on=ALL,
        rows="(1, 'a', 1)",
        steps=[
            Refused("INSERT INTO {t} SELECT 2, 'b', 3, 4", "."),
            Refused("INSERT INTO {t} SELECT 'x', 'b', 3", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Refused("INSERT INTO {t} SELECT 2, 'b', true", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Refused(
                "INSERT INTO {t} SELECT 2, 'b', timestamp'2026-01-01 00:00:00'", "cannot safely cast|CANNOT_SAFELY_CAST"
            ),
            Refused("INSERT INTO {t} SELECT 2, array('b'), 3", "cannot safely cast|CANNOT_SAFELY_CAST"),
            Do("INSERT INTO {t} SELECT 2, 5, 3"),
            Holds([[1, "a", 1], [2, "5", 3]]),
        ],
    ),
    Case(
        name="insert-values-that-do-not-fit",
        trap="Delta ImplicitDMLCastingSuite: Details are part of the error message; Iceberg "
        "testMergeWithInvalidAssignmentsAnsi",
        columns="id INT, b TINYINT, i INT, d DECIMAL(5, 2), f FLOAT",
        on=ALL,
        steps=[
            Refused("INSERT INTO {t} VALUES (1, 128, 0, 0, 0)", "overflow"),
            Refused("INSERT INTO {t} VALUES (1, 0, 2147483648, 0, 0)", "overflow"),
            Refused("INSERT INTO {t} SELECT 1, 0, CAST('NaN' AS DOUBLE), 0, 0", "overflow"),
            Refused("INSERT INTO {t} SELECT 1, 0, CAST('Infinity' AS DOUBLE), 0, 0", "overflow"),
            Refused(
                "INSERT INTO {t} VALUES (1, 0, 0, 1000, 0)", "overflow|NUMERIC_VALUE_OUT_OF_RANGE|cannot be represented"
            ),
            Do("INSERT INTO {t} VALUES (1, -128, -2147483648, -999.99, 1e38)"),
            Do("INSERT INTO {t} SELECT 2, 127, 1.9, 0.005, 1e39"),
            Gives(
                "SELECT id, b, i, d, f > 1e37, CAST(f AS STRING) = 'Infinity' FROM {t}",
                [[1, -128, -2147483648, "-999.99", True, False], [2, 127, 1, "0.01", True, True]],
            ),
        ],
    ),
    Case(
        name="insert-texts-of-limited-length",
        trap="Paimon DDLTestBase: write with char; create table with char/varchar/string",
        columns="id INT, c CHAR(3), w VARCHAR(3), a ARRAY<CHAR(2)>, s STRUCT<v: VARCHAR(2)>",
        on=ALL,
        steps=[
            Refused("INSERT INTO {t} VALUES (1, 'abcd', 'a', NULL, NULL)", "length|longer"),
            Refused("INSERT INTO {t} VALUES (1, 'a', 'abcd', NULL, NULL)", "length|longer"),
            Refused("INSERT INTO {t} VALUES (1, 'a', 'a', array('abc'), NULL)", "length|longer"),
            Refused("INSERT INTO {t} VALUES (1, 'a', 'a', NULL, named_struct('v', 'abc'))", "length|longer"),
            Do("INSERT INTO {t} VALUES (1, 'ab   ', 'abc   ', array('x', NULL), named_struct('v', 'ä€'))"),
            Do("INSERT INTO {t} VALUES (2, '', '', array(), NULL), (3, NULL, NULL, NULL, named_struct('v', NULL))"),
            Gives(
                "SELECT id, length(c), w, a, s.v FROM {t}",
                [[1, 3, "abc", ["x ", None], "ä€"], [2, 3, "", [], None], [3, None, None, None, None]],
            ),
        ],
    ),
    Case(
        name="insert-times-without-zone",
        trap="Iceberg TestTimestampWithoutZone: testAppendTimestampWithoutZone, testAppendTimestampWithZone",
        columns="id INT, z TIMESTAMP, n TIMESTAMP_NTZ, d DATE",
        on=("plain",),
        settings={"spark.sql.session.timeZone": "America/New_York"},
        steps=[
            Do(
                "INSERT INTO {t} VALUES (1, timestamp'2026-07-01 12:00:00', timestamp_ntz'2026-07-01 12:00:00', "
                "date'2026-07-01')"
            ),
            Do(
                "INSERT INTO {t} SELECT 2, timestamp_ntz'2026-07-01 12:00:00', timestamp'2026-07-01 12:00:00', "
                "timestamp'2026-07-01 23:30:00'"
            ),
            Do("INSERT INTO {t} SELECT 3, date'2026-07-01', date'2026-07-01', timestamp_ntz'2026-07-01 23:30:00'"),
            Do("SET spark.sql.session.timeZone=Asia/Tokyo"),
            Gives(
                "SELECT id, string(z), string(n), string(d) FROM {t}",
                [
                    [1, "2026-07-02 01:00:00", "2026-07-01 12:00:00", "2026-07-01"],
                    [2, "2026-07-02 01:00:00", "2026-07-01 12:00:00", "2026-07-01"],
                    [3, "2026-07-01 13:00:00", "2026-07-01 00:00:00", "2026-07-01"],
                ],
            ),
        ],
    ),
    Case(
        name="insert-times-in-another-zone",
        trap="Paimon DDLTestBase: select table with timestamp and timestamp_ntz with filter; Delta: timestamps "
        "across time zones",
        why="keyed tables have no times without zone, which Hive doesn't know",
        columns="id INT, z TIMESTAMP, d DATE",
        settings={"spark.sql.session.timeZone": "America/New_York"},
        steps=[
            Refused(
                "CREATE TABLE {t}_s (id INT, n TIMESTAMP_NTZ) USING parquet TBLPROPERTIES ('primary-key' = 'id')",
                "TIMESTAMP_NTZ",
            ),
            Do("INSERT INTO {t} SELECT 1, timestamp_ntz'2026-07-01 12:00:00', timestamp'2026-07-01 23:30:00'"),
            Do("INSERT INTO {t} SELECT 2, date'2026-07-01', timestamp_ntz'2026-07-01 23:30:00'"),
            Do("INSERT INTO {t} VALUES (3, timestamp'2026-07-01 12:00:00', NULL)"),
            Do("SET spark.sql.session.timeZone=Asia/Tokyo"),
            Gives("SELECT id FROM {t} WHERE z = timestamp'2026-07-02 01:00:00'", [[1], [3]]),
            Gives("SELECT id FROM {t} WHERE z = timestamp_ntz'2026-07-01 13:00:00'", [[2]]),
            Do("UPDATE {t} SET d = CAST(z AS DATE) WHERE z > timestamp'2026-07-01 12:59:59.999999'"),
            Gives(
                "SELECT id, string(z), string(d) FROM {t}",
                [
                    [1, "2026-07-02 01:00:00", "2026-07-02"],
                    [2, "2026-07-01 13:00:00", "2026-07-01"],
                    [3, "2026-07-02 01:00:00", "2026-07-02"],
                ],
            ),
        ],
    ),
    Case(
        name="insert-repeats-a-key",
        trap="Delta MergeIntoSuiteBase: insert of duplicates; Paimon SparkWriteITCase: Paimon Write",
        why="Delta has no keys, and Paimon keeps the row that it happens to write last. Without an order none is right",
        columns="id INT, v STRING, n INT",
        rows="(1, 'a', 1)",
        steps=[
            Refused("INSERT INTO {t} VALUES (2, 'x', 1), (2, 'y', 1)", "nothing orders them"),
            Refused("INSERT INTO {t} SELECT 2, IF(id = 0, NULL, 'x'), 1 FROM range(2)", "nothing orders them"),
            Do("INSERT INTO {t} SELECT 2, 'x', NULL FROM range(100)"),
            Do("INSERT INTO {t} VALUES (1, NULL, NULL)"),
            Holds([[1, None, None], [2, "x", None]]),
        ],
    ),
    Case(
        name="insert-repeats-a-row-without-key",
        trap="Delta DeltaInsertIntoTableSuite: insertInto: append",
        columns="id INT, v STRING, n INT",
        on=("plain",),
        rows="(1, 'a', 1), (1, 'a', 1)",
        steps=[
            Do("INSERT INTO {t} SELECT * FROM {t}"),
            Holds([[1, "a", 1]] * 4),
            Do("INSERT INTO {t} TABLE {t}"),
            Holds([[1, "a", 1]] * 8),
        ],
    ),
    Case(
        name="insert-into-several-tables",
        trap="Spark's FROM … INSERT … INSERT, which Delta and Iceberg run one after the other",
        why="each INSERT is one instant. The first one stays if a later one fails",
        columns="id INT, v STRING, p STRING",
        key="id,p",
        partitions="p",
        rows="(1, 'a', 'x'), (2, 'b', 'x')",
        steps=[
            Do("CREATE TABLE {t}_other (id INT, v STRING) USING parquet TBLPROPERTIES ('primary-key' = 'id')"),
            Do(
                "FROM (SELECT id + 10 AS id, v FROM {t}) s "
                "INSERT INTO {t} PARTITION (p = 'y') SELECT s.id, s.v WHERE s.id = 11 "
                "INSERT INTO {t}_other SELECT s.id, upper(s.v) WHERE s.id > 11 "
                "INSERT INTO {t} SELECT s.id, 'third', 'z' WHERE s.id = 12"
            ),
            Holds([[1, "a", "x"], [2, "b", "x"], [11, "a", "y"], [12, "third", "z"]]),
            Gives("SELECT * FROM {t}_other", [[12, "B"]]),
            Do(
                "FROM {t} INSERT OVERWRITE {t} PARTITION (p = 'z') SELECT id, 'over' WHERE id = 1 "
                "INSERT OVERWRITE {t}_other SELECT id, v WHERE id < 3"
            ),
            Holds([[1, "a", "x"], [2, "b", "x"], [11, "a", "y"], [1, "over", "z"]]),
            Gives("SELECT id FROM {t}_other", [[1], [2]]),
        ],
    ),
    Case(
        name="insert-into-several-tables-without-key",
        caught="a later INSERT saw what an earlier one of the statement had written",
        trap="Spark's FROM … INSERT … INSERT, which Delta and Iceberg run one after the other",
        why="a later INSERT of the statement would read what an earlier one has written into the directories",
        columns="id INT, v STRING",
        on=("plain",),
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do(
                "CREATE TABLE {t}_other (id INT, v STRING) USING parquet TBLPROPERTIES ('timeline.archived-days' = '9')"
            ),
            Refused(
                "FROM {t} INSERT INTO {t} SELECT id + 10, v INSERT INTO {t}_other SELECT id, v WHERE id > 1",
                "read by a later one",
            ),
            Refused(
                "FROM {t} INSERT INTO {t} SELECT 5, v INSERT INTO {t}_other SELECT 1, 'x' "
                "WHERE 5 IN (SELECT id FROM {t})",
                "read by a later one",
            ),
            Gives("SELECT * FROM {t}_other", []),
            Do("FROM {t} INSERT INTO {t}_other SELECT id, v WHERE id > 1 INSERT OVERWRITE {t} SELECT id + 10, v"),
            Gives("SELECT * FROM {t}_other", [[2, "b"]]),
            Holds([[11, "a"], [12, "b"]]),
        ],
    ),
    Case(
        name="insert-reads-its-own-table",
        trap="Iceberg TestMerge: testMergeWithSourceAsSelfSubquery, as INSERT; Delta: scans on different versions "
        "of same table",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("INSERT INTO {t} SELECT * FROM {t}"),
            Do(
                "WITH q AS (SELECT id + 10 AS id, v FROM {t}) INSERT INTO {t} SELECT * FROM q WHERE id NOT IN "
                "(SELECT id FROM {t})"
            ),
            Do("INSERT INTO {t} SELECT id + 1, concat(v, '!') FROM {t}"),
            Holds([[1, "a"], [2, "a!"], [3, "b!"], [11, "a"], [12, "a!"], [13, "b!"]]),
            Do("INSERT INTO {t} SELECT o.id, n.v FROM {t} VERSION AS OF 1 o JOIN {t} n ON n.id = o.id + 10"),
            Holds([[1, "a"], [2, "a!"], [3, "b!"], [11, "a"], [12, "a!"], [13, "b!"]]),
        ],
    ),
    Case(
        name="insert-into-views",
        trap="Delta DeltaInsertIntoTableSuite: insertInto a temp view created on top of a table",
        why="Delta takes views that select all. A view is no place to write here, whatever it selects",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a')",
        steps=[
            Do("CREATE VIEW {t}_view AS SELECT * FROM {t}"),
            Do("CREATE TEMPORARY VIEW {v} AS SELECT id, v FROM {t}"),
            Refused("INSERT INTO {t}_view VALUES (2, 'b')", "view"),
            Refused("INSERT OVERWRITE {t}_view VALUES (2, 'b')", "view"),
            Refused("INSERT INTO {v} VALUES (2, 'b')", "view"),
        ],
    ),
    Case(
        name="insert-into-a-view-of-a-dataframe",
        trap="Delta DeltaInsertIntoTableSuite: insertInto a temp view created on top of a table - dataset temp view",
        why="what Spark takes for the table itself is written by its timeline, or refused; never past it",
        columns="id INT, v STRING",
        on=("plain",),
        rows="(1, 'a')",
        steps=[
            Python("spark.table(table).createOrReplaceTempView(table.split('.')[1] + '_seen')"),
            Do("INSERT INTO {t} VALUES (2, 'b')"),
            Python(
                "try:\n"
                "    spark.sql(f\"INSERT INTO {table.split('.')[1]}_seen VALUES (3, 'c')\")\n"
                "except Exception as error:\n"
                "    assert 'view' in str(error).lower(), error\n"
                "    spark.sql(f\"INSERT INTO {table} VALUES (3, 'c')\")\n"
            ),
            Holds([[1, "a"], [2, "b"], [3, "c"]]),
        ],
    ),
    Case(
        name="insert-nothing-but-nulls",
        trap="Delta MergeIntoSuiteBase: NullType in source non-key column; MergeIntoNullTypeTests",
        columns="id INT, a STRING, b ARRAY<INT>, c STRUCT<x: INT, y: ARRAY<STRING>>, d MAP<STRING, INT>",
        on=ALL,
        steps=[
            Do("INSERT INTO {t} SELECT 1, NULL, NULL, NULL, NULL"),
            Do("INSERT INTO {t} SELECT 2, NULL, array(NULL), named_struct('x', NULL, 'y', array()), map()"),
            Gives(
                "SELECT id, a, b, c IS NULL, c.x, c.y, d IS NULL, map_keys(d) FROM {t}",
                [[1, None, None, True, None, None, True, None], [2, None, [None], False, None, [], False, []]],
            ),
        ],
    ),
    Case(
        name="insert-in-mid-fails",
        trap="Paimon SparkWriteITCase: abort cleans uncommitted files; Iceberg TestWriteAborts",
        columns="id INT, v STRING, p STRING",
        key="id,p",
        partitions="p",
        on=ALL,
        rows="(1, 'a', 'x')",
        steps=[
            Refused(
                "INSERT INTO {t} SELECT /*+ REPARTITION(2) */ id, IF(id = 90, raise_error('no luck'), 'v'), id % 3 "
                "FROM range(100)",
                "no luck",
            ),
            Refused("INSERT INTO {t} SELECT id, CAST(1 / (id - 90) AS STRING), 'y' FROM range(100)", "zero"),
            Do("INSERT INTO {t} SELECT id, 'v', 'y' FROM range(3)"),
            Gives("SELECT p, count(*) FROM {t} GROUP BY p", [["x", 1], ["y", 3]]),
        ],
        settings={"spark.sql.ansi.enabled": "true"},
    ),
]
