"""Generated from thrift_idl/fb303.thrift by tools/generate_types.py. Do not edit."""

from lake.protocol.method import Method as m
from lake.protocol.struct import fields as f

METHODS: tuple[m, ...] = (
    m('getName', f(),
      f((0, 'success', 11, 'UTF8'))),
    m('getVersion', f(),
      f((0, 'success', 11, 'UTF8'))),
    m('getStatus', f(),
      f((0, 'success', 8, None))),
    m('getStatusDetails', f(),
      f((0, 'success', 11, 'UTF8'))),
    m('getCounters', f(),
      f((0, 'success', 13, (11, 'UTF8', 10, None, False)))),
    m('getCounter', f(None, (1, 'key', 11, 'UTF8')),
      f((0, 'success', 10, None))),
    m('setOption', f(None, (1, 'key', 11, 'UTF8'), (2, 'value', 11, 'UTF8')),
      f()),
    m('getOption', f(None, (1, 'key', 11, 'UTF8')),
      f((0, 'success', 11, 'UTF8'))),
    m('getOptions', f(),
      f((0, 'success', 13, (11, 'UTF8', 11, 'UTF8', False)))),
    m('getCpuProfile', f(None, (1, 'profileDurationInSec', 8, None)),
      f((0, 'success', 11, 'UTF8'))),
    m('aliveSince', f(),
      f((0, 'success', 10, None))),
    m('reinitialize', f(),
      f(), oneway=True),
    m('shutdown', f(),
      f(), oneway=True),
)
