"""A program that follows events as a member of a group, and notes what it handles: for tests that kill it.

python -m tests.eventbus.group_member <uri> <group> <file>
"""

import json
import os
import sys
import time
from pathlib import Path

from lake.subscriptions import subscribe


def main(uri: str, group: str, path: str) -> None:
    with Path(path).open("a") as file, subscribe(uri, tables="shared.*", group=group, start="earliest") as events:
        for event in events:
            file.write(json.dumps([os.getpid(), event.number, event.table]) + "\n")
            file.flush()
            time.sleep(0.01)  # there is work to do
            events.acknowledge(event)


if __name__ == "__main__":
    main(*sys.argv[1:])
