"""Partitioned tables, tables that inherit, generated columns, and keys that swap."""

from tests.lake.capture.shop import Source

PARTITIONED = """
CREATE TABLE m (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10);
CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (10) TO (20);
CREATE TABLE m4 PARTITION OF m FOR VALUES FROM (40) TO (50);
CREATE TABLE m5 PARTITION OF m FOR VALUES FROM (50) TO (60) PARTITION BY RANGE (id);
CREATE TABLE m51 PARTITION OF m5 FOR VALUES FROM (50) TO (55);
INSERT INTO m VALUES (1), (11), (41), (51);
CREATE PUBLICATION rooted FOR TABLE m WITH (publish_via_partition_root = true);
"""

OF_PARTITIONS = {
    "attached": "CREATE TABLE m3 (id int NOT NULL, v text); INSERT INTO m3 VALUES (21);"
    " ALTER TABLE m ATTACH PARTITION m3 FOR VALUES FROM (20) TO (30)",
    "attached in the transaction that made it": "BEGIN; CREATE TABLE m6 (LIKE m); INSERT INTO m6 VALUES (61);"
    " ALTER TABLE m ATTACH PARTITION m6 FOR VALUES FROM (60) TO (70); COMMIT",
    "attached to a partition": "CREATE TABLE m52 (id int NOT NULL, v text); INSERT INTO m52 VALUES (56);"
    " ALTER TABLE m5 ATTACH PARTITION m52 FOR VALUES FROM (55) TO (60)",
    "detached": "ALTER TABLE m DETACH PARTITION m1",
    "detached and attached with other rows": "ALTER TABLE m DETACH PARTITION m3; INSERT INTO m3 VALUES (22);"
    " ALTER TABLE m ATTACH PARTITION m3 FOR VALUES FROM (20) TO (30)",
    "detached with its own partitions": "ALTER TABLE m DETACH PARTITION m5; INSERT INTO m5 VALUES (52);"
    " ALTER TABLE m ATTACH PARTITION m5 FOR VALUES FROM (50) TO (60)",
    "dropped": "DROP TABLE m2",
    "truncated": "TRUNCATE m4",
    "altered": "ALTER TABLE m ADD n int DEFAULT 3",
}


def test_partitions_below_a_published_root(source: Source) -> None:
    source.run(PARTITIONED)
    source.capture(publication="rooted")
    for number, (what, statements) in enumerate(OF_PARTITIONS.items(), 1):
        source.run(statements)
        source.run("INSERT INTO m (id) VALUES (%s)", 41 + number)
        source.capture(publication="rooted")
        assert (what, source.replayed("m", ("id",))) == (what, source.rows("m"))
        assert (what, source.ops("m").count("complete")) == (what, number)


def test_a_partition_that_is_new_and_a_root_that_is_truncated_need_no_new_snapshot(source: Source) -> None:
    source.run(PARTITIONED)
    source.capture(publication="rooted")
    source.run("CREATE TABLE m3 PARTITION OF m FOR VALUES FROM (20) TO (30); INSERT INTO m VALUES (21)")
    source.capture(publication="rooted")
    source.run("ALTER TABLE m ADD n int; INSERT INTO m VALUES (22, 'x', 3)")
    source.capture(publication="rooted")
    source.run("TRUNCATE m; INSERT INTO m VALUES (23, 'x', 3), (43, 'y', 4)")
    source.capture(publication="rooted")
    source.check("m", "id")
    source.run("CREATE TABLE m0 PARTITION OF m FOR VALUES FROM (90) TO (99); INSERT INTO m VALUES (91)")
    source.capture(publication="rooted")
    source.check("m", "id")
    assert "complete" not in source.ops("m")


def test_partitions_that_are_published_themselves(source: Source) -> None:
    source.run(PARTITIONED)
    source.capture()
    source.run("ALTER TABLE m DETACH PARTITION m1; INSERT INTO m1 VALUES (30); TRUNCATE m4")
    source.run("INSERT INTO m VALUES (12, 'x')")
    source.capture()
    for each in ("m1", "m2", "m4", "m51"):
        source.check(each, "id")


def test_tables_that_inherit(source: Source) -> None:
    source.run(
        "CREATE TABLE parent (id int PRIMARY KEY, v text); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent)"
    )
    source.run("INSERT INTO parent VALUES (1, 'p'); INSERT INTO child VALUES (2, 'c'), (3, 'c')")
    source.run("CREATE TABLE log (v text); CREATE TABLE sublog () INHERITS (log); INSERT INTO sublog VALUES ('x')")
    source.capture()
    source.run("UPDATE child SET v = 'changed'; DELETE FROM child WHERE id = 3; INSERT INTO parent VALUES (3, 'p')")
    source.run("INSERT INTO log VALUES ('y')")
    source.capture()
    assert source.replayed("parent", ("id",)) == source.rows("ONLY parent")
    source.check("child", "id")
    assert source.replayed("log", ()) == source.rows("ONLY log")


def test_keys_that_swap_in_one_statement(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, v text); ALTER TABLE t REPLICA IDENTITY FULL")
    source.run("INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 9) n")
    source.capture()
    source.run("UPDATE t SET id = 10 - id")
    source.capture()
    source.check("t", "id")
    source.run("BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO t VALUES (1, 'second')")
    source.run("DELETE FROM t WHERE id = 1 AND v <> 'second'; UPDATE t SET id = id + 1 WHERE id > 5; COMMIT")
    source.capture()
    source.check("t", "id")


def test_generated_columns(source: Source) -> None:
    source.run("CREATE TABLE g (id int PRIMARY KEY, net int, gross int GENERATED ALWAYS AS (net * 2) STORED)")
    source.run("INSERT INTO g VALUES (1, 5), (2, 6)")
    source.capture()
    source.run("UPDATE g SET net = 6 WHERE id = 1; INSERT INTO g VALUES (3, 7)")
    source.capture()
    assert source.replayed("g", ("id",)) == source.rows("(SELECT id, net FROM g)")
    if source.connection.server_version >= 180_000:
        source.run("CREATE PUBLICATION computed FOR TABLE g WITH (publish_generated_columns = stored)")
        source.begin_anew()
        source.capture(publication="computed")
        source.run("UPDATE g SET net = 8 WHERE id = 1; INSERT INTO g VALUES (4, 7)")
        source.capture(publication="computed")
        source.check("g", "id")
        source.run("ALTER TABLE g ALTER gross SET EXPRESSION AS (net * 3)")
        source.capture(publication="computed")
        source.check("g", "id")
