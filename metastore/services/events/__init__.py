"""Records an event for each change, in the transaction of the change."""
