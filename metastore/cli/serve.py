"""`metastore serve`."""

import sys
from pathlib import Path

import click

from metastore.cli.options import load_settings, settings_options


@click.command()
@settings_options()
def serve(config: Path | None, **flags: object) -> None:
    """Run the metastore server, until SIGTERM or Ctrl-C.

    Prints "metastore ready thrift://HOST:PORT" on stdout when it accepts connections; its log goes to stderr.
    The first SIGTERM or Ctrl-C lets running requests finish, a second one doesn't.

    Every flag is also an environment variable (--data-dir: METASTORE_DATA_DIR) and a key of the settings file
    (data_dir). A flag comes before the environment, the environment before the file.

    \b
    Examples:
      metastore serve --data-dir /srv/metastore
      metastore serve --host 0.0.0.0 --warehouse-dir s3://lake/warehouse --http-port 9084
      METASTORE_DATABASE_URL=$URL metastore serve --warehouse-dir s3://lake/warehouse
    """
    settings, _ = load_settings(config, **flags)

    from lake.protocol import logging

    logging.configure(settings.log_level, settings.log_format)

    from metastore.cli.database import check_schema, upgrade_schema
    from metastore.server import worker
    from metastore.server.supervisor import Supervisor

    migrate = upgrade_schema if settings.schema_upgrade else check_schema
    sys.exit(Supervisor(settings, worker=worker.run, migrate=migrate).run())
