"""Kept replies, and the rule that decides whether one still holds.

docs/cache.md describes the protocol, and why a read never misses a write that was acknowledged before it began.
"""
