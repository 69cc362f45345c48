"""Generated from thrift_idl/hudi_metaserver.thrift by tools/generate_types.py. Do not edit."""

from lake.protocol.method import Method as m
from lake.protocol.struct import fields as f
from lake.protocol.generated.hudi_metaserver_types import (
    AlreadyExistException,
    HoodieInstantChangeResult,
    MetaserverException,
    MetaserverStorageException,
    NoSuchObjectException,
    THoodieInstant,
    Table,
)

METHODS: tuple[m, ...] = (
    m('createDatabase', f(None, (1, 'db', 11, 'UTF8')),
      f(None, (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]), (3, 'o3', 12, [AlreadyExistException, None]))),
    m('createNewInstantTime', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8')),
      f((0, 'success', 11, 'UTF8'), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]))),
    m('createNewInstantWithTime', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8'), (3, 'instant', 12, [THoodieInstant, None]), (4, 'content', 11, 'BINARY')),
      f((0, 'success', 12, [HoodieInstantChangeResult, None]), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]))),
    m('createTable', f(None, (1, 'table', 12, [Table, None])),
      f(None, (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]), (3, 'o3', 12, [AlreadyExistException, None]), (4, 'o4', 12, [MetaserverException, None]))),
    m('deleteInstant', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8'), (3, 'instant', 12, [THoodieInstant, None])),
      f((0, 'success', 12, [HoodieInstantChangeResult, None]), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]))),
    m('getInstantMetadata', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8'), (3, 'instant', 12, [THoodieInstant, None])),
      f((0, 'success', 11, 'BINARY'), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]))),
    m('getTable', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8')),
      f((0, 'success', 12, [Table, None]), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]))),
    m('listInstants', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8'), (3, 'num', 8, None)),
      f((0, 'success', 15, (12, [THoodieInstant, None], False)), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]))),
    m('transitionInstantState', f(None, (1, 'db', 11, 'UTF8'), (2, 'tb', 11, 'UTF8'), (3, 'fromInstant', 12, [THoodieInstant, None]), (4, 'toInstant', 12, [THoodieInstant, None]), (5, 'metadata', 11, 'BINARY')),
      f((0, 'success', 12, [HoodieInstantChangeResult, None]), (1, 'o1', 12, [MetaserverStorageException, None]), (2, 'o2', 12, [NoSuchObjectException, None]), (3, 'o3', 12, [MetaserverException, None]))),
)
