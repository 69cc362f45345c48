"""The way over from another metastore: what it has, brought here, and compared."""
