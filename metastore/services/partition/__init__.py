"""Partitions: read, add, alter, rename, drop and exchange them."""
