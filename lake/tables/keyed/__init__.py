"""Keyed tables in Arrow: hashing of keys, merging of versions, net changes. Knows nothing of servers or of Spark.

Readers and writers without Spark call these rules. The extension for Spark has the same ones in Java.
"""
