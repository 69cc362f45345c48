"""Makes partitions ready: watermarks, late rows, empty partitions."""
