"""Connections, transactions, and how statements are executed. Nothing here knows a table of the metastore."""
