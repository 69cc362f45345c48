"""`metastore spark-conf`: what Spark's own shells and servers are given to use the metastore."""

import click

from lake.cli.connection import uri_option
from lake.cli.output import json_option, print_json


@click.command("spark-conf")
@uri_option
@click.option("--keep-listings", is_flag=True, help="Let Spark keep what files it found in a partition.")
@json_option
def spark_conf(uri: str, keep_listings: bool, as_json: bool) -> None:
    """Print Spark's settings as in spark-defaults.conf.

    They are the settings that lake.spark.configure makes for PySpark, without the directory of new databases. The
    jar that they name is built for the Spark in SPARK_HOME, or for PySpark's, unless the metastore's wheel brings it.

    \b
    Examples:
      metastore spark-conf --uri thrift://metastore.example:9083 >> $SPARK_HOME/conf/spark-defaults.conf
      metastore spark-conf > lake.conf && spark-sql --properties-file lake.conf
    """
    from lake.spark.configuration import settings
    from lake.spark.jar import extension_jar

    chosen = settings(uri, extension_jar(), keep_listings=keep_listings)
    if as_json:
        print_json(chosen)
        return
    width = max(map(len, chosen))
    for key, value in chosen.items():
        click.echo(f"{key:{width}}  {value}")
