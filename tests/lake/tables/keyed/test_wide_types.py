"""Tables with more than 2 GiB of texts come in pieces of Arrow's usual types."""

import numpy as np
import pyarrow as pa

from lake.tables.keyed.wide_types import PIECE_BYTES, narrow_schema, pieces


def test_pieces_that_lie_beyond_2_gib() -> None:
    size, count = 100 << 20, 23
    offsets = np.arange(count + 1, dtype=np.int64) * size
    texts = np.zeros(size * count, np.uint8)  # takes no memory while nobody writes to it
    docs = pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(texts)])
    lists = pa.LargeListArray.from_arrays(np.arange(count + 1), docs)
    for name, column in {"doc": docs, "l": lists}.items():
        rows = pa.table({name: column})
        found = []
        for each in pieces(rows.slice(count - 4)):
            assert each.cast(narrow_schema(rows.schema)).nbytes <= PIECE_BYTES
            found.append(each.num_rows)
        assert found == [2, 2]
