"""Alembic's entry: runs revisions on the connection that `metastore.store.migrations` opened."""

from alembic import context

from metastore.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata)
context.run_migrations()
