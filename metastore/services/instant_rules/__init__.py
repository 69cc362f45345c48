"""The rules of a single instant, and what an instant does to its table."""
