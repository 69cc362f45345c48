"""Databases change the metastore that they live in, and back."""
