"""Makes partitions ready: batches of streaming writers, watermarks, late rows, empty partitions."""
