"""What keys the tables of layers have, for the compiler."""

from collections.abc import Callable

from lake.layers.compiler.compiling import ROW_KEYS
from lake.layers.compiler.deltas import Deltas
from lake.layers.compiler.layers import Layer
from lake.layers.compiler.stored_keys import RowKeys, StoredKey, numbering_misses
from lake.layers.runner.engine import Engine
from lake.layers.runner.layer_tables import PROJECT, if_there
from lake.layers.runner.source_relations import plain
from lake.protocol.formats.keyed_table import PRIMARY_KEY, column_names
from lake.tables.lake import LakeTable


class TableKeys:
    """The keys of the tables that a project's layers have."""

    def __init__(self, engine: Engine, table: Callable[[str], LakeTable], project: str) -> None:
        self._engine = engine
        self._table = table
        self._project = project

    def of(self, layer: str) -> StoredKey | None:
        """The key of a layer's table; None if there is no table, or one that isn't the project's."""
        schema = if_there(self._table(layer), LakeTable.schema)
        if schema is None or schema.properties.get(PROJECT) != self._project:
            return None
        properties = schema.properties
        columns = column_names(properties.get(PRIMARY_KEY, ""))
        kept = properties.get(ROW_KEYS)
        return StoredKey(columns, next((each for each in RowKeys if each == kept), None))

    def are_numbered(self, layer: Layer) -> bool:
        """Whether all rows of the layer's table have the texts in `ROW_KEY` that the given layer's would have, whose
        equal rows are numbered. Not so without rows."""
        lake = self._table(layer.name)
        position = lake.position().position
        if position == 0 or not {*layer.columns} <= {*self._engine.columns(lake.schema())}:
            return False
        stored = f"_keys_{plain(layer.name)}"
        self._engine.bind_state(stored, lake, position)
        deltas = Deltas({}, [], f"_numbers_{plain(layer.name)}")
        step, counts = numbering_misses(layer, deltas, stored)
        self._engine.run(deltas.steps)
        found = self._engine.aggregated(step, counts)
        return found["present"] > 0 and not found["misses"]
