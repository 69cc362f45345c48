"""One method of a Thrift service: its name and the structs its arguments and its result travel in."""

from functools import cached_property
from itertools import zip_longest

from lake.protocol.struct import Spec, Struct, link


def _struct(name: str, spec: Spec) -> type[Struct]:
    link(spec)
    names = tuple(entry[2] for entry in spec if entry is not None)

    def initialize(self: Struct, *given: object, **named: object) -> None:
        for field, value in zip_longest(names, given):
            setattr(self, field, named.get(field, value))

    return type(name, (Struct,), {"__slots__": (*names, "unknown"), "__init__": initialize, "thrift_spec": spec})


class Method:
    """A method as the IDL declares it.

    `args` and `result` are struct classes made on first use. In a result, field 0 (`success`) is the return value;
    every other field is a declared exception.
    """

    def __init__(self, name: str, args: Spec, result: Spec, *, oneway: bool = False) -> None:
        self.name = name
        self.args_spec = args
        self.result_spec = result
        self.oneway = oneway

    def __repr__(self) -> str:
        return f"Method({self.name})"

    @cached_property
    def args(self) -> type[Struct]:
        return _struct(f"{self.name}_args", self.args_spec)

    @cached_property
    def result(self) -> type[Struct]:
        return _struct(f"{self.name}_result", self.result_spec)

    @cached_property
    def argument_names(self) -> tuple[str, ...]:
        """The arguments' names in the order of their field ids."""
        return tuple(entry[2] for entry in self.args_spec if entry is not None)

    @cached_property
    def returns_value(self) -> bool:
        return bool(self.result_spec) and self.result_spec[0] is not None

    @cached_property
    def exceptions(self) -> dict[type[Struct], str]:
        """Declared exception class -> the name of the result's field that carries it."""
        return {entry[3][0]: entry[2] for entry in self.result_spec[1:] if entry is not None}
