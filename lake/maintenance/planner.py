"""Looks at tables: reads their facts, decides, and stores the decisions with the jobs that follow from them."""

from collections.abc import Mapping

from cachetools import LRUCache

from lake.maintenance.decisions import decisions, hudi, iceberg
from lake.maintenance.decisions.decisions import Decision
from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.policy import BadPolicy, Policy, policy_of
from lake.maintenance.queue import Queue
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import ServiceJob, TableReference, TableReplaced
from lake.tables.clustering import Order

KNOWN_POLICIES = 10_000
"""Tables whose policy is remembered, so that one call has the right figures at once."""


class Planner:
    """Decides about one table at a time. For one thread."""

    def __init__(
        self, queue: Queue, defaults: Mapping[str, str], *, with_iceberg: bool = False, with_hudi: bool = False
    ) -> None:
        """`defaults`: properties of tables and databases that don't say otherwise. `with_iceberg`, `with_hudi`: decides
        about Iceberg's and Hudi's tables, too. Raises BadPolicy."""
        self._queue = queue
        self._defaults = defaults
        self._policies: LRUCache[tuple[str | None, str | None], Policy] = LRUCache(KNOWN_POLICIES)
        self._usual = policy_of(defaults)
        self._with_iceberg = with_iceberg
        self._with_hudi = with_hudi

    def look(self, table: TableReference) -> list[ServiceJob]:
        """Decides about a table, and stores what was decided. Returns its pending jobs; none if the table is gone."""
        try:
            found, policy, facts = self.decide(table)
            again_at = decisions.again_at(found, facts.now)
            return self._queue.record(facts.reference, facts.position, found, policy, again_at)
        except (NoSuchObjectException, TableReplaced):
            return []

    def decide(self, table: TableReference) -> tuple[list[Decision], Policy | None, Facts]:
        """What is to be done to a table now, by which policy and facts. The policy is None if it means nothing.

        Raises NoSuchObjectException.
        """
        key = (table.database, table.table)
        policy = self._policies.get(key, self._usual)
        while True:
            facts = self._queue.facts(table, policy, _order(policy))
            try:
                wanted = policy_of(facts.parameters, facts.database_parameters, self._defaults)
            except BadPolicy as error:
                return [_refused(facts, error)], None, facts
            if (wanted.clustering, wanted.cleaning) == (policy.clustering, policy.cleaning):
                self._policies[key] = wanted
                return self._decided(facts, wanted), wanted, facts
            policy = wanted

    def _decided(self, facts: Facts, policy: Policy) -> list[Decision]:
        if self._with_hudi and hudi.is_hudi(facts):
            return hudi.decide(facts, policy)
        if not self._with_iceberg or not iceberg.is_iceberg(facts.parameters):
            return decisions.decide(facts, policy)
        try:
            metadata = iceberg.metadata_of(facts.parameters, facts.location)
            return iceberg.decide(facts, policy, iceberg.figures_of(metadata))
        except iceberg.UnreadableMetadata as error:
            return iceberg.unread(error)

    def policy(self, table: TableReference) -> Policy:
        """The policy of a table now. Raises BadPolicy, NoSuchObjectException."""
        facts = self._queue.facts(table, self._usual, None)
        return policy_of(facts.parameters, facts.database_parameters, self._defaults)


def _order(policy: Policy) -> bytes | None:
    return Order(policy.clustering.order_by, policy.clustering.curve).mark()


def _refused(facts: Facts, error: BadPolicy) -> Decision:
    service = decisions.COMPACTION if facts.keyed else decisions.CLUSTERING
    return Decision(service=service, reason=f"nothing is done to the table until its policy is mended: {error}")
