"""What a server shows Prometheus."""

import re
import urllib.request
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.support.server import MetastoreServer


class Family(NamedTuple):
    """A metric: its type, its meaning, and its values by labels."""

    type: str
    meaning: str
    labels: frozenset[str]


def http_address(server: MetastoreServer) -> str:
    """The address of the HTTP port of a server that was started with `--http-port`."""
    match = re.search(r"uri=(http://\S+)", server.log.read_text())
    assert match is not None, "the server was not started with --http-port"
    return match[1].rstrip("/")


class Exposition:
    """The metrics of a server that was started with `--http-port`, read anew at each call."""

    def __init__(self, server: MetastoreServer) -> None:
        self._url = f"{http_address(server)}/metrics"

    def _text(self) -> str:
        with urllib.request.urlopen(self._url, timeout=20) as answer:
            return answer.read().decode()

    def value(self, name: str, **labels: str) -> float | None:
        """The value of the sample with that name and exactly these labels; None if it is not shown."""
        for family in text_string_to_metric_families(self._text()):
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        return None

    def values(self, name: str, label: str) -> dict[str, float]:
        """The values of all samples with that name, by one label."""
        return {
            sample.labels[label]: sample.value
            for family in text_string_to_metric_families(self._text())
            for sample in family.samples
            if sample.name == name
        }

    def families(self) -> dict[str, Family]:
        """What is shown, by the name as Prometheus stores it: counters with `_total`."""
        return {
            family.name + ("_total" if family.type == "counter" else ""): Family(
                family.type,
                family.documentation,
                frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
            )
            for family in text_string_to_metric_families(self._text())
        }
