"""Data connectors."""

from lake.protocol.hive import (
    AlterDataConnectorRequest,
    CreateDataConnectorRequest,
    DataConnector,
    DropDataConnectorRequest,
    GetDataConnectorRequest,
    MetaException,
)
from metastore.api.methods import Call, answers


@answers("create_dataconnector", changes="ADMIN everything", uncommitted="no table", stores=True)
def create_dataconnector(call: Call, connector: DataConnector | None) -> None:
    call.metastore.data_connectors.create(_given(connector), call.session.user)


@answers("create_dataconnector_req", changes="ADMIN everything", uncommitted="no table", stores=True)
def create_dataconnector_req(call: Call, request: CreateDataConnectorRequest) -> None:
    create_dataconnector(call, request.connector)


@answers("get_dataconnector_req", reads="ADMIN everything", uncommitted="no table")
def get_dataconnector_req(call: Call, request: GetDataConnectorRequest) -> DataConnector:
    return call.metastore.data_connectors.get(request.connectorName)


@answers("get_dataconnectors", reads="ADMIN everything", uncommitted="no table")
def get_dataconnectors(call: Call) -> list[str]:
    return call.metastore.data_connectors.names()


@answers("alter_dataconnector", changes="ADMIN everything", uncommitted="no table", stores=True)
def alter_dataconnector(call: Call, name: str | None, connector: DataConnector | None) -> None:
    call.metastore.data_connectors.alter(name, _given(connector))


@answers("alter_dataconnector_req", changes="ADMIN everything", uncommitted="no table", stores=True)
def alter_dataconnector_req(call: Call, request: AlterDataConnectorRequest) -> None:
    alter_dataconnector(call, request.connectorName, request.newConnector)


@answers("drop_dataconnector", changes="ADMIN everything", uncommitted="no table")
def drop_dataconnector(call: Call, name: str | None, if_not_exists: bool | None, check_references: bool | None) -> None:
    """Hive doesn't look at references either."""
    call.metastore.data_connectors.drop(name, if_exists=bool(if_not_exists))


@answers("drop_dataconnector_req", changes="ADMIN everything", uncommitted="no table")
def drop_dataconnector_req(call: Call, request: DropDataConnectorRequest) -> None:
    call.metastore.data_connectors.drop(request.connectorName, if_exists=bool(request.ifNotExists))


def _given(connector: DataConnector | None) -> DataConnector:
    if connector is None:
        raise MetaException("the data connector is missing")
    return connector
