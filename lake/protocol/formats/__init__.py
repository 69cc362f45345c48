"""What servers and clients agree on beside the calls: names of partitions, where files are staged, Spark's schemas."""
