"""The stream as files of JSON lines, which appear in a directory one after the other, each at once and whole."""

import time
from collections.abc import Callable
from pathlib import Path

from examples.orders_stream.stream import OrderStream

ROWS_PER_FILE = 250


def write_files(
    stream: OrderStream,
    directory: Path,
    rows: int,
    *,
    rows_per_second: float | None = None,
    written: Callable[[int], None] = lambda _rows: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Writes the first `rows` rows; `rows_per_second` sets the pace (None: as fast as it goes).

    `written` is called with the rows so far after each file, `stopped` before. A file that is there already is
    left as it is, so a run that was interrupted is continued.
    """
    directory.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    paced = 0
    for first in range(0, rows, ROWS_PER_FILE):
        if stopped():
            return
        end = min(first + ROWS_PER_FILE, rows)
        file = directory / f"orders-{first // ROWS_PER_FILE:06}.json"
        if not file.exists():
            # Readers pass over names that begin with a dot, and a rename shows them the file as a whole.
            hidden = file.with_name(f".{file.name}")
            hidden.write_text("".join(stream.order(number).as_json() + "\n" for number in range(first, end)))
            hidden.rename(file)
            if rows_per_second:
                paced += end - first
                time.sleep(max(0.0, begun + paced / rows_per_second - time.monotonic()))
        written(end)
