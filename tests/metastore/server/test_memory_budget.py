"""The budget that a worker's requests share: never more than there is, and nobody waits for ever."""

from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.server.memory_budget import MemoryBudget


class Request:
    """A request that arrives in pieces and is then answered."""

    def __init__(self, budget: MemoryBudget, pieces: int, size: int) -> None:
        self._budget = budget
        self._left = pieces
        self._piece = size
        self.size = 0
        self.waits = self.done = False

    @property
    def answered(self) -> bool:
        return not self._left and not self.waits and not self.done

    def step(self) -> None:
        """Another piece arrives, or a thread is done."""
        if not self._left:
            self.done, self.size = True, 0
            self._budget.release(self)
            return
        self._left -= 1
        wanted = self.size + self._piece
        if self._budget.take(self, wanted, answered=not self._left):
            self.size = wanted
        else:
            self.waits = True

    def abort(self) -> None:
        self.done, self.waits, self.size = True, False, 0
        self._budget.release(self)

    def memory_granted(self) -> None:
        self.size += self._piece
        self.waits = False


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40)), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_everybody_gets_room_and_one_at_most_more_than_there_is(kinds: list[tuple[int, int]], chance: object) -> None:
    budget = MemoryBudget(100)
    requests = [Request(budget, *kind) for kind in kinds]
    while todo := [request for request in requests if not request.done]:
        ready = [request for request in todo if not request.waits]
        assert ready, "all wait for each other"
        request = chance.choice(ready)  # type: ignore[attr-defined]
        (request.abort if chance.random() < 0.1 else request.step)()  # type: ignore[attr-defined]
        sizes = [request.size for request in requests]
        assert sum(sizes) <= 100 or sum(sizes) - max(sizes) <= 100
    assert budget.take(Request(budget, 1, 1), 100), "all the budget is free again"


def test_one_that_fits_passes_one_that_does_not() -> None:
    budget = MemoryBudget(100)
    first, large, small = (Request(budget, 1, size) for size in (60, 80, 30))
    first.step()
    large.step()
    small.step()
    assert large.waits
    assert small.answered
    first.step()
    assert large.waits
    small.step()
    assert large.answered


def test_nothing_goes_beyond_while_something_is_answered() -> None:
    budget = MemoryBudget(100)
    answered, one, other = Request(budget, 1, 90), Request(budget, 2, 50), Request(budget, 2, 50)
    answered.step()
    one.step()
    other.step()
    assert one.waits
    assert other.waits
    answered.step()
    assert not one.waits
    assert not other.waits
    one.step()
    other.step()
    assert one.answered, "nothing was answered: it goes on beyond the limit"
    assert other.waits
    one.step()
    assert other.answered
