"""Hive's metastore types: every struct, enum and exception of thrift_idl/hive_metastore.thrift."""

from lake.protocol.generated.hive_metastore_types import *  # noqa: F403
