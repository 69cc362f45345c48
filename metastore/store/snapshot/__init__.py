"""SQL for the files of lake tables, and for pending deletions."""
