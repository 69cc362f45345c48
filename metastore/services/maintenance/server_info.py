"""Calls about the metastore itself: version, identity, settings, counts."""

import time
import uuid
from collections.abc import Callable

import metastore
from lake.protocol.hive import ConfigValSecurityException, MetaException
from metastore.services.model.client_texts import MAX_HINT, hint
from metastore.settings import Settings
from metastore.store import Database
from metastore.store.catalog import databases, functions
from metastore.store.engine import leader_lock
from metastore.store.migrations import current
from metastore.store.partition import partitions
from metastore.store.registry import properties
from metastore.store.snapshot import data_files
from metastore.store.table import tables

# The answer of every Hive version to fb303's getVersion.
HIVE_VERSION = "3.0"

# Hive lets clients read settings with these prefixes; others may hold a password.
_READABLE = ("hive", "mapred", "hdfs")

INCOMPATIBLE_TYPES = "metastore.disallow.incompatible.col.type.changes"
"""The connection setting that lets a column change to any type if it is `false`."""

# The settings that a client may change for its connection (setMetaConf), with their defaults. As in Hive any value is
# accepted. The names are those of Hive 3 and later; the older ones with the prefix `hive.` work, too.
_METACONF = {
    "metastore.try.direct.sql": "true",
    "metastore.try.direct.sql.ddl": "true",
    "metastore.client.capability.check": "true",
    "metastore.client.socket.timeout": "600s",
    "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
    "metastore.partition.name.whitelist.pattern": "",
    "metastore.partition.order.expr": '"PART_NAME" asc',
    INCOMPATIBLE_TYPES: "true",
}


class ServerInfo:
    """Calls about the server rather than its tables."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        open_connections: Callable[[], int],
        authorization_trouble: Callable[[], str | None],
    ) -> None:
        self._open_connections = open_connections
        self._authorization_trouble = authorization_trouble
        self._database = database
        self._settings = settings
        self._started = int(time.time())

    @property
    def name(self) -> str:
        return f"metastore {metastore.__version__}"

    @property
    def started(self) -> int:
        """When this worker started, in seconds since 1970."""
        return self._started

    def uuid(self) -> str:
        """This metastore's identity. It is stored in the database, so all servers on it return the same."""
        with self._database.write() as tx:
            return properties.get_or_set(tx, "uuid", str(uuid.uuid4()))

    def check(self) -> None:
        """Checks the database. Raises store.DatabaseUnavailable if it doesn't answer, or accepts no changes."""
        self._database.check_writable()
        with self._database.at_once() as tx:
            properties.get(tx, "uuid")

    def counts(self) -> dict[str, int]:
        """Counts of objects, and this worker's uptime in seconds.

        `partitions`: ready partitions. `files_to_delete`: pending deletions of lake tables' files. `undeletable_files`:
        those of them that have failed repeatedly.
        """
        with self._database.read() as tx:
            waiting, undeletable = data_files.count_pending_deletions(tx)
            return {
                "databases": databases.count(tx),
                "tables": tables.count(tx),
                "partitions": partitions.count_all(tx),
                "uncommitted_partitions": partitions.count_uncommitted(tx),
                "functions": functions.count(tx),
                "files_to_delete": waiting,
                "undeletable_files": undeletable,
                "connections": self._open_connections(),
                "workers": self._settings.workers,
                "uptime_seconds": int(time.time()) - self._started,
            }

    def options(self) -> dict[str, str]:
        """Facts about the server, by name.

        `leader`: the server that runs the leader tasks. `exposure`: a warning about who may come in.
        `authorization.trouble`: why rights aren't what the operator has written last; empty if they are.
        """
        with self._database.read() as tx:
            leader = leader_lock.holder(tx)
        return {
            "version": metastore.__version__,
            "schema.revision": current(self._database.url.render_as_string(hide_password=False)) or "",
            "warehouse": self._settings.warehouse_dir,
            "leader": leader or "",
            "authentication": ", ".join(self._settings.authentication),
            "encryption": self._encryption,
            "exposure": self._settings.exposure or "",
            "authorization": self._settings.authorization,
            "authorization.trouble": self._authorization_trouble() or "",
        }

    @property
    def _encryption(self) -> str:
        if self._settings.tls_certificate is None:
            return "none"
        return "TLS" if self._settings.tls_required else "TLS, not required"

    def config_value(self, name: str | None, default: str | None) -> str | None:
        """A configuration value as Hive's clients ask for it.

        Raises ConfigValSecurityException for a name that Hive doesn't let clients read.
        """
        if name is None:
            return default
        if not name.startswith(_READABLE):
            raise ConfigValSecurityException(f"For security reasons, the config key {name} cannot be accessed")
        values = {"hive.metastore.warehouse.dir": self._settings.warehouse_dir}
        return values.get(name, default)

    def check_metaconf(self, key: str | None, value: str | None) -> str:
        """The canonical name of a connection setting. Raises MetaException for an unknown key or a too long value."""
        name, _ = self.metaconf(key)
        if len(value or "") > MAX_HINT:
            raise MetaException(f"a value of {len(value or '')} characters for {key}; {MAX_HINT} are allowed")
        return name

    def metaconf(self, key: str | None) -> tuple[str, str]:
        """The canonical name of a connection setting, and its default. Raises MetaException for an unknown key."""
        name = (key or "").removeprefix("hive.")
        if name not in _METACONF:
            raise MetaException(f"Invalid configuration key {hint(key)}")
        return name, _METACONF[name]
