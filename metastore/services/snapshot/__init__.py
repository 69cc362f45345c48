"""Snapshots of lake tables: the exact files at a position, and the changes between two positions."""
