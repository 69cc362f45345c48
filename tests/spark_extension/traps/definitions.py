"""Definitions: columns that are renamed, dropped and added again, odd names, and tables that are made anew or of "
"nothing."""

from tests.spark_extension.traps.cases import ALL, Case, Do, Gives, Holds, Python, Refused

CASES = [
    Case(
        name="column-dropped-and-added-again",
        trap="Paimon SparkSchemaEvolutionITCase: testDropSingleColumn, testSchemaEvolution; Delta DeltaDropColumnSuite",
        columns="id INT, v STRING, n INT",
        rows="(1, 'a', 1), (2, 'b', 2)",
        steps=[
            Do("ALTER TABLE {t} DROP COLUMN v"),
            Do("ALTER TABLE {t} ADD COLUMNS (v STRING)"),
            Gives("SELECT id, v, n FROM {t}", [[1, None, 1], [2, None, 2]]),
            Gives("SELECT id FROM {t} WHERE v = 'a'", []),
            Gives("SELECT id FROM {t} WHERE v IS NULL", [[1], [2]]),
            Do("UPDATE {t} SET v = 'new' WHERE v IS NULL AND id = 1"),
            Do("ALTER TABLE {t} DROP COLUMN n"),
            Do("ALTER TABLE {t} ADD COLUMNS (n STRING)"),
            Gives("SELECT id, v, n FROM {t}", [[1, "new", None], [2, None, None]]),
            Do("INSERT INTO {t} (id, v, n) VALUES (3, 'c', 'text')"),
            Gives("SELECT id, v, n FROM {t}", [[1, "new", None], [2, None, None], [3, "c", "text"]]),
            Gives("SELECT id, v, n FROM {t} VERSION AS OF 1", [[1, None, None], [2, None, None]]),
        ],
    ),
    Case(
        name="column-renamed",
        trap="Iceberg TestSelect: testTimeTravelFilterOnRenamedColumn, …WithDeleteFiles; Delta DeltaColumnRenameSuite",
        columns="id INT, v STRING, n INT",
        rows="(1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        steps=[
            Do("DELETE FROM {t} WHERE id = 3"),
            Do("ALTER TABLE {t} RENAME COLUMN v TO w"),
            Gives("SELECT w FROM {t} WHERE w = 'b'", [["b"]]),
            Gives("SELECT w FROM {t} VERSION AS OF 1 WHERE w IN ('a', 'c')", [["a"], ["c"]]),
            Do("UPDATE {t} SET w = upper(w) WHERE w = 'b'"),
            Do("INSERT INTO {t} VALUES (4, 'd', 4)"),
            Holds([[1, "a", 1], [2, "B", 2], [4, "d", 4]]),
            Do("DELETE FROM {t} WHERE w = 'a'"),
            Refused("SELECT v FROM {t}", "`v`"),
            Holds([[2, "B", 2], [4, "d", 4]]),
        ],
    ),
    Case(
        name="columns-that-swap-names",
        trap="Delta DeltaColumnMappingSuite: rename columns; Iceberg: columns are found by their ids",
        columns="id INT, a INT, b INT",
        rows="(1, 10, 20)",
        steps=[
            Do("ALTER TABLE {t} RENAME COLUMN a TO c"),
            Do("ALTER TABLE {t} RENAME COLUMN b TO a"),
            Do("ALTER TABLE {t} RENAME COLUMN c TO b"),
            Gives("SELECT id, a, b FROM {t}", [[1, 20, 10]]),
            Gives("SELECT id FROM {t} WHERE a = 20", [[1]]),
            Gives("SELECT id FROM {t} WHERE a = 10", []),
            Do("INSERT INTO {t} (id, a, b) VALUES (2, 1, 2)"),
            Do("UPDATE {t} SET a = a + 1"),
            Gives("SELECT id, a, b FROM {t}", [[1, 21, 10], [2, 2, 2]]),
            Gives("SELECT a, b FROM {t} VERSION AS OF 1", [[20, 10]]),
        ],
    ),
    Case(
        name="column-that-changes-its-case",
        caught="it was refused",
        trap="Delta DeltaColumnRenameSuite: rename to another case; Paimon: rename column",
        columns="id INT, Name STRING",
        rows="(1, 'a')",
        steps=[
            Do("ALTER TABLE {t} RENAME COLUMN NAME TO nAME"),
            Python("assert spark.table(table).columns == ['id', 'nAME'], spark.table(table).columns"),
            Do("INSERT INTO {t} (ID, NAME) VALUES (2, 'b')"),
            Holds([[1, "a"], [2, "b"]]),
        ],
    ),
    Case(
        name="columns-that-stay",
        trap="Paimon SparkSchemaEvolutionITCase: testDropPrimaryKey, testRenamePrimaryKey, testRenamePartitionKey, "
        "…BucketKey",
        columns="id INT, v STRING, at INT, p STRING, s STRUCT<a: INT>",
        key="id,p",
        partitions="p",
        properties={"sequence.field": "at"},
        rows="(1, 'a', 1, named_struct('a', 1), 'x')",
        steps=[
            Refused("ALTER TABLE {t} DROP COLUMN id", "keeps its name and stays"),
            Refused("ALTER TABLE {t} RENAME COLUMN ID TO other", "keeps its name and stays"),
            Refused("ALTER TABLE {t} RENAME COLUMN p TO other", "keeps its name and stays"),
            Refused("ALTER TABLE {t} DROP COLUMNS (v, at)", "keeps its name and stays"),
            Refused("ALTER TABLE {t} RENAME COLUMN v TO ID", "already"),
            Refused("ALTER TABLE {t} ADD COLUMNS (V INT)", "already|exists"),
            Refused("ALTER TABLE {t} DROP COLUMN nothing", "nothing"),
            Refused("ALTER TABLE {t} RENAME COLUMN s.a TO b", "fields of structs"),
            Refused("ALTER TABLE {t} DROP COLUMN s.a", "fields of structs"),
            Refused("ALTER TABLE {t} ADD COLUMN s.b INT", "."),
            Refused("ALTER TABLE {t} REPLACE COLUMNS (id INT)", "."),
            Refused("ALTER TABLE {t} ALTER COLUMN v TYPE INT", "."),
            Refused("ALTER TABLE {t} ALTER COLUMN id TYPE STRING", "."),
        ],
    ),
    Case(
        name="columns-with-odd-names",
        trap="Delta DeltaArbitraryColumnNameSuite; Paimon: special names; Spark's keywords",
        why="fields of structs have names that Hive's types take",
        columns="`a.b` INT, `c d` STRING, `e``f` INT, `select` INT, `größe` INT, `名` STRING, `x-y` STRUCT<p: INT>",
        key="a.b,c d",
        rows="(1, 'k', 2, 3, 4, 'n', named_struct('p', 5))",
        steps=[
            Holds([[1, "k", 2, 3, 4, "n", [5]]]),
            Do("UPDATE {t} SET `e``f` = `select` + 1, `x-y`.p = 6 WHERE `a.b` = 1 AND `größe` = 4"),
            Do(
                "MERGE INTO {t} t USING (SELECT 1 AS `a.b`, 'k' AS `c d`, 9 AS `select`) s ON t.`a.b` = s.`a.b` "
                "WHEN MATCHED THEN UPDATE SET `select` = s.`select`"
            ),
            Do("INSERT INTO {t} (`名`, `a.b`, `c d`) VALUES ('m', 2, '')"),
            Gives(
                "SELECT `a.b`, `c d`, `e``f`, `select`, `größe`, `名`, `x-y`.p FROM {t}",
                [[1, "k", 4, 9, 4, "n", 6], [2, "", None, None, None, "m", None]],
            ),
            Gives("SELECT `名` FROM {t} WHERE `a.b` = 2 AND `c d` = ''", [["m"]]),
            Gives("SELECT `名` FROM {t} WHERE `select` = 9 AND `e``f` > 3 AND `x-y`.p = 6", [["n"]]),
            Do("DELETE FROM {t} WHERE `名` = 'n'"),
            Do("ALTER TABLE {t} RENAME COLUMN `größe` TO `new name`"),
            Gives("SELECT `a.b`, `new name` FROM {t}", [[2, None]]),
        ],
    ),
    Case(
        name="columns-that-differ-in-case",
        trap="Delta DeltaColumnMappingSuite, Iceberg TestCreateTable: names that differ in case alone",
        columns="",
        on=("copy-on-write",),
        settings={"spark.sql.caseSensitive": "true"},
        steps=[
            Refused("CREATE TABLE {t} (id INT, a INT, A INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')", "."),
            Gives("SHOW TABLES IN {db} LIKE 'a_table_that_is_not_there'", []),
        ],
    ),
    Case(
        name="column-added",
        trap="Paimon SparkSchemaEvolutionITCase: testAddColumn; Iceberg TestAlterTable",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a')",
        steps=[
            Do("ALTER TABLE {t} ADD COLUMNS (n INT COMMENT 'c', s STRUCT<a: INT>)"),
            Holds([[1, "a", None, None]]),
            Gives("SELECT id FROM {t} WHERE n IS NULL AND s.a IS NULL AND coalesce(n, 0) = 0", [[1]]),
            Gives("SELECT id FROM {t} WHERE n > 0 OR s IS NOT NULL", []),
            Do("INSERT INTO {t} VALUES (2, 'b', 2, named_struct('a', 3))"),
            Do("INSERT INTO {t} (id) VALUES (3)"),
            Gives("SELECT id, v, n, s.a FROM {t}", [[1, "a", None, None], [2, "b", 2, 3], [3, None, None, None]]),
            Gives("SELECT sum(n), max(n), count(n), count(*) FROM {t}", [[2, 2, 1, 3]]),
        ],
    ),
    Case(
        name="column-added-with-a-default",
        caught="Spark showed the default in older rows of a table without a key, other readers null; all showed "
        "null with a key",
        trap="Delta DeltaInsertIntoTableSuite: Column DEFAULT … negative tests; Iceberg TestFilterPushDown: "
        "…InitialDefaultColumnAbsent…",
        why="Spark's tables show the default in rows that are older than the column. Not all readers of lake tables "
        "know it, "
        "so it is refused, as by Delta, unless there are no rows",
        columns="id INT, v STRING",
        on=ALL,
        steps=[
            Do("ALTER TABLE {t} ADD COLUMNS (early INT DEFAULT 3)"),
            Do("INSERT INTO {t} (id, v) VALUES (1, 'a')"),
            Refused("ALTER TABLE {t} ADD COLUMNS (n INT DEFAULT 5)", "ALTER COLUMN .?n.? SET DEFAULT"),
            Do("ALTER TABLE {t} ADD COLUMNS (n INT)"),
            Do("ALTER TABLE {t} ALTER COLUMN n SET DEFAULT 5"),
            Do("INSERT INTO {t} (id) VALUES (2)"),
            Gives("SELECT id, v, early, n FROM {t}", [[1, "a", 3, None], [2, None, 3, 5]]),
            Do("ALTER TABLE {t} ALTER COLUMN n DROP DEFAULT"),
            Do("INSERT INTO {t} (id) VALUES (3)"),
            Gives("SELECT id, n FROM {t}", [[1, None], [2, 5], [3, None]]),
        ],
    ),
    Case(
        name="columns-that-must-have-values",
        trap="Paimon DDLTestBase: create primary-key table with not null, write nullable expression to non-null column",
        why="Spark's session catalog doesn't keep NOT NULL, of no table. What a key, a sequence or a partition "
        "needs is never null",
        columns="id INT NOT NULL, v STRING NOT NULL, at INT",
        properties={"sequence.field": "at"},
        rows="(1, 'a', 1)",
        steps=[
            Refused("INSERT INTO {t} VALUES (NULL, 'x', 1)", "null"),
            Refused("INSERT INTO {t} (id, v) VALUES (2, 'x')", "null|`at`"),
            Refused("INSERT INTO {t} SELECT IF(id > 1, NULL, id), 'x', 1 FROM range(3)", "null"),
            Do("INSERT INTO {t} SELECT IF(id > 9, NULL, id), NULL, 5 FROM range(2, 3)"),
            Holds([[1, "a", 1], [2, None, 5]]),
        ],
    ),
    Case(
        name="table-made-again-under-its-name",
        trap="Delta DeltaSuite: table is dropped and made again; Paimon DDLTestBase: create and drop managed table",
        why="positions go on under a name, so that an earlier table's position is never another table's rows",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("CREATE VIEW {t}_view AS SELECT id FROM {t}"),
            Python("spark.table(table).where('id = 1').count()"),
            Do("DROP TABLE {t}"),
            Do("CREATE TABLE {t} (id INT, w INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')"),
            Holds([]),
            Gives("SELECT * FROM {t}_view", []),
            Refused("SELECT * FROM {t} VERSION AS OF 1", "no position 1"),
            Do("INSERT INTO {t} VALUES (1, 5)"),
            Holds([[1, 5]]),
            Gives("SELECT * FROM {t} VERSION AS OF 1", []),
            Gives("SELECT * FROM {t}_view", [[1]]),
        ],
    ),
    Case(
        name="dataframe-of-a-table-that-was-made-again",
        trap="Iceberg TestRepeatedTableAccess; Delta DeltaDatasetPinningTests",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Python(
                "kept = spark.table(table)\n"
                "spark.sql(f'DROP TABLE {table}')\n"
                "spark.sql(f\"CREATE TABLE {table} (id INT, v STRING) USING parquet TBLPROPERTIES ('primary-key' = "
                "'id')\")\n"
                "spark.sql(f\"INSERT INTO {table} VALUES (7, 'new')\")\n"
                "try:\n"
                "    found = [list(row) for row in kept.collect()]\n"
                "except Exception as error:\n"
                "    found = 'refused'\n"
                "assert found in ([[7, 'new']], 'refused'), found\n"
            ),
            Holds([[7, "new"]]),
        ],
    ),
    Case(
        name="table-renamed",
        trap="Paimon DDLTestBase: rename table; Iceberg TestAlterTable: testTableRename",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Do("UPDATE {t} SET v = 'b'"),
            Do("ALTER TABLE {t} RENAME TO {t}_moved"),
            Do("INSERT INTO {t}_moved VALUES (2, 'c')"),
            Gives("SELECT * FROM {t}_moved", [[1, "b"], [2, "c"]]),
            Gives("SELECT * FROM {t}_moved VERSION AS OF 1", [[1, "a"]]),
            Do("CREATE TABLE {t} (id INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')"),
            Do("INSERT INTO {t} VALUES (9)"),
            Gives("SELECT * FROM {t}", [[9]]),
            Gives("SELECT * FROM {t}_moved", [[1, "b"], [2, "c"]]),
        ],
    ),
    Case(
        name="table-like-another",
        trap="Paimon DDLTestBase: create table like with paimon SparkCatalog; Delta DeltaCreateTableLikeSuite",
        why="Paimon and Delta copy key and properties. Spark's session catalog copies the columns alone, so these "
        "have to be given",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Do("CREATE TABLE {t}_bare LIKE {t}"),
            Refused("UPDATE {t}_bare SET v = 'x'", "."),
            Do("CREATE TABLE {t}_like LIKE {t} TBLPROPERTIES ('primary-key' = 'id')"),
            Do("INSERT INTO {t}_like SELECT * FROM {t}"),
            Do("INSERT INTO {t}_like VALUES (1, 'b'), (2, 'c')"),
            Gives("SELECT * FROM {t}_like", [[1, "b"], [2, "c"]]),
            Holds([[1, "a"]]),
        ],
    ),
    Case(
        name="table-made-of-a-query-that-fails",
        trap="Iceberg TestCreateTableAsSelect; Delta: CTAS fails in mid and leaves nothing",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Refused(
                "CREATE TABLE {t}_made USING parquet TBLPROPERTIES ('primary-key' = 'id') "
                "AS SELECT id, IF(id = 2, raise_error('no luck'), v) AS v FROM {t}",
                "no luck",
            ),
            Refused(
                "CREATE TABLE {t}_made USING parquet TBLPROPERTIES ('primary-key' = 'id') AS SELECT 1 AS id, v FROM "
                "{t}",
                "nothing orders them",
            ),
            Refused("SELECT * FROM {t}_made", "not.*found|NOT_FOUND"),
            Do("CREATE TABLE {t}_made USING parquet TBLPROPERTIES ('primary-key' = 'id') AS SELECT * FROM {t}"),
            Gives("SELECT * FROM {t}_made", [[1, "a"], [2, "b"]]),
            Do(
                "CREATE TABLE IF NOT EXISTS {t} USING parquet TBLPROPERTIES ('primary-key' = 'id') AS SELECT 5 AS "
                "id, 'x' AS v"
            ),
            Refused(
                "CREATE TABLE {t} USING parquet TBLPROPERTIES ('primary-key' = 'id') AS SELECT 5 AS id, 'x' AS v",
                "exists",
            ),
            Holds([[1, "a"], [2, "b"]]),
        ],
    ),
    Case(
        name="table-replaced-by-a-query",
        trap="Paimon DDLTestBase: CREATE OR REPLACE TABLE AS SELECT; Iceberg TestCreateTableAsSelect: testRTAS",
        why="the others replace the table in place. Spark's session catalog can't, so it is refused and the rows stay",
        columns="id INT, v STRING",
        on=ALL,
        rows="(1, 'a')",
        steps=[
            Refused("CREATE OR REPLACE TABLE {t} USING parquet AS SELECT 5 AS id, 'x' AS v", "."),
            Refused("REPLACE TABLE {t} USING parquet AS SELECT id + 1 AS id, v FROM {t}", "."),
            Refused("CREATE OR REPLACE TABLE {t} (id INT) USING parquet", "."),
            Refused("CREATE OR REPLACE TABLE {t} AS SELECT 5 AS id", "."),
            Python(
                "try:\n"
                "    spark.sql('SELECT 1 id').writeTo(table).using('parquet').createOrReplace()\n"
                "    assert False, 'replaced'\n"
                "except Exception as error:\n"
                "    assert 'replaced' not in str(error), error\n"
            ),
            Holds([[1, "a"]]),
        ],
    ),
    Case(
        name="columns-with-names-of-ours",
        caught="lake_changes failed with an internal error",
        trap="Delta MergeIntoSQLSuite: User defined _change_type column doesn't get dropped; "
        "DMLWithConflictingMetadataColumnSuite",
        columns="id INT, _change_type STRING, _commit_version INT, _metadata STRING",
        rows="(1, 'delete', 5, 'm')",
        steps=[
            Do("INSERT INTO {t} VALUES (2, 'update_preimage', 6, 'n')"),
            Do("UPDATE {t} SET _change_type = 'insert' WHERE _change_type = 'delete'"),
            Do(
                "MERGE INTO {t} t USING (SELECT 2 AS id, 'delete' AS _change_type) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET _change_type = s._change_type, _commit_version = 0"
            ),
            Holds([[1, "insert", 5, "m"], [2, "delete", 0, "n"]]),
            Refused("SELECT * FROM lake_changes('{t}', 0)", "has a column _change_type.*rename it"),
        ],
    ),
    Case(
        name="columns-with-names-of-our-files",
        caught="a table could have a column by which log files say that a row is deleted",
        trap="Delta DMLWithConflictingMetadataColumnSuite; Iceberg: reserved names of metadata columns",
        columns="",
        on=("copy-on-write",),
        steps=[
            Refused(
                "CREATE TABLE {t} (id INT, _metastore_deleted BOOLEAN) USING parquet TBLPROPERTIES ('primary-key' = "
                "'id')",
                "_metastore",
            ),
            Refused(
                "CREATE TABLE {t} (id INT, _METASTORE_instant STRING) USING parquet TBLPROPERTIES ('primary-key' = "
                "'id')",
                "_metastore",
            ),
            Do("CREATE TABLE {t} (id INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')"),
            Refused("ALTER TABLE {t} ADD COLUMNS (_metastore_deleted BOOLEAN)", "_metastore"),
        ],
    ),
    Case(
        name="keys-of-types-that-have-no-order",
        trap="Iceberg: identifier fields can't be floats; Delta, Paimon: complex types as keys",
        columns="",
        on=("copy-on-write",),
        steps=[
            *(
                Refused(f"CREATE TABLE {{t}} (k {type_}, v INT) USING parquet TBLPROPERTIES ('primary-key' = 'k')", "k")
                for type_ in (
                    "DOUBLE",
                    "FLOAT",
                    "DECIMAL(10, 2)",
                    "CHAR(3)",
                    "ARRAY<INT>",
                    "MAP<INT, INT>",
                    "STRUCT<a: INT>",
                )
            ),
            Refused("CREATE TABLE {t} (k INT) USING parquet TBLPROPERTIES ('primary-key' = 'nothing')", "nothing"),
            Refused(
                "CREATE TABLE {t} (k INT) USING parquet TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '0')", "bucket"
            ),
        ],
    ),
    Case(
        name="columns-that-are-computed",
        trap="Delta GeneratedColumnSuite: insert_into_by_name_not_provide_generated_columns",
        why="Delta computes them. Spark's session catalog refuses them",
        columns="",
        on=("copy-on-write",),
        steps=[
            Refused(
                "CREATE TABLE {t} (id INT, twice INT GENERATED ALWAYS AS (id * 2)) USING parquet TBLPROPERTIES "
                "('primary-key' = 'id')",
                "generated",
            ),
        ],
    ),
    Case(
        name="columns-of-types-without-values",
        trap="Delta MergeIntoNullTypeTests, UpdateSuiteBase: basic case with NullType",
        columns="",
        on=("copy-on-write",),
        steps=[
            Refused(
                "CREATE TABLE {t} USING parquet TBLPROPERTIES ('primary-key' = 'id') AS SELECT 1 AS id, NULL AS "
                "nothing",
                ".",
            ),
            Refused(
                "CREATE TABLE {t} USING parquet TBLPROPERTIES ('primary-key' = 'id') AS SELECT 1 AS id, interval 1 "
                "month AS i",
                ".",
            ),
            Refused("SELECT * FROM {t}", "not.*found|NOT_FOUND"),
        ],
    ),
    Case(
        name="partition-dropped",
        trap="Paimon DDLTestBase: Drop Partition by partial spec; Iceberg: drop partition and time travel",
        columns="id INT, p STRING, q INT",
        key="id,p,q",
        partitions="p, q",
        rows="(1, 'x', 1), (2, 'x', 2), (3, 'y', 1)",
        steps=[
            Do("ALTER TABLE {t} DROP PARTITION (p = 'x')"),
            Holds([[3, "y", 1]]),
            Do("INSERT INTO {t} VALUES (4, 'x', 1)"),
            Holds([[3, "y", 1], [4, "x", 1]]),
            Gives("SELECT id FROM {t} WHERE p = 'x'", [[4]]),
        ],
    ),
]
