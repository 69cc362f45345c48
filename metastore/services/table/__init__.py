"""Tables, their indexes and their constraints."""
