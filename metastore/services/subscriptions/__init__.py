"""Event calls of clients: reading, groups, long polls, and Hive's notification log."""
