"""Iceberg's REST catalog: the same tables that HiveCatalog's clients see, through the server's own Thrift methods."""
