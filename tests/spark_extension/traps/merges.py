"""MERGE: several matches, nulls, sources that change while they are read, and rows that no source row matches."""

from tests.spark_extension.traps.cases import Case, Do, Gives, Holds, Refused

SEVERAL = "multiple source|MERGE_CARDINALITY"

RANDOM = (
    "MERGE INTO {t} t USING (SELECT CAST(id AS INT) AS id, CAST(rand() * 1000000 AS INT) AS r, uuid() AS u "
    "FROM range(6)) s ON t.id = s.id WHEN MATCHED AND s.r % 2 = 0 THEN UPDATE SET a = s.r, b = s.r, u = s.u "
    "WHEN MATCHED AND s.r % 2 = 1 THEN UPDATE SET a = s.r, b = s.r + 1, u = s.u "
    "WHEN NOT MATCHED THEN INSERT (id, a, b, u) VALUES (s.id, s.r, s.r + s.r % 2, s.u)"
)

CASES = [
    Case(
        name="merge-null-key-of-source",
        trap="Delta MergeIntoSuiteBase: null value in source",
        why="Delta inserts the row with a null. A key is never null here",
        columns="id INT, v INT",
        rows="(1, 10), (2, 20)",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (CAST(NULL AS INT), 5), (2, 7) AS s(id, v)) s ON t.id "
                "= s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
                "null",
            ),
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (CAST(NULL AS INT), 5), (2, 7) AS s(id, v)) s ON t.id "
                "= s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT *"
            ),
            Holds([[1, 10], [2, 7]]),
        ],
    ),
    Case(
        name="merge-nulls-on-both-sides",
        trap="Delta MergeIntoSuiteBase: null value in both source and target, <=> in condition",
        columns="id INT, v INT, n STRING",
        rows="(1, NULL, NULL), (2, 5, NULL)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (CAST(NULL AS INT), 'null'), (5, 'five') AS s(v, n)) s "
                "ON t.v = s.v WHEN MATCHED THEN UPDATE SET n = s.n"
            ),
            Holds([[1, None, None], [2, 5, "five"]]),
            Do(
                "MERGE INTO {t} t USING (SELECT CAST(NULL AS INT) AS v, 'null' AS n) s "
                "ON t.v <=> s.v WHEN MATCHED THEN UPDATE SET n = s.n"
            ),
            Holds([[1, None, "null"], [2, 5, "five"]]),
        ],
    ),
    Case(
        name="merge-condition-is-null",
        trap="Iceberg TestMerge: testMergeWithNullCondition",
        columns="id INT, v STRING",
        rows="(1, 'one')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT 2 AS id, 'two' AS v) s ON t.id = s.id AND CAST(NULL AS BOOLEAN) "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN UPDATE SET "
                "v = 'left'"
            ),
            Holds([[1, "left"], [2, "two"]]),
        ],
    ),
    Case(
        name="merge-conditions-of-clauses-are-null",
        trap="Iceberg TestMerge: testMergeWithNullActionConditions",
        columns="id INT, v INT",
        rows="(1, 10), (6, NULL)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 11), (2, 22) AS s(id, v)) s ON t.id = s.id "
                "WHEN MATCHED AND CAST(NULL AS BOOLEAN) THEN UPDATE SET v = s.v WHEN MATCHED AND t.v > NULL THEN "
                "DELETE "
                "WHEN NOT MATCHED AND s.v = NULL THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.v <> 0 THEN DELETE"
            ),
            Holds([[1, 10], [6, None]]),
        ],
    ),
    Case(
        name="merge-several-source-rows",
        trap="Paimon MergeIntoTableTestBase: more than one source rows match the same target row",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'y') AS s(id, v)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v",
                SEVERAL,
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'x') AS s(id, v)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
                SEVERAL,
            ),
        ],
    ),
    Case(
        name="merge-several-source-rows-of-which-one-acts",
        trap="Iceberg TestMerge: testMergeWithOneMatchingBranchButMultipleSourceRowsForTargetRow",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'y') AS s(id, v)) s ON t.id = s.id "
                "WHEN MATCHED AND s.v = 'x' THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
                SEVERAL,
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'y') AS s(id, v)) s ON t.id = s.id "
                "WHEN MATCHED AND s.v = 'x' THEN DELETE",
                SEVERAL,
            ),
        ],
    ),
    Case(
        name="merge-deletes-with-several-matches",
        trap="Delta MergeIntoSuiteBase: only delete with multiple matches",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'y'), (1, 'x') AS s(id, v)) s ON t.id = "
                "s.id "
                "WHEN MATCHED THEN DELETE"
            ),
            Holds([[2, "b"]]),
            Do("INSERT INTO {t} VALUES (1, 'again')"),
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'y'), (3, 'z') AS s(id, v)) s ON t.id = "
                "s.id "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
            ),
            Holds([[2, "b"], [3, "z"]]),
        ],
    ),
    Case(
        name="merge-source-repeats-a-new-key",
        trap="Delta MergeIntoSuiteBase: insert only merge with multiple matches",
        why="Delta inserts all of them. One key has one row here, and nothing says which of several it is",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (7, 'x'), (7, 'y') AS s(id, v)) s ON t.id = s.id "
                "WHEN NOT MATCHED THEN INSERT *",
                "nothing orders them",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (7, 'x'), (7, 'y') AS s(id, v)) s ON t.id = s.id "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
                "nothing orders them",
            ),
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'x'), (1, 'y'), (7, 'z'), (7, 'z') AS s(id, v)) s "
                "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
            ),
            Holds([[1, "a"], [7, "z"]]),
        ],
    ),
    Case(
        name="merge-one-source-row-for-many-rows",
        trap="Delta MergeIntoSuiteBase: More than one target rows match the same source row",
        columns="id INT, v STRING, n INT",
        rows="(1, 'a', 0), (2, 'a', 0), (3, 'b', 0)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT 'a' AS v, 5 AS n) s ON t.v = s.v WHEN MATCHED AND t.id = 2 THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1"
            ),
            Holds([[1, "a", 5], [3, "b", -1]]),
        ],
    ),
    Case(
        name="merge-with-itself",
        trap="Iceberg TestMerge: testSelfMerge; Delta MergeIntoSuiteBase: self merge",
        columns="id INT, v INT",
        rows="(1, 10), (2, 20)",
        steps=[
            Do("MERGE INTO {t} t USING {t} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + s.v"),
            Holds([[1, 20], [2, 40]]),
            Do(
                "MERGE INTO {t} t USING (SELECT id + 1 AS id, v FROM {t}) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
            ),
            Holds([[1, 20], [2, 20], [3, 40]]),
            Do(
                "MERGE INTO {t} t USING {t} s ON t.id = s.id AND s.v > 30 "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
            ),
            Holds([[1, 0], [2, 0]]),
        ],
    ),
    Case(
        name="merge-condition-on-the-target-alone",
        trap="Paimon MergeIntoNotMatchedBySourceTest: not matched by source is not narrowed by target-only condition",
        columns="id INT, v INT, state STRING, p STRING",
        key="id,p",
        partitions="p",
        rows="(1, 1, 'new', 'x'), (2, 2, 'new', 'x'), (3, 3, 'new', 'y'), (4, 4, 'new', 'y')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT 1 AS id, 50 AS v) s ON t.id = s.id AND t.p = 'x' "
                "WHEN MATCHED THEN UPDATE SET t.v = s.v WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.state = 'old'"
            ),
            Holds([[1, 50, "new", "x"], [2, 2, "old", "x"], [3, 3, "old", "y"], [4, 4, "old", "y"]]),
            Do(
                "MERGE INTO {t} t USING (SELECT 3 AS id) s ON t.id = s.id AND t.p = 'x' "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'x') "
                "WHEN NOT MATCHED BY SOURCE AND t.p = 'y' THEN DELETE"
            ),
            Holds([[1, 50, "new", "x"], [2, 2, "old", "x"], [3, None, None, "x"]]),
        ],
    ),
    Case(
        name="merge-without-source-rows",
        trap="Delta MergeIntoNotMatchedBySourceSuite: empty source; Paimon: source and target are empty",
        columns="id INT, v INT",
        steps=[
            Do("CREATE TABLE {t}_s (id INT, v INT) USING parquet"),
            Do(
                "MERGE INTO {t} t USING {t}_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN "
                "INSERT * "
                "WHEN NOT MATCHED BY SOURCE THEN DELETE"
            ),
            Holds([]),
            Do("INSERT INTO {t} VALUES (1, 1), (2, NULL)"),
            Do(
                "MERGE INTO {t} t USING {t}_s s ON t.id = s.id "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN UPDATE SET v = 0"
            ),
            Holds([[1, 1], [2, 0]]),
            Do("MERGE INTO {t} t USING {t}_s s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE"),
            Holds([]),
        ],
    ),
    Case(
        name="merge-order-of-clauses",
        trap="Delta MergeIntoSuiteBase: conditional delete + conditional update (order matters)",
        columns="id INT, v INT",
        rows="(1, 1), (2, 2), (3, 3), (8, 8), (9, 9)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50) AS s(id, "
                "v)) s "
                "ON t.id = s.id WHEN MATCHED AND t.id < 3 THEN DELETE WHEN MATCHED AND t.id > 1 THEN UPDATE SET v = "
                "s.v "
                "WHEN NOT MATCHED AND s.id > 4 THEN INSERT (id, v) VALUES (s.id, 0) WHEN NOT MATCHED THEN INSERT * "
                "WHEN NOT MATCHED BY SOURCE AND t.v < 9 THEN UPDATE SET v = -1 WHEN NOT MATCHED BY SOURCE THEN DELETE"
            ),
            Holds([[3, 30], [4, 40], [5, 0], [8, -1]]),
        ],
    ),
    Case(
        name="merge-star-by-names",
        trap="Paimon MergeIntoTableTestBase: insert/update columns in wrong order; Iceberg testMergeMixedCaseAligns…",
        columns="id INT, First STRING, last STRING",
        rows="(1, 'a', 'b')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES ('l1', 'f1', 1), ('l2', 'f2', 2) AS s(LAST, FIRST, "
                "Id)) s "
                "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ),
            Holds([[1, "f1", "l1"], [2, "f2", "l2"]]),
        ],
    ),
    Case(
        name="merge-star-with-other-columns",
        trap="Delta MergeIntoSuiteBase: multiples columns and extra columns in source; different # cols in source "
        "than target",
        columns="id INT, a STRING, b STRING",
        rows="(1, 'a', 'b')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT 1 AS id, 'A' AS a, 'more' AS c, 'B' AS b) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ),
            Holds([[1, "A", "B"]]),
            Refused(
                "MERGE INTO {t} t USING (SELECT 2 AS id, 'A' AS a) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
                "cannot.*`b`|UNRESOLVED_COLUMN",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id, 'X' AS a) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
                "cannot.*`b`|UNRESOLVED_COLUMN",
            ),
        ],
    ),
    Case(
        name="merge-inserts-some-columns",
        trap="Paimon MergeIntoTableTestBase: partial insert with default value; partial insert with null",
        columns="id INT, a STRING, b INT DEFAULT 7",
        rows="(1, 'a', 1)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1), (2), (3) AS s(id)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET b = DEFAULT WHEN NOT MATCHED AND s.id = 2 THEN INSERT (id) VALUES (s.id) "
                "WHEN NOT MATCHED THEN INSERT (b, id) VALUES (DEFAULT, s.id)"
            ),
            Holds([[1, "a", 7], [2, None, 7], [3, None, 7]]),
        ],
    ),
    Case(
        name="merge-source-that-is-random",
        trap="Delta MergeIntoMaterializeSourceSuite: non-deterministic source queries - rand expr",
        why="Delta reads the source twice and has to keep it. It is read once here",
        columns="id INT, a INT, b INT, u STRING",
        lines=("3.5",),
        rows="(0, -1, -1, ''), (1, -1, -1, ''), (2, -1, -1, '')",
        steps=[
            Do(RANDOM),
            Gives(
                "SELECT count(*), count(DISTINCT u) FROM {t} WHERE b = a + a % 2 AND a >= 0 AND length(u) = 36",
                [[6, 6]],
            ),
        ],
    ),
    Case(
        name="merge-source-that-is-random-in-spark-4",
        trap="Delta MergeIntoSQLSuite: detect nondeterministic source - flag on",
        why="Spark 4.3 refuses such sources and values itself, since it looks at the source a second time. A table "
        "that was made of "
        "the source before can be merged",
        columns="id INT, a INT, b INT, u STRING",
        lines=("4",),
        rows="(0, -1, -1, ''), (1, -1, -1, ''), (2, -1, -1, '')",
        steps=[
            Refused(RANDOM, "deterministic"),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET u = uuid()",
                "deterministic",
            ),
            Do(
                "CREATE TABLE {t}_s USING parquet AS SELECT CAST(id AS INT) AS id, CAST(rand() * 1000000 AS INT) AS "
                "r, uuid() AS u "
                "FROM range(6)"
            ),
            Do(
                "MERGE INTO {t} t USING {t}_s s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.r, b = s.r, u = s.u "
                "WHEN NOT MATCHED THEN INSERT (id, a, b, u) VALUES (s.id, s.r, s.r, s.u)"
            ),
            Gives("SELECT count(*), count(DISTINCT u) FROM {t} WHERE b = a AND a >= 0 AND length(u) = 36", [[6, 6]]),
        ],
    ),
    Case(
        name="merge-conditions-that-are-random",
        trap="Delta MergeIntoSQLSuite: detect nondeterministic merge condition, … update condition, … insert condition",
        columns="id INT, v INT",
        rows="(1, 1)",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id AND rand() > 2 WHEN MATCHED THEN DELETE",
                "deterministic",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND rand() > 2 THEN DELETE",
                "deterministic",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 5 AS id) s ON t.id = s.id "
                "WHEN NOT MATCHED AND rand() < 2 THEN INSERT (id) VALUES (s.id)",
                "deterministic",
            ),
        ],
    ),
    Case(
        name="merge-values-that-are-random",
        trap="Delta MergeIntoSQLSuite: allow nondeterministic update action, insert action in merge",
        why="Delta takes them. Spark itself refuses them for all other tables; a source may have them, in Spark 3.5",
        columns="id INT, u STRING",
        rows="(1, 'x'), (2, 'x')",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1), (3), (4) AS s(id)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET u = uuid()",
                "deterministic",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1), (3), (4) AS s(id)) s ON t.id = s.id "
                "WHEN NOT MATCHED THEN INSERT (id, u) VALUES (s.id, uuid()) WHEN NOT MATCHED BY SOURCE THEN DELETE",
                "deterministic",
            ),
        ],
    ),
    Case(
        name="merge-aggregates-and-unknown-columns",
        trap="Delta MergeIntoSuiteBase: update condition - aggregation function, unknown reference; Iceberg "
        "testMergeWithInvalid…",
        columns="id INT, v INT, s STRUCT<a: INT, b: INT>",
        rows="(1, 1, named_struct('a', 1, 'b', 1))",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id, 2 AS n) s ON t.id = s.id WHEN MATCHED AND max(s.n) > 1 "
                "THEN DELETE",
                "aggregat|group",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1",
                "nothing",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 9 AS id) s ON t.id = s.id "
                "WHEN NOT MATCHED AND t.v = 1 THEN INSERT (id) VALUES (s.id)",
                "t.*v",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 1, v = 2",
                "multiple assignments|duplicate",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET t.s.a = 1, t.s = named_struct('a', 2, 'b', 2)",
                "conflicting|duplicate",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s.a = 1, "
                "t.s.a = 2",
                "multiple assignments|conflicting|duplicate",
            ),
        ],
    ),
    Case(
        name="merge-moves-rows-to-other-partitions",
        trap="Paimon DeltaRowLevelOpsTest: update moving rows across partitions",
        columns="id INT, v STRING, p STRING",
        partitions="p",
        rows="(1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'y'), (4, 'z') AS s(id, p)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, s.p) "
                "WHEN NOT MATCHED BY SOURCE AND t.p = 'y' THEN UPDATE SET p = 'x'"
            ),
            Holds([[1, "a", "y"], [2, "b", "x"], [3, "c", "x"], [4, None, "z"]]),
            Gives("SELECT p, count(*) FROM {t} GROUP BY p", [["x", 2], ["y", 1], ["z", 1]]),
        ],
    ),
    Case(
        name="merge-swaps-keys",
        trap="Paimon MergeIntoTableTestBase: maybe update primary key column",
        why="Paimon refuses it. The row moves here, and rows that swap keys don't delete each other",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b'), (3, 'c')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 2), (2, 1) AS s(id, other)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET id = s.other"
            ),
            Holds([[1, "b"], [2, "a"], [3, "c"]]),
            Refused(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 9), (2, 9) AS s(id, other)) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET id = s.other",
                "nothing orders them",
            ),
        ],
    ),
    Case(
        name="merge-deletes-and-inserts-one-key",
        trap="Delta MergeIntoSuiteBase: delete + insert with multiple matches for both",
        columns="id INT, v STRING",
        rows="(1, 'x'), (2, 'keep')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (5, 'x'), (1, 'new') AS s(id, v)) s ON t.v = s.v "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
            ),
            Holds([[1, "new"], [2, "keep"]]),
        ],
    ),
    Case(
        name="merge-on-false-replaces",
        trap="Delta MergeIntoSuiteBase: predicate has no matches, always false predicate (the idiom of dbt's "
        "insert_overwrite)",
        columns="id INT, v STRING, p STRING",
        key="id,p",
        partitions="p",
        rows="(1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (2, 'B', 'x'), (4, 'd', 'x') AS s(id, v, p)) s ON false "
                "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.p = 'x' THEN DELETE"
            ),
            Holds([[2, "B", "x"], [3, "c", "y"], [4, "d", "x"]]),
        ],
    ),
    Case(
        name="merge-fields-of-structs",
        trap="Iceberg TestMerge: testMergeUpdatesNestedStructFields, testMergeModifiesNullStruct",
        columns="id INT, s STRUCT<c1: INT, c2: STRUCT<a: ARRAY<INT>, m: MAP<STRING, STRING>>>",
        rows="(1, named_struct('c1', 2, 'c2', named_struct('a', array(1, 2), 'm', map('k', 'v')))), (2, NULL)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, -2), (2, -3) AS x(id, n)) x ON t.id = x.id "
                "WHEN MATCHED THEN UPDATE SET t.s.c1 = x.n, t.s.c2.a = array(x.n)"
            ),
            Gives("SELECT id, s.c1, s.c2.a, s.c2.m['k'] FROM {t}", [[1, -2, [-2], "v"], [2, -3, [-3], None]]),
            Do("MERGE INTO {t} t USING (SELECT 1 AS id) x ON t.id = x.id WHEN MATCHED THEN UPDATE SET t.s.c2 = NULL"),
            Gives("SELECT id, s.c1, s.c2 IS NULL FROM {t} WHERE id = 1", [[1, -2, True]]),
        ],
    ),
    Case(
        name="merge-structs-by-names-of-fields",
        trap="Delta MergeIntoSuiteBase: resolution by name - update specific column, insert *",
        columns="id INT, s STRUCT<a: INT, b: INT>",
        rows="(1, named_struct('a', 1, 'b', 2))",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT id, named_struct('b', 20, 'a', 10) AS s FROM VALUES (1), (2) AS "
                "x(id)) x "
                "ON t.id = x.id WHEN MATCHED THEN UPDATE SET s = x.s WHEN NOT MATCHED THEN INSERT *"
            ),
            Gives("SELECT id, s.a, s.b FROM {t}", [[1, 10, 20], [2, 10, 20]]),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id, named_struct('a', 1) AS s) x ON t.id = x.id "
                "WHEN MATCHED THEN UPDATE SET s = x.s",
                "cannot find data|CANNOT_FIND_DATA",
            ),
        ],
    ),
    Case(
        name="merge-sources-of-many-kinds",
        trap="Iceberg TestMerge: testMergeWithSourceCTE, testMergeWithSourceFromSetOps; Delta: order by + limit in "
        "source query",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b')",
        steps=[
            Do("CREATE TABLE {t}_s (id INT, v STRING) USING parquet"),
            Do("INSERT INTO {t}_s VALUES (1, 'p'), (3, 'q'), (4, 'r')"),
            Do(
                "WITH c AS (SELECT id + 1 AS id, v FROM {t}_s WHERE v > 'p') MERGE INTO {t} t USING c ON t.id = c.id "
                "WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (c.id, c.v)"
            ),
            Holds([[1, "a"], [2, "b"], [4, "q"], [5, "r"]]),
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM {t}_s WHERE id = 1 UNION ALL (SELECT id, 'w' FROM {t} EXCEPT "
                "SELECT 1, 'w')) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v)"
            ),
            Holds([[1, "ap"], [2, "bw"], [4, "qw"], [5, "rw"]]),
            Do(
                "MERGE INTO {t} USING (SELECT * FROM {t}_s ORDER BY id DESC LIMIT 1) src ON {t}.id = src.id "
                "WHEN MATCHED THEN DELETE"
            ),
            Holds([[1, "ap"], [2, "bw"], [5, "rw"]]),
        ],
    ),
    Case(
        name="merge-has-one-time",
        trap="Delta MergeIntoTimestampConsistencySuite: Consistent timestamps between source and ON condition, "
        "UPDATE SET",
        columns="id INT, a TIMESTAMP, b TIMESTAMP",
        rows="(1, NULL, NULL)",
        steps=[
            Do(
                "MERGE INTO {t} t USING (SELECT id, current_timestamp() AS at FROM VALUES (1), (2) AS s(id)) s "
                "ON t.id = s.id AND s.at = current_timestamp() "
                "WHEN MATCHED AND s.at = now() THEN UPDATE SET a = s.at, b = current_timestamp() "
                "WHEN NOT MATCHED AND s.at = now() THEN INSERT (id, a, b) VALUES (s.id, s.at, now())"
            ),
            Gives("SELECT id, a = b FROM {t}", [[1, True], [2, True]]),
        ],
    ),
    Case(
        name="merge-converts-values-as-inserts-do",
        trap="Paimon MergeIntoTableTestBase: type cast STRING to INT in update and insert; Iceberg "
        "testMergeWithInvalidAssignmentsAnsi",
        why="Paimon casts texts to numbers. ANSI's store assignment, which Iceberg has, doesn't",
        columns="id INT, n INT, c VARCHAR(3)",
        rows="(1, 1, 'abc')",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id, '5' AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n "
                "= s.n",
                "cannot safely cast|CANNOT_SAFELY_CAST",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id, 3000000000 AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE "
                "SET n = s.n",
                "overflow",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 2 AS id, 'abcd' AS c) s ON t.id = s.id "
                "WHEN NOT MATCHED THEN INSERT (id, c) VALUES (s.id, s.c)",
                "length|longer",
            ),
            Do(
                "MERGE INTO {t} t USING (SELECT 1S AS id, 5L AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n "
                "= s.n"
            ),
            Holds([[1, 5, "abc"]]),
        ],
    ),
    Case(
        name="merge-brings-back-an-earlier-version",
        trap="Iceberg TestMerge: testMergeWithSourceAsSelfSubquery, with time travel as TestSelect has it",
        columns="id INT, v STRING",
        rows="(1, 'a'), (2, 'b'), (3, 'c')",
        steps=[
            Do("DELETE FROM {t} WHERE id >= 2"),
            Do("UPDATE {t} SET v = 'A' WHERE id = 1"),
            Do(
                "MERGE INTO {t} t USING (SELECT * FROM {t} VERSION AS OF 1) s ON t.id = s.id WHEN NOT MATCHED THEN "
                "INSERT *"
            ),
            Holds([[1, "A"], [2, "b"], [3, "c"]]),
        ],
    ),
    Case(
        name="merge-into-views",
        trap="Delta MergeIntoSuiteBase: merge to view on a Delta table, test merge on temp view",
        why="Delta takes temporary views that only rename. A view is no place to write here, whatever it selects",
        columns="id INT, v STRING",
        rows="(1, 'a')",
        steps=[
            Do("CREATE VIEW {t}_view AS SELECT * FROM {t}"),
            Do("CREATE TEMPORARY VIEW {v} AS SELECT * FROM {t} WHERE id < 9"),
            Refused("MERGE INTO {t}_view t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", "."),
            Refused("MERGE INTO {v} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", "."),
        ],
    ),
    Case(
        name="merge-conditions-with-subqueries",
        trap="Iceberg TestMerge: testMergeWithSubqueriesInConditions; Delta: update condition - subquery, insert "
        "condition - subquery",
        columns="id INT, v INT",
        rows="(1, 1), (2, 2), (3, 3)",
        steps=[
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id "
                "WHEN MATCHED AND t.v = (SELECT max(v) FROM {t}) THEN UPDATE SET v = 0",
                "subquer",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id IN (SELECT id FROM {t}) WHEN MATCHED THEN DELETE",
                "subquer",
            ),
            Refused(
                "MERGE INTO {t} t USING (SELECT 9 AS id) s ON t.id = s.id "
                "WHEN NOT MATCHED AND EXISTS (SELECT 1 FROM {t}) THEN INSERT (id) VALUES (s.id)",
                "subquer",
            ),
        ],
    ),
    Case(
        name="merge-of-many-rows-of-one-key",
        trap="Iceberg TestMerge: testSkewMerge, testCoalesceMerge",
        columns="id INT, v INT, p STRING",
        key="id,p",
        partitions="p",
        settings={
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": "100",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.shuffle.partitions": "7",
            "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "100",
            "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.0",
        },
        steps=[
            Do(
                "INSERT INTO {t} SELECT CAST(id AS INT), 0, IF(id < 900, 'big', CAST(id % 5 AS STRING)) FROM "
                "range(1000)"
            ),
            Do(
                "MERGE INTO {t} t USING (SELECT CAST(id AS INT) AS id FROM range(500, 1200)) s ON t.id = s.id "
                "WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 1 "
                "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 2, 'big')"
            ),
            Gives(
                "SELECT v, count(*), sum(id) FROM {t} GROUP BY v",
                [[0, 500, 124750], [1, 250, 187500], [2, 200, 219900]],
            ),
        ],
    ),
]
