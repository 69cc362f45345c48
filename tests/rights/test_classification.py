"""Every method declares the rights that it needs, by arguments that exist."""

import re

import pytest
from thrift.Thrift import TType

from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS, answers
from metastore.api.rights import changes, filters, special
from metastore.api.rights.classification import Path

load()

NAMED_LIKE_A_READ = re.compile(r"(lake_)?(get|list|find|read|show|is|plan)([A-Z_]|$)")
OTHER_READS = {
    *("aliveSince", "shutdown", "translate_table_dryrun", "validate_resource_plan", "fetch_partition_names_req"),
    *("partition_name_to_vals", "partition_name_to_spec", "partition_name_has_valid_characters"),
    *("lake_service_facts", "lake_due_tables", "lake_timeline_position"),
    *("lake_event_positions", "lake_event_groups", "lake_dead_events"),
}
WITHOUT_EFFECT_ON_OTHERS = {
    *("set_ugi", "setMetaConf", "flushCache", "reinitialize", "setOption"),
    *("lake_begin_request", "lake_end_request"),
}
PURELY_NAMED = {"get_table", "get_table_req", "get_partitions_by_names", "get_database", "lake_get_snapshot"}


def test_every_method_is_declared() -> None:
    assert HANDLERS.keys() == METHODS.keys()


@pytest.mark.parametrize(
    ("name", "rights", "expected"),
    [
        ("lake_new", {}, r'lake_new: say which rights it needs, by reads="LIST table db_name tbl_name"'),
        ("lake_new", {"reads": "-", "changes": "-"}, "lake_new: say which rights it needs"),
        ("lake_new", {"reads": "LOOK table dbname tbl_name"}, "lake_new: 'LOOK table dbname tbl_name' is not in the"),
        ("lake_new", {"reads": ""}, "lake_new: '' is not in the form"),
        ("lake_new", {"reads": "LIST"}, "lake_new: 'LIST' is not in the form"),
        ("get_table", {"reads": "-"}, "get_table is declared twice"),
        (
            "lake_new",
            {"reads": "-"},
            "lake_new: say what it tells of uncommitted partitions, by uncommitted=",
        ),
        ("lake_new", {"reads": "-", "uncommitted": "all"}, "lake_new: say what it tells of uncommitted partitions"),
    ],
)
def test_an_incomplete_declaration_fails_at_import(
    name: str, rights: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, "lake_new", METHODS["get_table"])
    with pytest.raises(TypeError, match=expected):
        answers(name, **rights)


def test_what_is_declared_exists() -> None:
    for name, handler in HANDLERS.items():
        rule = handler.rule
        for need in rule.needs:
            assert need.action is not None or need.kind in special.SPECIAL
            for path in (*need.paths, *need.named.values()):
                check_path(name, path)
        for path in rule.extra_paths:
            check_path(name, path)
        if rule.extra is not None and rule.changes:
            assert rule.extra in changes.CHECKS
        elif rule.extra is not None and not filters.is_before_limits(rule.extra):
            filters.filter_named(rule.extra)


def test_a_path_to_nothing_is_found() -> None:
    with pytest.raises(AssertionError, match="has no field"):
        check_path("get_table", Path.parse("dbname.no_such"))


def check_path(method: str, path: Path) -> None:
    kind, argument = TType.STRUCT, [METHODS[method].args]
    for name in path.within or ():
        kind, argument = field(argument[0], name)
    if path.within is not None:
        assert kind in (TType.LIST, TType.SET)
        kind, argument = argument[0], argument[1]
    for name in path.names:
        assert kind == TType.STRUCT, f"{method} has no field {name} there"
        kind, argument = field(argument[0], name)


def field(cls: type, name: str) -> tuple[int, object]:
    found = [entry for entry in cls.thrift_spec if entry is not None and entry[2] == name]
    assert found, f"{cls.__name__} has no field {name}"
    return found[0][1], found[0][3]


def test_replies_are_kept_only_where_names_decide() -> None:
    kept = {name for name, handler in HANDLERS.items() if handler.rule.by_names_alone and handler.cached}
    assert kept >= PURELY_NAMED
    assert not kept & {"get_all_tables", "get_all_databases", "get_tables", "get_table_objects_by_name"}


def test_what_reads_by_its_declaration_reads_by_its_name() -> None:
    """A method that writes and is declared as a read would be missing in the audit log."""
    reading = {name for name, handler in HANDLERS.items() if not handler.rule.changes}
    assert {name for name in reading if not NAMED_LIKE_A_READ.match(name)} == OTHER_READS


def test_what_only_reads_needs_no_right_to_change() -> None:
    changing = {"INSERT", "UPDATE", "DELETE", "WRITE", "REMOVE_ROWS", "CREATE", "ALTER", "DROP", "COMMIT", "RECORD"}
    for name, handler in HANDLERS.items():
        needed = {need.action.name for need in handler.rule.needs if need.action is not None}
        assert handler.rule.changes or not needed & changing, name


def test_what_changes_needs_more_than_to_see() -> None:
    """But for what changes one's own connection or tokens alone."""
    for name, handler in HANDLERS.items():
        rule = handler.rule
        if not rule.changes:
            continue
        if name in WITHOUT_EFFECT_ON_OTHERS or name.endswith("_delegation_token"):
            assert rule.needs == (), name
        else:
            assert any(need.action is None or need.action.name != "SEE" for need in rule.needs), name
