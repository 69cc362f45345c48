"""Directories and files of tables, through fsspec. Depends neither on the database nor on Thrift."""

from metastore.warehouse.errors import FileGone, StorageFailed, WarehouseError
from metastore.warehouse.schemes import DEFAULT_SCHEMES
from metastore.warehouse.warehouse import Summary, Warehouse

__all__ = ["DEFAULT_SCHEMES", "FileGone", "StorageFailed", "Summary", "Warehouse", "WarehouseError"]
