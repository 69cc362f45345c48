"""docs/methods.md lists every method, and says of each what is so."""

import re

from lake.protocol.services import METHODS
from tools.update_methods import PAGE, checked_by, checks, rendered


def test_every_method_is_listed() -> None:
    assert sorted(re.findall(r"^\| `(\w+)` ", PAGE.read_text(), re.MULTILINE)) == sorted(METHODS)


def test_the_page_is_as_the_code_is() -> None:
    page = PAGE.read_text()
    assert rendered(checked_by(page)) == page, "run `make generate`"


def test_compared_is_what_one_test_called_of_both() -> None:
    record = {
        "one": {"ours": ["both", "ours"], "hive": ["both", "hive"]},
        "two": {"ours": ["both", "new"], "hive4": ["both", "new"]},
        "three": {"ours": ["hive"]},
        "four": {"hive4's suite": ["ours", "theirs"]},
    }
    assert checks(record) == {
        "both": "compared with Hive 2.3 and Hive 4",
        "new": "compared with Hive 4",
        "ours": "here alone; in Hive 4's own suite",
        "theirs": "in Hive 4's own suite",
        "hive": "here alone",
    }
