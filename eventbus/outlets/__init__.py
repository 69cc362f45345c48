"""Outlets deliver events to Redis streams, Kafka, webhooks and listeners; also delivery itself and dead letters."""
