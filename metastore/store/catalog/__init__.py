"""SQL for catalogs, databases and functions."""
