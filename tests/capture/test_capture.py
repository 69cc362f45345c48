"""Captures from a real Postgres."""

from tests.capture.shop import Source


def test_rows_that_were_there_and_what_changes(source: Source) -> None:
    source.run("CREATE TABLE orders (id bigint PRIMARY KEY, item text, price numeric(10,2))")
    source.run("INSERT INTO orders SELECT n, 'item ' || n, n / 4.0 FROM generate_series(1, 50) n")
    source.capture(chunk_rows=20)
    assert source.ops("orders") == ["read"] * 50
    source.check("orders", "id")
    source.run("UPDATE orders SET price = 3.10 WHERE id < 4; DELETE FROM orders WHERE id = 7")
    source.run("UPDATE orders SET id = 100 WHERE id = 9")
    source.capture()
    assert source.ops("orders")[50:] == ["update"] * 3 + ["delete", "update"]
    source.check("orders", "id")
