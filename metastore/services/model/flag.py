"""The commit flag of a partition: whether its data is complete."""

from typing import NamedTuple


class Flag(NamedTuple):
    """`ready`: whether the partition is committed. `commit_time`: of the last commit, in milliseconds since 1970.

    An uncommitted partition with a commit time was reopened by somebody. It stays uncommitted until somebody commits
    it, whatever the watermark. One without a commit time becomes ready by the watermark; a partition that was reopened
    for late rows has none, either.
    """

    ready: bool
    commit_time: int | None = None
