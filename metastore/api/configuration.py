"""Who the client is and what it sets; what the server tells about itself (fb303)."""

from dataclasses import replace

from lake.protocol.generated.fb303_types import fb_status
from metastore.api.methods import Call, answers
from metastore.services.commit_flag import commit_flag
from metastore.services.maintenance.server_info import HIVE_VERSION
from metastore.services.model.client_texts import check_identity

INCLUDE_UNCOMMITTED = "includeUnCommit"
"""What a client sets (in Hive: `set metaconf:includeUnCommit=true`) to see uncommitted partitions on its connection."""


@answers("set_ugi", changes="-", uncommitted="no table")
def set_ugi(call: Call, user_name: str | None, group_names: list[str] | None) -> list[str]:
    """Who the client says it is. Where that was proven it changes nothing, and the answer is that of Hive's server."""
    check_identity(user_name, group_names or ())
    caller, groups = call.session.caller, tuple(group_names or ())
    if caller.mechanism != "none":
        return [*groups, user_name or ""]
    call.session.caller = replace(caller, user=user_name, groups=groups)
    return list(groups)


@answers("getMetaConf", reads="-", uncommitted="no table", differs="knows includeUnCommit, too")
def get_meta_conf(call: Call, key: str | None) -> str:
    if _is_scope(key):
        return str(call.session.include_uncommitted).lower()
    name, default = call.metastore.server_info.metaconf(key)
    return call.session.metaconf.get(name, default)


@answers(
    "setMetaConf",
    changes="-",
    uncommitted="no table",
    differs="knows includeUnCommit, too; some settings have no effect",
)
def set_meta_conf(call: Call, key: str | None, value: str | None) -> None:
    if _is_scope(key):
        call.session.include_uncommitted = commit_flag.truth(INCLUDE_UNCOMMITTED, value)
        return
    name = call.metastore.server_info.check_metaconf(key, value)
    call.session.metaconf[name] = value or ""


def _is_scope(key: str | None) -> bool:
    return (key or "").lower() == INCLUDE_UNCOMMITTED.lower()


@answers("get_config_value", reads="-", uncommitted="no table")
def get_config_value(call: Call, name: str | None, default_value: str | None) -> str | None:
    return call.metastore.server_info.config_value(name, default_value)


@answers("get_metastore_db_uuid", reads="-", uncommitted="no table")
def get_metastore_db_uuid(call: Call) -> str:
    return call.metastore.server_info.uuid()


@answers("flushCache", changes="-", uncommitted="no table")
def flush_cache(call: Call) -> None:
    """Hive empties the cache of its object store; nothing here outlives the transaction that read it."""


@answers("getName", reads="-", uncommitted="no table")
def get_name(call: Call) -> str:
    return call.metastore.server_info.name


@answers("getVersion", reads="-", uncommitted="no table")
def get_version(call: Call) -> str:
    return HIVE_VERSION


@answers("getStatus", reads="-", uncommitted="no table")
def get_status(call: Call) -> int:
    call.metastore.server_info.check()
    return fb_status.ALIVE


@answers("getStatusDetails", reads="-", uncommitted="no table")
def get_status_details(call: Call) -> str:
    return ""


@answers("getCounters", reads="ADMIN everything", uncommitted="counters")
def get_counters(call: Call) -> dict[str, int]:
    return call.metastore.server_info.counts()


@answers("getCounter", reads="ADMIN everything", uncommitted="counters")
def get_counter(call: Call, key: str | None) -> int:
    return call.metastore.server_info.counts().get(key or "", 0)


@answers("getOptions", reads="- | options", uncommitted="no table")
def get_options(call: Call) -> dict[str, str]:
    return call.metastore.server_info.options()


@answers("getOption", reads="- | option key", uncommitted="no table")
def get_option(call: Call, key: str | None) -> str:
    return call.metastore.server_info.options().get(key or "", "")


@answers("setOption", changes="-", uncommitted="no table")
def set_option(call: Call, key: str | None, value: str | None) -> None:
    """Accepted and without effect, as in Hive, whose server reads no options."""


@answers("getCpuProfile", reads="-", uncommitted="no table")
def get_cpu_profile(call: Call, seconds: int | None) -> str:
    return ""


@answers("aliveSince", reads="-", uncommitted="no table")
def alive_since(call: Call) -> int:
    return call.metastore.server_info.started


@answers("reinitialize", changes="-", uncommitted="no table")
def reinitialize(call: Call) -> None:
    """Without effect, as in Hive."""


@answers("shutdown", reads="-", uncommitted="no table")
def shutdown(call: Call) -> None:
    """A client's goodbye: Hive's closes its connection with it. The server goes on."""
