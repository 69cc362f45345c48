"""Hudi's tables: the calls of Hudi's metaserver, and imports of Hudi's timelines."""
