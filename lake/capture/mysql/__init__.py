"""Capture from MariaDB, by its binary log."""
