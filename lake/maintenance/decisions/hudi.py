"""Hudi's tables: what is decided from their imported timeline. Hudi's own procedures do the work."""

from dataclasses import replace

from lake.maintenance.decisions import decisions
from lake.maintenance.decisions.decisions import CLEAN, CLUSTERING, COMPACTION, HOUR, Decision
from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.policy import Policy

PAUSE = HOUR
"""Milliseconds after a clustering or a clean: Hudi's plans have bounds of their own, and may leave something over."""


def is_hudi(facts: Facts) -> bool:
    """Whether Hudi writes a table."""
    kinds = f"{facts.stored_as} {facts.input_format}".lower()
    return "hudi" in kinds or "hoodie" in kinds


def decide(facts: Facts, policy: Policy) -> list[Decision]:
    """What is due for a Hudi table, by the instants and files that the metastore knows of it."""
    if not facts.position:
        what = "the metastore doesn't know its timeline: run `metastore hudi import`, or set Hudi's commit callback"
        return [Decision(service=CLEAN, reason=what)]
    # Its files don't say how they are sorted: small files alone make a clustering due.
    unsorted = replace(policy, clustering=replace(policy.clustering, order_by=()))
    found = [_paused(_planned(each, facts), facts) for each in decisions.by_figures(facts, unsorted)]
    return decisions.unless_held(found, facts, policy)


def _planned(decision: Decision, facts: Facts) -> Decision:
    """The same; if a compaction's plan waits, that it is to be run. None is named: the job asks Hudi."""
    waiting = [each for each in facts.plans if each.action == decision.service == COMPACTION]
    begun = [each.timestamp for each in waiting if each.state != "requested"]
    requested = [each for each in waiting if each.state == "requested"]
    figures = {**decision.figures, "plans": len(waiting)}
    if requested:
        return replace(
            decision,
            action=COMPACTION,
            reason=f"plan {requested[0].timestamp} waits on Hudi's timeline",
            figures=figures,
            gain=float(sum(each.file_groups for each in requested)),
            cost=decisions.LEAST_SECONDS if decision.cost is None else decision.cost,
        )
    if begun and decision.action is not None:
        what = f"somebody runs the plan {begun[0]}, or died of it. It is due: {decision.reason}"
        return Decision(service=decision.service, reason=what, figures=figures)
    return decision


def _paused(decision: Decision, facts: Facts) -> Decision:
    """The same; or that nothing is to be done, soon after a job that found all that Hudi wanted to do."""
    if decision.action not in (CLUSTERING, CLEAN):
        return decision
    jobs = (each for each in facts.jobs if each.action == decision.action and each.state == "succeeded")
    again = max((each.finished_at or 0 for each in jobs), default=-PAUSE) + PAUSE
    if again <= facts.now:
        return decision
    what = f"the last one ended less than {PAUSE // 60_000} minutes ago. It is due: {decision.reason}"
    return Decision(service=decision.service, reason=what, figures=decision.figures, again_at=again)


def writer_options(action: str, policy: Policy) -> dict[str, str]:
    """Hudi's options for what a policy says. Nothing is done beside the one service that was asked for."""
    options = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clustering.inline": "false",
        "hoodie.clustering.enable.expirations": "false",
    }
    if action == COMPACTION:
        # The decision is made: else Hudi's own trigger would count once more.
        options["hoodie.compact.inline.max.delta.commits"] = "1"
        options["hoodie.compact.inline.trigger.strategy"] = "NUM_COMMITS"
    if action == CLUSTERING:
        clustering = policy.clustering
        strategy = "hoodie.clustering.plan.strategy"
        options[f"{strategy}.target.file.max.bytes"] = str(clustering.target_file_bytes)
        options[f"{strategy}.small.file.limit"] = str(clustering.small_file_bytes)
        options[f"{strategy}.single.group.clustering.enabled"] = str(bool(clustering.order_by)).lower()
        if clustering.order_by:
            options[f"{strategy}.sort.columns"] = ",".join(clustering.order_by)
    if action == CLEAN:
        cleaning = policy.cleaning
        kinds = (
            ("KEEP_LATEST_COMMITS", "commits", cleaning.commits),
            ("KEEP_LATEST_BY_HOURS", "hours", cleaning.hours),
            ("KEEP_LATEST_FILE_VERSIONS", "fileversions", cleaning.versions),
        )
        for name, kind, number in kinds:
            if number is not None:
                options["hoodie.cleaner.policy"] = name
                options[f"hoodie.cleaner.{kind}.retained"] = str(number)
    return options
