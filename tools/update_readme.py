"""Writes the table of settings into README.md: `python -m tools.update_readme`."""

import re
from pathlib import Path

from metastore.settings import markdown_table

README = Path(__file__).resolve().parent.parent / "README.md"
SECTION = re.compile(r"(?<=<!-- settings -->\n).*(?=<!-- /settings -->)", re.DOTALL)


def with_settings(readme: str) -> str:
    """`readme` with the settings as they are now between its two marks."""
    return SECTION.sub(lambda _: f"\n{markdown_table()}\n\n", readme)


if __name__ == "__main__":
    README.write_text(with_settings(README.read_text()))
