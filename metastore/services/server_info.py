"""What the metastore tells about itself: version, identity, settings, counts."""

import time
import uuid
from collections.abc import Callable

import metastore
from metastore.settings import Settings
from metastore.store import Database, databases, duties, functions, partitions, properties, tables
from metastore.store.migrations import current
from metastore.wire.hive import ConfigValSecurityException, MetaException

# What every version of Hive answers to fb303's getVersion, whatever its own is.
HIVE_VERSION = "3.0"

# Hive lets clients read what begins so; anything else may hold a password.
_READABLE = ("hive", "mapred", "hdfs")

# What a client may set for its connection (setMetaConf), to any value as in Hive, and the defaults.
_METACONF = {
    "hive.metastore.try.direct.sql": "true",
    "hive.metastore.try.direct.sql.ddl": "true",
    "hive.metastore.client.capability.check": "true",
    "hive.metastore.partition.name.whitelist.pattern": "",
}


class ServerInfo:
    """Answers about the server rather than its tables."""

    def __init__(self, database: Database, settings: Settings, open_connections: Callable[[], int]) -> None:
        self._open_connections = open_connections
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
        """This metastore's identity: it is the database's, so all servers on it answer the same."""
        with self._database.write() as tx:
            return properties.get_or_set(tx, "uuid", str(uuid.uuid4()))

    def check(self) -> None:
        """Raises store.DatabaseUnavailable if the database doesn't answer."""
        with self._database.read() as tx:
            properties.get(tx, "uuid")

    def counts(self) -> dict[str, int]:
        """How many objects there are, and for how many seconds this worker has been up."""
        with self._database.read() as tx:
            return {
                "databases": databases.count(tx),
                "tables": tables.count(tx),
                "partitions": partitions.count_all(tx),
                "functions": functions.count(tx),
                "connections": self._open_connections(),
                "workers": self._settings.workers,
                "uptime_seconds": int(time.time()) - self._started,
            }

    def options(self) -> dict[str, str]:
        """Facts about the server, by name. `duties` is which of the servers does what one alone does for all."""
        with self._database.read() as tx:
            on_duty = duties.holder(tx)
        return {
            "version": metastore.__version__,
            "schema.revision": current(self._database.url.render_as_string(hide_password=False)) or "",
            "warehouse": self._settings.warehouse_dir,
            "duties": on_duty or "",
        }

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

    def check_metaconf(self, key: str | None) -> None:
        """Raises MetaException for a key that a connection can't set."""
        if key not in _METACONF:
            raise MetaException(f"Invalid configuration key {key}")

    def metaconf(self, key: str | None) -> str:
        """What a key that a connection can set has as its default. Raises MetaException for another key."""
        if key not in _METACONF:
            raise MetaException(f"Invalid configuration key {key}")
        return _METACONF[key]
