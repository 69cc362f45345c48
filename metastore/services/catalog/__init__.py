"""Catalogs, databases, data connectors, functions and stored procedures."""
