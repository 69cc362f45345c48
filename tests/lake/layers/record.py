"""Asks Spark again for all answers that are recorded: `python -m tests.lake.layers.record`."""

import json

from tests.lake.layers.answers import ANSWERS, RECORDED, keep

if __name__ == "__main__":
    recorded = json.loads(RECORDED.read_text())
    requests = {key: each["request"] for key, each in recorded.items()}
    found = dict(zip(requests, ANSWERS.asked([*requests.values()]), strict=True))
    keep({key: {"request": request, "answer": found[key]} for key, request in requests.items()})
