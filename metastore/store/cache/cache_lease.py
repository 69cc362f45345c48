"""The lease of a cache: as long as it lasts, no transaction commits a change that caches must know of.

A lease is a lock that an idle session holds (migration 0031). Who records a change ends such sessions first, with
`pg_terminate_backend`, and waits for their locks.
"""

PREPARE = "SET idle_in_transaction_session_timeout = 0"
"""For a session that is to hold a lease."""

TAKE = "BEGIN; SELECT take_cache_lease(), pg_backend_pid()"
"""Takes a lease for the session, until that ends. Its row: true; false while a transaction that recorded a change is
under way; null if this user's session may not hold one. Then the process of the session."""
