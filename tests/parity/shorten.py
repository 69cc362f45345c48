"""Makes the script that shows a difference short."""

from tests.parity.calls import Script
from tests.parity.play import Difference, Pair

MAX_PLAYS = 40


def shortened(pair: Pair, script: Script, found: list[Difference]) -> tuple[Script, list[Difference]]:
    """The script without calls that the difference doesn't need, and what differs then.

    In few plays, where Hypothesis, which simplifies arguments too, needs hundreds.
    """
    signature = found[0].signature
    best = script[: found[0].position + 1]
    plays, size = 0, max(1, len(best) // 2)
    while size and plays < MAX_PLAYS:
        position = 0
        while position < len(best) and plays < MAX_PLAYS:
            candidate = best[:position] + best[position + size :]
            plays += 1
            again = pair.differences(candidate)
            if again and again[0].signature == signature:
                best, found = candidate, again
            else:
                position += size
        size //= 2
    return best, found
