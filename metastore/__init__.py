"""A Hive-Metastore-compatible metastore server for lake tables."""

from lake import __version__ as __version__
