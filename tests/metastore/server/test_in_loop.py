"""Calls that an event loop makes itself: they are suspended while the other side works, and hold up nobody."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from metastore import in_loop
from metastore.in_loop import LoopCall, NeedsThread

Scene = Callable[[asyncio.AbstractEventLoop], Awaitable[None]]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A socket that doesn't block, and its other side."""
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there:
        yield here, there


def run(scene: Scene) -> None:
    async def begin() -> None:
        await scene(asyncio.get_running_loop())

    asyncio.run(asyncio.wait_for(begin(), 20))


def line(data: bytes) -> bytes | None:
    return data if data.endswith(b"\n") else None


def begun(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> "asyncio.Future[object]":
    """A call that has begun: its result, or None if it needs a thread."""
    future = loop.create_future()
    LoopCall(loop, work, future.set_result, lambda _: future.set_result(None)).begin()
    return future


def asking(connection: socket.socket, question: bytes) -> bytes:
    call = in_loop.current()
    assert call is not None
    return call.exchange(connection.fileno(), question, line)


def test_an_answer_that_comes_in_pieces(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair

    async def scene(loop: asyncio.AbstractEventLoop) -> None:
        result = begun(loop, lambda: asking(here, b"question"))
        for piece in (b"an", b"sw", b"er\n"):
            await asyncio.sleep(0.01)
            assert not result.done()
            there.send(piece)
        assert await result == b"answer\n"
        assert there.recv(100) == b"question"
        assert not loop.remove_reader(here.fileno())  # nobody listens any more

    run(scene)


def test_calls_go_on_as_their_answers_come(pair: tuple[socket.socket, socket.socket]) -> None:
    others = [socket.socketpair() for _ in range(3)]

    async def scene(loop: asyncio.AbstractEventLoop) -> None:
        for here, _ in others:
            here.setblocking(False)
        results = [begun(loop, lambda here=here: asking(here, b"question")) for here, _ in others]  # type: ignore[misc]
        for number in (2, 0, 1):
            others[number][1].send(b"%d\n" % number)
            assert await results[number] == b"%d\n" % number
        assert all(result.done() for result in results)

    run(scene)
    for here, there in others:
        here.close()
        there.close()


def test_a_message_that_is_longer_than_the_socket_takes(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    message = b"x" * (4 << 20)

    def read() -> int:
        left = len(message)
        while left:
            left -= len(there.recv(1 << 20))
        return there.send(b"answer\n")

    async def scene(loop: asyncio.AbstractEventLoop) -> None:
        reading = loop.run_in_executor(None, read)
        assert await begun(loop, lambda: asking(here, message)) == b"answer\n"
        await reading

    run(scene)


def test_what_would_wait_needs_a_thread(pair: tuple[socket.socket, socket.socket]) -> None:
    in_loop.before_waiting()  # in a thread it may

    def work() -> str:
        try:
            in_loop.before_waiting()
        except Exception:
            return "it was taken for an error"
        return "it may wait"

    async def scene(loop: asyncio.AbstractEventLoop) -> None:
        assert await begun(loop, work) is None

    run(scene)


def test_nothing_is_made_again_once_it_may_have_been_done(pair: tuple[socket.socket, socket.socket]) -> None:
    """What follows the commit may wait: to make the call again would do it twice."""
    here, there = pair

    def work() -> bytes:
        answer = asking(here, b"question")
        in_loop.before_waiting()
        return answer

    def rolled_back() -> bytes:
        asking(here, b"question")
        call = in_loop.current()
        assert call is not None
        raise call.undone()

    async def scene(loop: asyncio.AbstractEventLoop) -> None:
        there.send(b"answer\n")
        assert await begun(loop, work) == b"answer\n"
        there.send(b"answer\n")
        assert await begun(loop, rolled_back) is None

    run(scene)


def test_the_other_side_goes_away(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair

    def work() -> str:
        with pytest.raises(EOFError):
            asking(here, b"question")
        return "it did"

    async def scene(loop: asyncio.AbstractEventLoop) -> None:
        result = begun(loop, work)
        await asyncio.sleep(0.01)
        there.send(b"half an ans")
        there.recv(100)
        there.close()
        assert await result == "it did"
        assert not loop.remove_reader(here.fileno())

    run(scene)


def test_needs_thread_is_raised_for_the_loop_alone() -> None:
    assert not issubclass(NeedsThread, Exception)
    assert in_loop.current() is None
