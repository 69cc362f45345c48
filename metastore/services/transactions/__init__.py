"""Hive's transactions, write ids, locks and compactions."""
