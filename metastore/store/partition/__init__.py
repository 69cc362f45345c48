"""SQL for partitions and their locations."""
