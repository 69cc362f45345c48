"""Generated from thrift_idl/fb303.thrift by tools/generate_types.py. Do not edit."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from lake.protocol.struct import ExceptionStruct, Spec, Struct, link
from lake.protocol.struct import fields as f


class fb_status(IntEnum):
    DEAD = 0
    STARTING = 1
    ALIVE = 2
    STOPPING = 3
    STOPPED = 4
    WARNING = 5


