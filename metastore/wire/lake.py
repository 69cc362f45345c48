"""The types of our own interface, beside Hive's."""

from metastore.wire.generated.lake_metastore_types import *  # noqa: F403
