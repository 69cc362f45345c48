"""Directories and files of tables, through fsspec. Knows nothing of databases or Thrift."""

from metastore.warehouse.errors import WarehouseError
from metastore.warehouse.schemes import DEFAULT_SCHEMES
from metastore.warehouse.warehouse import Summary, Warehouse

__all__ = ["DEFAULT_SCHEMES", "Summary", "Warehouse", "WarehouseError"]
