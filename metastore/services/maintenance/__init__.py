"""Housekeeping (work of the leader), deletion of files, and calls about the server itself."""
