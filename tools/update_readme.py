"""Writes the generated table of settings within docs/settings.md: `python -m tools.update_readme`."""

import re
from pathlib import Path

from metastore.settings import markdown_table

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ROOT / "docs" / "settings.md"


def with_settings(page: str) -> str:
    """`page` with the current settings between its two marks."""
    section = re.compile(r"(?<=<!-- settings -->\n).*(?=<!-- /settings -->)", re.DOTALL)
    return section.sub(lambda _: f"\n{markdown_table()}\n\n", page)


if __name__ == "__main__":
    SETTINGS.write_text(with_settings(SETTINGS.read_text()))
