"""SQL for Hive's objects beside tables, and for properties of the metastore as a whole."""
