"""SQL for the recorded changes by which caches invalidate entries."""
