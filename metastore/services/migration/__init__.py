"""What another metastore has, brought into this one's store as it is."""
