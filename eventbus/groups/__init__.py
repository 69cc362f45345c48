"""Groups of subscribers: their members, and the assignment of shards to members."""
