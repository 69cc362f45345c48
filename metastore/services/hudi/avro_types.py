"""Walks over an Avro schema and converts its types; the base of the conversions to Hive and Spark."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

MAX_TYPES = 20_000
"""Types in a schema."""

MAX_DEPTH = 50

Type = TypeVar("Type")


class Field(NamedTuple, Generic[Type]):
    """A field of a record. `nullable`: its Avro type is a union with null."""

    name: str
    type: Type
    nullable: bool


class AvroTypes(ABC, Generic[Type]):
    """One walk over one schema. Subclasses convert each kind of type.

    Null is removed from unions. Whether a value may be absent is reported separately (`nullable`).
    """

    def __init__(self) -> None:
        self._named: dict[str, Type] = {}
        self._count = 0

    def columns(self, schema: str) -> list[Field[Type]]:
        """The fields of a record schema, given as Avro's JSON.

        Raises ValueError for what is no schema of a record, for one that contains itself, and for one that is too
        large or nested too deeply.
        """
        try:
            return self._fields(json.loads(schema), 0)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"no schema of a record: {type(error).__name__} {error}") from None

    @abstractmethod
    def primitive(self, name: str) -> Type | None:
        """The type of a name that is Avro's own; None for any other name."""

    @abstractmethod
    def logical(self, name: str, schema: Mapping[str, Any]) -> Type | None:
        """The type of a logical type; None where the type beneath it counts."""

    @abstractmethod
    def record(self, fields: Sequence[Field[Type]]) -> Type: ...

    @abstractmethod
    def array(self, items: Type, *, nullable: bool) -> Type: ...

    @abstractmethod
    def map(self, values: Type, *, nullable: bool) -> Type: ...

    def union(self, names: frozenset[str]) -> Type | None:
        """The type of a union of plain names; None where it becomes a record with a field for each."""
        return None

    def made(self, found: Type) -> Type:
        """Sees each type that has been made, to bound what they take together."""
        return found

    def _fields(self, schema: Mapping[str, Any], depth: int) -> list[Field[Type]]:
        if schema["type"] != "record":
            raise ValueError(f"a table's schema is a record, not {str(schema['type'])[:50]!r}")
        return [
            Field(str(field["name"]), self._type(field["type"], depth + 1), _nullable(field["type"]))
            for field in schema["fields"]
        ]

    def _type(self, schema: Any, depth: int) -> Type:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_TYPES:
            raise ValueError("a schema that is nested too deeply, or too large")
        match schema:
            case list():
                return self.made(self._union([each for each in schema if each != "null"], depth))
            case str():
                return self.made(self._of_name(schema))
            case _:
                found = self.made(self._complex(schema, depth))
                if "name" in schema:
                    self._named[str(schema["name"])] = found
                return found

    def _of_name(self, name: str) -> Type:
        found = self.primitive(name) or self._named.get(name.rpartition(".")[2])
        if found is None:
            raise ValueError(f"a schema with a type {name[:50]!r} that contains itself, or is not there")
        return found

    def _union(self, members: list[Any], depth: int) -> Type:
        if len(members) == 1:
            return self._type(members[0], depth + 1)
        if all(isinstance(each, str) for each in members) and (found := self.union(frozenset(members))) is not None:
            return found
        types = [self._type(each, depth + 1) for each in members]
        return self.record([Field(f"member{number}", each, nullable=True) for number, each in enumerate(types)])

    def _complex(self, schema: Mapping[str, Any], depth: int) -> Type:
        kind, logical = schema["type"], schema.get("logicalType")
        if logical is not None and (found := self.logical(logical, schema)) is not None:
            return found
        match kind:
            case "record":
                return self.record(self._fields(schema, depth))
            case "array":
                items = schema["items"]
                return self.array(self._type(items, depth + 1), nullable=_nullable(items))
            case "map":
                values = schema["values"]
                return self.map(self._type(values, depth + 1), nullable=_nullable(values))
            case str() if (found := self.primitive(kind)) is not None:
                return found
            case _:
                return self._type(kind, depth + 1)


def decimal(schema: Mapping[str, Any]) -> str:
    """The name that Hive and Spark give a decimal of Avro's."""
    return f"decimal({int(schema['precision'])},{int(schema.get('scale', 0))})"


def _nullable(schema: Any) -> bool:
    return isinstance(schema, list) and "null" in schema
