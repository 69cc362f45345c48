"""Names as Spark's SQL has them."""


def quoted(name: str) -> str:
    """The name of a column, a table or a database as Spark's expressions have it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"
