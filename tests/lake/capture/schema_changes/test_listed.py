"""Changes of a real Postgres's tables: each is listed with its kind, and definitions heed what is decided."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from lake.capture import said as people
from lake.capture.errors import CaptureError
from lake.capture.raw_table import RawTable
from lake.capture.rereads import order, ordered
from lake.capture.schema_changes import decisions
from lake.capture.schema_changes.amendments import Amendment
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action, Kind
from lake.capture.schema_changes.policy import Policy
from lake.cli import main
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.properties import keep_property
from tests.lake.capture.shop import Source
from tests.lake.capture.test_commands import invoke
from tests.support.server import MetastoreServer

K = Kind
CASES: dict[str, tuple[str, list[Kind]]] = {
    "add": ("ALTER TABLE {t} ADD c int", [K.ADD]),
    "add_default": ("ALTER TABLE {t} ADD c int DEFAULT 7", [K.ADD_FILLED]),
    "add_volatile": ("ALTER TABLE {t} ADD c text DEFAULT clock_timestamp()::text", [K.ADD_FILLED]),
    "add_two": ("ALTER TABLE {t} ADD c int, ADD d text", [K.ADD, K.ADD]),
    "drop": ("ALTER TABLE {t} DROP b", [K.DROP]),
    "rename": ("ALTER TABLE {t} RENAME b TO d", [K.RENAME]),
    "rename_and_add": ("ALTER TABLE {t} RENAME b TO d; ALTER TABLE {t} ADD b text", [K.RENAME, K.ADD_FILLED]),
    "swap": (
        "ALTER TABLE {t} RENAME a TO x; ALTER TABLE {t} RENAME n TO a; ALTER TABLE {t} RENAME x TO n",
        [K.RENAME, K.RENAME],
    ),
    "replace": ("ALTER TABLE {t} DROP b; ALTER TABLE {t} ADD b text", [K.REPLACE]),
    "drop_and_add": ("ALTER TABLE {t} DROP b; ALTER TABLE {t} ADD d text", [K.DROP, K.ADD_FILLED]),
    "widen": ("ALTER TABLE {t} ALTER a TYPE bigint", [K.WIDEN]),
    "scale": ("ALTER TABLE {t} ALTER n TYPE numeric(12,4)", [K.WIDEN]),
    "narrow": ("ALTER TABLE {t} ALTER n TYPE numeric(10,1)", [K.NARROW]),
    "type": ("ALTER TABLE {t} ALTER a TYPE text USING 'n' || a", [K.TYPE]),
    "key": ("ALTER TABLE {t} DROP CONSTRAINT {t}_pkey; ALTER TABLE {t} ADD PRIMARY KEY (id, a)", [K.KEY]),
    "label": ("ALTER TYPE mood_{t} RENAME VALUE 'low' TO 'flat'", [K.ROWS]),
    "truncate": ("TRUNCATE {t}", [K.TRUNCATE]),
    "rolled_back": ("BEGIN; ALTER TABLE {t} DROP b; ROLLBACK", []),
    "nothing": ("ANALYZE {t}; CREATE INDEX ON {t} (a); ALTER TABLE {t} ALTER b SET NOT NULL", []),
}


def test_the_kinds_of_changes(source: Source) -> None:
    for table in CASES:
        source.run(f"CREATE TYPE mood_{table} AS ENUM ('low', 'high')")
        source.run(
            f"CREATE TABLE {table} (id int PRIMARY KEY, a int, b text, n numeric(10,2), m mood_{table});"
            f" INSERT INTO {table} VALUES (1, 10, 'x', 2.5, 'low')"
        )
    source.capture()
    for table, (statements, _) in CASES.items():
        for each in statements.format(t=table).split("; "):
            source.run(each)
        source.run(f"INSERT INTO {table} (id, a) VALUES (2, 20)" if table != "nothing" else "SELECT 1")
    source.capture()
    lake = source.client.table(source.into)
    found = {each: [one.difference.kind for one in changes_of(lake, f"public.{each}")] for each in CASES}
    assert {name: sorted(each) for name, each in found.items()} == {name: sorted(k) for name, (_, k) in CASES.items()}
    assert source.capture().rows == {}
    assert {each: [one.difference.kind for one in changes_of(lake, f"public.{each}")] for each in CASES} == found


def test_the_list(source: Source, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x')")
    source.capture()
    source.run("ALTER TABLE t RENAME b TO d; ALTER TABLE t ADD email text; INSERT INTO t VALUES (2, 'y', 'z')")
    source.capture()
    to = ("--into", source.into, "--uri", metastore_server.uri)

    def listed(*options: str) -> list[dict[str, str]]:
        return json.loads(run("list", *to, "--json", *options))["changes"]  # type: ignore[no-any-return]

    assert [(each["kind"], each["action"], each["why"]) for each in listed()] == [
        ("rename", "hold", "default"),
        ("add-filled", "hold", "personal: *email*"),
    ]
    [rename, added] = listed()
    assert rename["change"] == "b was renamed to d"
    assert rename["table"] == "public.t"
    row = next(each for each in source.raw("t") if each["op"] == "truncate")
    assert rename["at"] == added["at"] == f"1.{row['commit_lsn']}.{row['ordinal']}"
    assert "b was renamed to d" in run("list", *to)
    policy = tmp_path / "schema-changes.yml"
    policy.write_text("rules: [{table: public.t, kind: rename, action: apply}]")
    assert [each["kind"] for each in listed("--policy", str(policy))] == ["add-filled"]
    assert len(listed("--policy", str(policy), "--all")) == 2
    assert "has no table public.none" in run("list", *to, "--table", "public.none", code=1)
    assert "nothing was captured into raw.none" in run("list", "--into", "raw.none", *to[2:], code=1)


def run(*args: str, code: int = 0) -> str:
    """What `metastore schema-changes` prints."""
    from click.testing import CliRunner

    result = CliRunner().invoke(main, ["schema-changes", *args])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def test_definitions_heed_the_policy(source: Source, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 10)")
    source.capture()
    source.run("ALTER TABLE t ADD email text; ALTER TABLE t ADD c int; INSERT INTO t VALUES (2, 20, 'm', 5)")
    source.capture()
    policy = tmp_path / "schema-changes.yml"
    policy.write_text("")
    to = ("--into", source.into, "--uri", metastore_server.uri, "--table", "public.t")
    printed = invoke("definitions", *to, "--policy", str(policy))
    assert "`c` int" in printed
    assert "email" not in printed
    assert "`email` string" in invoke("definitions", *to)
    source.run("ALTER TABLE t RENAME a TO amount; INSERT INTO t VALUES (3, 30, 'm', 6)")
    source.capture()
    printed = invoke("definitions", *to, "--policy", str(policy))
    assert printed.startswith("CREATE MATERIALIZED VIEW `t_as_sent`"), "no table turns into a comment"
    assert "`amount` AS `a`" not in printed
    assert "'a', new_1.`amount`" in printed
    at = changes_of(source.client.table(source.into), "public.t")[-1].at
    policy.write_text(f"decided: [{{table: public.t, at: {at}, action: apply}}]")
    assert "`amount` int" in invoke("definitions", *to, "--policy", str(policy))


def test_a_capture_warns_of_what_is_held(
    source: Source, metastore_server: MetastoreServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int); INSERT INTO t VALUES (1, 10)")
    policy = tmp_path / "schema-changes.yml"
    policy.write_text("rules: [{kind: add, action: hold}]")
    run_once = (source.url, "--publication", "shop", "--into", source.into, "--slot", source.slot, "--once")

    def capture(*options: str, alarm: str = "schema change is held") -> list[str]:
        caplog.clear()
        invoke(*run_once, "--policy", str(policy), "--uri", metastore_server.uri, *options)
        found = [json.loads(each.message) for each in caplog.records if each.name == "lake.capture.alarms"]
        assert {each["table"] for each in found} <= {"public.t"}
        return [each.get("change", each["at"]) for each in found if each["alarm"] == alarm]

    def held(name: str = "capture_held_schema_changes") -> float | None:
        return REGISTRY.get_sample_value(name, {"table": "public.t"})

    assert capture() == []
    source.run("ALTER TABLE t ADD b int; INSERT INTO t VALUES (2, 20, 5)")
    assert capture() == ["b integer was added"]
    assert held() == 1
    source.run("ALTER TABLE t RENAME a TO c; INSERT INTO t VALUES (3, 30, 5)")
    assert capture() == ["b integer was added", "a was renamed to c"], "the first again, by another process"
    assert held() == 2
    [first, _] = changes_of(source.client.table(source.into), "public.t")
    assert held("capture_held_since_timestamp_seconds") == first.since.timestamp()
    for number, (options, waits) in enumerate(
        (((), []), (("--held-hours", "0"), [str(first.at)]), (("--held-bytes", "99"), [str(first.at)])), 4
    ):
        source.run("INSERT INTO t VALUES (%s)", number)
        assert capture(*options, alarm="held schema change waits") == waits
    policy.write_text("rules: [{action: apply}]")
    assert capture() == []
    assert (held(), held("capture_held_since_timestamp_seconds")) == (0, 0)


def test_decisions(source: Source, metastore_server: MetastoreServer, tmp_path: Path) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b text); INSERT INTO t VALUES (1, 10, 'x')")
    source.capture()
    for number, alteration in enumerate(("RENAME a TO c", "ADD email text", "ALTER b TYPE int USING 5"), 2):
        source.run(f"ALTER TABLE t {alteration}; INSERT INTO t (id) VALUES ({number})")
        source.capture()
    to = ("--into", source.into, "--uri", metastore_server.uri)

    def held() -> list[str]:
        return [each["at"] for each in json.loads(run("list", *to, "--json"))["changes"]]

    rename, added, typed = held()
    decided = (*to, "--table", "public.t", "--at")
    assert f"an earlier change of public.t is held, at {rename}" in run("approve", *decided, added, code=1)
    assert "only a new column can be left out" in run("reject", *decided, rename, code=1)
    assert "has no change at 1.2.3" in run("approve", *decided, "1.2.3", code=1)
    assert json.loads(run("approve", *decided, rename, "--json"))["changes"][0]["action"] == "apply"
    assert held() == [added, typed]
    run("reject", *decided, added)
    policy = tmp_path / "schema-changes.yml"
    policy.write_text("")
    definitions = ("definitions", *to, "--table", "public.t", "--policy", str(policy))
    assert "'b', CAST(NULL AS string)" in invoke(*definitions)
    run("approve", *decided, typed)
    run("approve", *decided, typed)
    printed = invoke(*definitions)
    assert "`c` int, `b` int" in printed
    assert "email" not in printed
    assert held() == []
    policy.write_text(f"decided: [{{table: public.t, at: {added}, action: apply}}]")
    assert "email" in invoke(*definitions)
    refused = run("reject", *decided, added, "--policy", str(policy), code=1)
    assert "the policy's file decides on the change" in refused
    source.capture()
    assert held() == [], "a capture leaves them alone"


def test_two_who_decide_at_once(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, a int, b int); CREATE TABLE u (id int PRIMARY KEY)")
    source.run("INSERT INTO t VALUES (1, 10, 5); INSERT INTO u VALUES (1)")
    source.capture()
    source.run("ALTER TABLE t RENAME a TO c; ALTER TABLE u ADD email text")
    source.run("INSERT INTO t VALUES (2, 20, 6); INSERT INTO u VALUES (2, 'a')")
    source.capture()
    lake = source.client.table(source.into)
    at, of_u = (str(changes_of(lake, each)[0].at) for each in ("public.t", "public.u"))
    rename, cast = (Amendment.parse(each) for each in ("rename a=c", "cast b"))

    def decide(table: str, at: str, action: Action) -> Callable[[], object]:
        return lambda: decisions.decide(lake, Policy(), table, at, action)

    def amend(*amendments: Amendment) -> Callable[[], object]:
        return lambda: decisions.amend(lake, Policy(), "public.t", at, amendments)

    def after(first: Callable[[], object], second: Callable[[], object]) -> None:
        """What the first one does comes between what the second one reads and what it writes."""

        def late(*args: object) -> None:
            monkeypatch.setattr(people, "keep_property", keep_property)
            first()
            keep_property(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(people, "keep_property", late)
        second()

    def kept() -> tuple[object, object]:
        known = decisions.with_decisions(Policy(), lake)
        return known.decided, known.amended

    spoke = f"somebody else spoke of the change of public.t at {at} at the same time"
    without_properties(lake)  # as version 0.1.0 has made it
    with pytest.raises(CaptureError, match=f"spoke of the change of public.u at {of_u} at the same time: apply"):
        after(decide("public.u", of_u, Action.APPLY), decide("public.u", of_u, Action.IGNORE))
    after(amend(rename), amend(rename))
    with pytest.raises(CaptureError, match=f"{spoke}: rename a=c, cast b"):
        after(amend(rename, cast), amend(cast))
    with pytest.raises(CaptureError, match=f"{spoke}: what was said is taken back"):
        after(amend(), amend(cast))
    after(decide("public.u", of_u, Action.IGNORE), amend(rename))
    assert kept() == ({("public.u", of_u): Action.IGNORE}, {("public.t", at): (rename,)}), "both stand"
    with pytest.raises(CaptureError, match=f"{spoke}: cast b"):
        after(amend(cast), decide("public.t", at, Action.APPLY))
    after(amend(rename), decide("public.u", of_u, Action.APPLY))
    with pytest.raises(CaptureError, match=f"{spoke}: apply, rename a=c"):
        after(decide("public.t", at, Action.APPLY), amend(cast))
    after(lambda: order(lake, ["public.t"]), decide("public.u", of_u, Action.IGNORE))
    assert kept() == (
        {("public.t", at): Action.APPLY, ("public.u", of_u): Action.IGNORE},
        {("public.t", at): (rename,)},
    )
    assert [*ordered(lake)] == ["public.t"]


def without_properties(lake: LakeTable) -> None:
    """Removes what people say from a raw table."""
    database, _, name = lake.name.partition(".")
    altered = lake.describe()
    altered.parameters = {key: value for key, value in altered.parameters.items() if not key.startswith("capture.")}
    lake.client.call(lambda thrift: thrift.alter_table(database, name, altered))
    assert {*people.said(lake).values()} == {None}


def test_many_who_speak_at_once(source: Source, metastore_server: MetastoreServer) -> None:
    RawTable(source.client, source.into).create()

    def speak(number: int) -> None:
        name = sorted(people.said(source.client.table(source.into)))[number % 3]
        with LakeClient(metastore_server.uri) as client:
            lake = client.table(source.into)
            for each in range(5):
                while True:
                    before = people.said(lake)
                    made = {**json.loads(before[name] or "{}"), f"{number}.{each}": "said"}
                    if people.say(lake, before, name, json.dumps(made)):
                        break

    with ThreadPoolExecutor(6) as pool:
        [*pool.map(speak, range(6))]
    kept = people.said(source.client.table(source.into)).values()
    assert sum(len(json.loads(each or "{}")) for each in kept) == 30, "what was said was kept"
