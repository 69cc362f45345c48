"""Counts for Prometheus, of this process."""

from prometheus_client import Counter, Gauge

ROWS = Counter("capture_rows", "Rows that were written into the raw table.")
BATCHES = Counter("capture_batches", "Instants that were completed.")
RECONNECTS = Counter("capture_reconnects", "How often the source or the metastore was lost.")
LAG_BYTES = Gauge("capture_slot_lag_bytes", "Log of the source that the slot hasn't acknowledged.")
RETAINED_BYTES = Gauge("capture_slot_retained_bytes", "Log that the source keeps because of the slot.")
LAG_SECONDS = Gauge("capture_lag_seconds", "From a commit in the source to that of its rows here, of the latest batch.")
TROUBLED_TABLES = Gauge("capture_troubled_tables", "Tables whose rows can't be read.")
REREADS = Counter("capture_tables_read_again", "Tables that are read again, since their definition changed.")
HELD_CHANGES = Gauge(
    "capture_held_schema_changes", "Changes of a table's definition that wait for a decision.", ["table"]
)
HELD_SINCE = Gauge(
    "capture_held_since_timestamp_seconds",
    "When the first of a table's changes was made that waits for a decision; 0 if none does.",
    ["table"],
)
