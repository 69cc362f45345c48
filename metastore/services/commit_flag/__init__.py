"""The commit state of partitions: the flag, the table's policy, and event time."""
