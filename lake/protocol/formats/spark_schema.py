"""The properties of a table in which Spark keeps what it knows of a table of its own.

The names are those of Spark's HiveExternalCatalog. The columns are a schema of Spark's as JSON: in one property, or in
several since some databases behind Hive's metastore can't hold long ones.
"""

import json
from collections.abc import Collection, Mapping

PROVIDER = "spark.sql.sources.provider"
"""The format of the table's files, or the data source that reads them."""

SCHEMA = "spark.sql.sources.schema"
"""The columns; the names of further properties about them begin so, too."""

MAX_PROPERTY = 4_000
"""Characters of a property's value, as Spark writes them (spark.sql.sources.schemaStringLengthThreshold)."""

_HIVES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}

_COUNT, _PART = f"{SCHEMA}.numParts", f"{SCHEMA}.part."


def joined(properties: Mapping[str, str]) -> str | None:
    """The schema that a table's properties hold; None for a table that Spark didn't make."""
    if count := properties.get(_COUNT):
        return "".join(properties[f"{_PART}{number}"] for number in range(int(count)))
    return properties.get(SCHEMA) or None


def columns(properties: Mapping[str, str]) -> dict[str, str] | None:
    """The columns that a table's properties hold, those that partition it too: types as Hive names them, by name.

    What nested types are made of is left out, and types that Hive doesn't have keep Spark's name. None for a table
    that Spark didn't make, and where it can't be read.
    """
    try:
        schema = joined(properties)
        fields = None if schema is None else json.loads(schema)["fields"]
        return None if fields is None else {str(each["name"]): _type(each["type"]) for each in fields}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _type(given: str | Mapping[str, str]) -> str:
    return _HIVES.get(given, given) if isinstance(given, str) else f"{given['type']}<…>"


def split(schema: str) -> dict[str, str]:
    """The properties that hold a schema, in several parts."""
    parts = [schema[start : start + MAX_PROPERTY] for start in range(0, len(schema), MAX_PROPERTY)]
    return {_COUNT: str(len(parts)), **{f"{_PART}{number}": part for number, part in enumerate(parts)}}


def beside_columns(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties about columns beside the columns themselves: which of them partition the table, for example."""
    return {
        key: value
        for key, value in properties.items()
        if key.startswith(SCHEMA) and key not in (SCHEMA, _COUNT) and not key.startswith(_PART)
    }


def following(properties: Mapping[str, str], columns: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    """Properties in which the schema that Spark keeps follows a change of columns that Spark didn't make.

    `columns`: earlier names of the data columns by their new ones, in order; columns that Spark doesn't know are left
    out. `keys`: the columns that partition the table. All names are in lower case.
    """
    text = joined(properties)
    if text is None:
        return dict(properties)
    schema = json.loads(text)
    fields = {each["name"].lower(): each for each in schema["fields"]}
    known = {name: fields[before] for name, before in columns.items() if before in fields}
    data = [field if name == columns[name] else {**field, "name": name} for name, field in known.items()]
    schema["fields"] = [*data, *(fields[key] for key in keys if key in fields)]
    others = {key: value for key, value in properties.items() if not key.startswith(SCHEMA)}
    return {**others, **beside_columns(properties), SCHEMA: json.dumps(schema, separators=(",", ":"))}
