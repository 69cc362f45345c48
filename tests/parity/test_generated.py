"""Generated sequences of calls are answered by our server as by Hive's."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.parity.calls import Script
from tests.parity.families import FAMILIES
from tests.parity.play import Pair, explain
from tests.parity.shorten import shortened
from tests.support.long_runs import share_of

pytestmark = pytest.mark.hive

# How many scripts of each family. Hive's server needs some 30 ms for a call.
FEW = {
    "databases": 8,
    "tables": 9,
    "partitions": 12,
    "statistics": 5,
    "privileges": 7,
    "transactions": 9,
    "others": 9,
}
MANY = share_of(1_500)
"""Scripts of each family in the long run."""

SETTINGS = settings(
    database=None,
    deadline=None,
    print_blob=False,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_the_same(pair: Pair, family: str) -> None:
    """The same scripts in every run; the one that fails is shortened in a bounded number of plays."""

    @settings(SETTINGS, derandomize=True, max_examples=FEW[family])
    @given(FAMILIES[family])
    def play(script: Script) -> None:
        if differences := pair.differences(script):
            short, differences = shortened(pair, script, differences)
            pytest.fail(explain(short, differences), pytrace=False)

    play()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("family", FAMILIES)
def test_many_answers_are_the_same(pair: Pair, family: str) -> None:
    """Other scripts in every run; Hypothesis makes the one that fails as simple as it can."""

    @settings(SETTINGS, derandomize=False, max_examples=MANY, phases=[Phase.generate, Phase.shrink])
    @given(FAMILIES[family])
    def play(script: Script) -> None:
        differences = pair.differences(script)
        assert not differences, explain(script, differences)

    play()
