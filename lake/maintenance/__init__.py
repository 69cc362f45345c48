"""The table management service."""
