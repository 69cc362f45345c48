"""How statements reach Postgres: prepared, and in few messages. The store and the event log use it."""
