"""SQL for privileges, roles and master keys."""
