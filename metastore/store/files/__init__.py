"""SQL for pending moves of directories and staged files, and for directories that the server created."""
