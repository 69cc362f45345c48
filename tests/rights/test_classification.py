"""Every method is classified, by arguments that exist."""

import pytest
from thrift.Thrift import TType

from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from metastore.api.rights import changes, filters, special
from metastore.api.rights.classification import Path, rules

load()

WITHOUT_EFFECT_ON_OTHERS = {"set_ugi", "setMetaConf", "flushCache", "reinitialize", "setOption"}
PURELY_NAMED = {"get_table", "get_table_req", "get_partitions_by_names", "get_database", "lake_get_snapshot"}


def test_every_method_is_classified() -> None:
    assert rules().keys() == METHODS.keys()


def test_what_is_classified_exists() -> None:
    for name, rule in rules().items():
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
    kept = {name for name, rule in rules().items() if rule.by_names_alone and HANDLERS[name].cached}
    assert kept >= PURELY_NAMED
    assert not kept & {"get_all_tables", "get_all_databases", "get_tables", "get_table_objects_by_name"}


def test_what_only_reads_needs_no_right_to_change() -> None:
    changing = {"INSERT", "UPDATE", "DELETE", "WRITE", "REMOVE_ROWS", "CREATE", "ALTER", "DROP", "COMMIT", "RECORD"}
    for name, rule in rules().items():
        needed = {need.action.name for need in rule.needs if need.action is not None}
        assert rule.changes or not needed & changing, name


def test_what_changes_needs_more_than_to_see() -> None:
    """But for what changes one's own connection or tokens alone."""
    for name, rule in rules().items():
        if not rule.changes:
            continue
        if name in WITHOUT_EFFECT_ON_OTHERS or name.endswith("_delegation_token"):
            assert rule.needs == (), name
        else:
            assert any(need.action is None or need.action.name != "SEE" for need in rule.needs), name
