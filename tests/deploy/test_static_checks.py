"""What holds for all code, and no tool of `make lint` checks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SHIPPED = ("lake", "metastore", "eventbus", "bench", "examples", "demo", "tools", "spark_extension")


def asserts() -> Iterator[tuple[Path, ast.Assert]]:
    for room in SHIPPED:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Assert):
                    yield file.relative_to(ROOT), node


def tells_only_a_type(test: ast.expr) -> bool:
    """Whether an assert says what a type checker can't see, `x is not None` or `isinstance(x, T)`, and nothing else."""
    match test:
        case ast.BoolOp(values=parts):
            return all(map(tells_only_a_type, parts))
        case ast.Compare(left=value, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return is_name(value)
        case ast.Call(func=ast.Name(id="isinstance"), args=[value, kind], keywords=[]):
            return is_name(value) and is_name(kind)
    return False


def is_name(value: ast.expr) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)


@pytest.mark.long
def test_nothing_depends_on_asserts() -> None:
    """`python -O` leaves them out: what must be done, or must be refused, is not in one."""
    found = list(asserts())
    assert found
    wrong = [f"{file}:{node.lineno}: {ast.unparse(node)}" for file, node in found if not tells_only_a_type(node.test)]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    ["assert rows.pop() == 1", "assert (x := f())", "assert len(x) == 1", "assert x", "assert x.y() is not None"],
)
def test_an_assert_that_does_or_refuses_something_is_seen(text: str) -> None:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.Assert) and not tells_only_a_type(node.test)
