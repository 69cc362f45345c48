"""SQL for readiness, watermarks and writers."""
