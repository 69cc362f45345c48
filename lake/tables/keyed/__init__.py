"""Keyed tables in Arrow: hashing of keys, merging of versions, net changes. Knows nothing of servers or of Spark.

There is one implementation of the rules. Readers and writers without Spark call it, and Spark's executors do.
"""
