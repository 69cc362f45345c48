"""The services that one port answers, as one table: no two of them have a method name in common."""

from lake.protocol.generated import (
    fb303_service,
    hive_metastore_service,
    hudi_metaserver_service,
    lake_metastore_service,
)
from lake.protocol.method import Method

OWN_METHODS = "lake_"
"""How the names begin of methods that only lake metastores have."""

METHODS: dict[str, Method] = {
    method.name: method
    for service in (fb303_service, hive_metastore_service, hudi_metaserver_service, lake_metastore_service)
    for method in service.METHODS
}
