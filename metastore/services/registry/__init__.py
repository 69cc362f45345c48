"""Hive's objects beside tables: types, schemas, resource plans, scheduled queries, reports of engines."""
