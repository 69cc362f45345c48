"""Requests that clients may send again: what became of each is kept by its key, and told to who sends it again."""

from datetime import timedelta
from uuid import UUID

from lake.protocol.hive import MetaException
from lake.protocol.lake import RequestKey, RequestOutcome
from metastore.services.access.caller import Caller
from metastore.store import Database
from metastore.store.access import request_keys
from metastore.store.access.request_keys import Claim

KEPT = timedelta(hours=1)
"""How long it is kept what became of a request, at least. Clients are told half of it."""

MAX_ANSWER = 65_536
"""Characters of an answer that is kept."""

_DIGEST_BYTES = 32


class RepeatedRequests:
    """What is kept of requests, by caller and key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, caller: Caller, request: RequestKey) -> tuple[Claim, RequestOutcome]:
        """What changes are to be noted by, and what became of the request before. Raises MetaException."""
        claim = _claim(caller, request)
        return claim, self.outcome(claim)

    def outcome(self, claim: Claim) -> RequestOutcome:
        """What became of a request; nothing is set if nothing is kept."""
        with self._database.at_once() as tx:
            found = request_keys.find(tx, claim.caller, claim.key)
        if found is None:
            return RequestOutcome()
        if found.digest != claim.digest:
            return RequestOutcome(other=True)
        return RequestOutcome(refusal=found.refusal, table=found.table_id, answer=found.answer, done=True)

    def refuse(self, claim: Claim, status: int, answer: str) -> RequestOutcome:
        """Keeps that a request was refused, and returns what is kept: it may have been done meanwhile."""
        if len(answer) > MAX_ANSWER:
            raise MetaException(f"an answer of {len(answer):,} characters is longer than {MAX_ANSWER:,}")
        with self._database.write() as tx:
            request_keys.keep_refusal(tx, claim, status, answer)
        return self.outcome(claim)

    def sweep(self) -> None:
        """Forgets what is old."""
        removed = 1
        while removed:
            with self._database.write() as tx:
                removed = request_keys.forget(tx, KEPT)


def _claim(caller: Caller, request: RequestKey) -> Claim:
    digest, answer = request.digest or b"", request.answer
    if len(digest) != _DIGEST_BYTES:
        raise MetaException(f"the digest of a request has {_DIGEST_BYTES} bytes, not {len(digest)}")
    if answer is not None and len(answer) > MAX_ANSWER:
        raise MetaException(f"an answer of {len(answer):,} characters is longer than {MAX_ANSWER:,}")
    try:
        key = UUID(request.key or "")
    except ValueError:
        raise MetaException(f"the key of a request is a UUID, not {(request.key or '')[:60]!r}") from None
    return Claim(caller.user or "", key, digest, answer)
