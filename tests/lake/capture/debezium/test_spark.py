"""Definitions of a captured table in a project of layers, on Spark: it takes them, and never shows a wrong value."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lake.capture.debezium.values import UNAVAILABLE
from tests.lake.capture.debezium.messages import order
from tests.lake.capture.debezium.test_files import Landing
from tests.lake.capture.typed_tables import TypedTable
from tests.spark.session import SparkError, SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_a_large_value_that_no_message_has(
    landing: Landing, hinting_session: Callable[[str], SparkSession], tmp_path: Path
) -> None:
    landing.write("1.json", order("u", 1, UNAVAILABLE))
    landing.capture()
    table = TypedTable(tmp_path, landing.client, landing.into, "public.orders")
    spark = hinting_session("4")
    with pytest.raises(SparkError, match=r"public\.orders left out its large value note"):
        table.refresh(spark)
    landing.write("1.json", order("r", 1, "a"), order("u", 1, UNAVAILABLE))
    landing.capture()
    assert table.refresh(spark)[1] == [["1", "'a'"]]
