"""SQL for column statistics."""
