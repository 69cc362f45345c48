"""The checker of histories finds what it is for."""

from tests.metastore.cache.histories import History, Read, Write


def history(*reads: Read) -> History:
    """1 is written from 10 to 20, 2 from 30 on, and nobody knows whether it ever was."""
    one = History("x", 0)
    one.write(1)
    one._writes[1] = Write(10, 20)
    one.write(2)
    one._writes[2] = Write(30)
    one.reads.extend(reads)
    return one


def test_what_may_be() -> None:
    reads = [Read(0, 5, 0), Read(11, 12, 0), Read(11, 19, 1), Read(11, 25, 0), Read(21, 22, 1), Read(31, 40, 2)]
    assert history(*reads, Read(35, 45, 1)).errors() == []


def test_a_value_that_had_been_replaced() -> None:
    (error,) = history(Read(21, 22, 0)).errors()
    assert error == "x: 0 was read 1.000 s after it had been replaced"


def test_a_value_too_early() -> None:
    (error,) = history(Read(5, 8, 1)).errors()
    assert error == "x: 1 was read before it was written"


def test_a_value_that_nobody_wrote() -> None:
    (error,) = history(Read(5, 8, 7)).errors()
    assert error == "x: 7 was read, which nobody wrote"


def test_a_step_back() -> None:
    """Each of both alone would be right: the write was under way."""
    (error,) = history(Read(31, 32, 2), Read(33, 34, 1)).errors()
    assert error == "x: 1 was read after the value 1 later had been"
