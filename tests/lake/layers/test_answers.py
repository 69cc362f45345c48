"""The answers of Spark's analyser that other tests take as recorded are those that it gives."""

from collections.abc import Callable

import pytest

from tests.lake.layers.answers import ANSWERS, Answer, asked
from tests.spark.session import SparkSession

pytestmark = pytest.mark.spark


def without_numbers(tree: object) -> object:
    """An answer without the numbers of expressions, which count what a session has read before."""
    if isinstance(tree, dict):
        return {name: without_numbers(each) for name, each in tree.items() if name not in ("handle", "plan", "text")}
    return [without_numbers(each) for each in tree] if isinstance(tree, list) else tree


def test_recorded_answers(hinting_session: Callable[[str], SparkSession]) -> None:
    requests: list[Answer] = [request for request, _ in ANSWERS.recorded()]
    found = asked(hinting_session("4"), requests)
    wrong = [
        request.get("queries", request.get("same"))
        for (request, answer), now in zip(ANSWERS.recorded(), found, strict=True)
        if without_numbers(answer) != without_numbers(now)
    ]
    assert not wrong, "record them again: python -m tests.lake.layers.record"
