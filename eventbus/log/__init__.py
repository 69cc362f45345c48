"""The event log in Postgres: append, number, filter, read and trim events."""
