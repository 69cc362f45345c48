"""Column statistics: store, merge, read and aggregate them."""
