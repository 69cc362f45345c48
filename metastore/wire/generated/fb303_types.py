"""Generated from thrift_idl/fb303.thrift by tools/generate_types.py. Do not edit."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from metastore.wire.struct import ExceptionStruct, Spec, Struct, link
from metastore.wire.struct import fields as f


class fb_status(IntEnum):
    DEAD = 0
    STARTING = 1
    ALIVE = 2
    STOPPING = 3
    STOPPED = 4
    WARNING = 5


