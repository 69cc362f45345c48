"""How much of the long random runs is done: LONG_SHARE, where 1 is all of it and takes days.

A tenth, the default, takes a night, and finds what is wrong in nearly every history.
"""

import os

SHARE = float(os.environ.get("LONG_SHARE", "0.1"))


def share_of(count: int) -> int:
    """Of that many examples, histories or steps those that are run; at least one."""
    return max(1, round(count * SHARE))
