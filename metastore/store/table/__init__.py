"""SQL for tables, their columns, indexes and constraints."""
