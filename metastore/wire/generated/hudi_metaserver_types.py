"""Generated from thrift_idl/hudi_metaserver.thrift by tools/generate_types.py. Do not edit."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from lake.protocol.struct import ExceptionStruct, Spec, Struct, link
from lake.protocol.struct import fields as f


class TAction(IntEnum):
    COMMIT = 1
    DELTACOMMIT = 2
    CLEAN = 3
    ROLLBACK = 4
    SAVEPOINT = 5
    REPLACECOMMIT = 6
    COMPACTION = 7
    RESTORE = 8


class TState(IntEnum):
    REQUESTED = 1
    INFLIGHT = 2
    COMPLETED = 3
    NIL = 4


class FieldSchema(Struct):
    __slots__ = ('name', 'type', 'comments', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, name: str | None = None, type: str | None = None, comments: str | None = None) -> None:
        self.name = name
        self.type = type
        self.comments = comments


class THoodieInstant(Struct):
    __slots__ = ('timestamp', 'action', 'state', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, timestamp: str | None = None, action: int | None = None, state: int | None = None) -> None:
        self.timestamp = timestamp
        self.action = action
        self.state = state


class HoodieInstantChangeResult(Struct):
    __slots__ = ('success', 'instant', 'msg', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, success: bool | None = None, instant: THoodieInstant | None = None, msg: str | None = None) -> None:
        self.success = success
        self.instant = instant
        self.msg = msg


class Table(Struct):
    __slots__ = ('tableName', 'dbName', 'owner', 'createTime', 'location', 'tableType', 'partitionKeys', 'parameters', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, tableName: str | None = None, dbName: str | None = None, owner: str | None = None, createTime: int | None = None, location: str | None = None, tableType: str | None = None, partitionKeys: list[FieldSchema] | None = None, parameters: dict[str, str] | None = None) -> None:
        self.tableName = tableName
        self.dbName = dbName
        self.owner = owner
        self.createTime = createTime
        self.location = location
        self.tableType = tableType
        self.partitionKeys = partitionKeys
        self.parameters = parameters


class AlreadyExistException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class MetaserverException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class MetaserverStorageException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


class NoSuchObjectException(ExceptionStruct):
    __slots__ = ('message', 'unknown')
    thrift_spec: ClassVar[Spec]

    def __init__(self, message: str | None = None) -> None:
        self.message = message


FieldSchema.thrift_spec = f(None, (1, 'name', 11, 'UTF8'), (2, 'type', 11, 'UTF8'), (3, 'comments', 11, 'UTF8'))
THoodieInstant.thrift_spec = f(None, (1, 'timestamp', 11, 'UTF8'), (2, 'action', 8, None), (3, 'state', 8, None))
HoodieInstantChangeResult.thrift_spec = f(None, (1, 'success', 2, None), (2, 'instant', 12, [THoodieInstant, None]), None, (4, 'msg', 11, 'UTF8'))
Table.thrift_spec = f(None, (1, 'tableName', 11, 'UTF8'), (2, 'dbName', 11, 'UTF8'), (3, 'owner', 11, 'UTF8'), (4, 'createTime', 10, None), (5, 'location', 11, 'UTF8'), (6, 'tableType', 11, 'UTF8'), (7, 'partitionKeys', 15, (12, [FieldSchema, None], False)), (8, 'parameters', 13, (11, 'UTF8', 11, 'UTF8', False)))
AlreadyExistException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
MetaserverException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
MetaserverStorageException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))
NoSuchObjectException.thrift_spec = f(None, (1, 'message', 11, 'UTF8'))

for _cls in (
    FieldSchema,
    THoodieInstant,
    HoodieInstantChangeResult,
    Table,
    AlreadyExistException,
    MetaserverException,
    MetaserverStorageException,
    NoSuchObjectException,
):
    link(_cls.thrift_spec)
