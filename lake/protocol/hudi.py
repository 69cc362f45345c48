"""Hudi's metaserver types. Its Table and FieldSchema are not Hive's, hence a module of their own."""

from lake.protocol.generated.hudi_metaserver_types import *  # noqa: F403
