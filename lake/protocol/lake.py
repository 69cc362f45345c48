"""The types of our own interface, beside Hive's."""

from lake.protocol.generated.lake_metastore_types import *  # noqa: F403
