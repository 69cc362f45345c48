"""Replies that were read from the database before, and the rule by which they may be given again.

docs/cache.md describes the protocol and why a read never misses a write that was acknowledged before it began.
"""
