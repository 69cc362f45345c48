"""Takes Debezium's JSON messages, from files or from Kafka, into a raw table: `metastore capture --debezium`."""
