"""The plan generator: decides what is to be done to a table. Pure functions of facts and a policy.

They list no directory, ask nobody, and have no clock of their own: the time is one of the facts. Each decision says
why, with figures, also if nothing is to be done; and when time alone may change it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lake.maintenance.decisions.facts import Facts, Job, Plan
from lake.maintenance.decisions.policy import CleaningPolicy, ClusteringPolicy, CompactionPolicy, OrphansPolicy, Policy
from lake.protocol.formats.keyed_table import MERGE_ENGINE, MergeEngine, TableType, type_of

COMPACTION, CLUSTERING, CLEAN, PUBLISH = "compaction", "clustering", "clean", "publish"
ORPHANS, ICEBERG = "orphans", "iceberg"

FAILED_PAUSE = 6 * 3_600_000
"""Milliseconds for which a job that failed too often is left alone, unless somebody resumes it."""

FIRST_PAUSE, LONGEST_PAUSE = 60_000, 86_400_000
"""Milliseconds for which a table is left alone after its writers won once; that doubles each time, up to a day."""

BYTES_PER_SECOND = 50_000_000.0
"""How fast a job is thought to rewrite before the table has had one."""

LEAST_SECONDS = 1.0
"""What a job costs at least."""

HOUR = 3_600_000
"""Milliseconds."""

RATIO_FROM = 16 << 20
"""Bytes of log files from which on their ratio to the base files counts: a small table isn't merged at each commit."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is to be done by one service to a table; `action` is None for nothing.

    `gain`: files that readers, or storage, have less of. `cost`: in seconds, by what earlier jobs of the table took.
    `bytes`: to be read. `instant`: the plan that exists already. `again_at`: when time alone may change it, in
    milliseconds since 1970.
    """

    service: str
    action: str | None = None
    reason: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    gain: float | None = None
    cost: float | None = None
    bytes: int | None = None
    instant: str | None = None
    again_at: int | None = None


class _Pause(NamedTuple):
    """Why a service waits, whatever the figures say; until when, if time ends it."""

    reason: str
    until: int | None = None


def decide(facts: Facts, policy: Policy) -> list[Decision]:
    """One decision for each service that a table may need, and one for each plan that has no job."""
    if not facts.is_ours:
        what = f"its files are {facts.stored_as or 'of no known format'}: they are left to the programs that wrote them"
        return [Decision(service=COMPACTION if facts.keyed else CLUSTERING, reason=what)]
    rewriting = _compaction(facts, policy.compaction) if facts.keyed else _clustering(facts, policy.clustering)
    found = [rewriting, _cleaning(facts, policy.cleaning)]
    if facts.keyed and policy.publishing.commits is not None:
        found.append(_publishing(facts, policy.publishing.commits))
    if facts.keyed and policy.iceberg.every is not None:
        found.append(_showing(facts, policy.iceberg.every))
    if policy.orphans.enabled:
        found.append(removing_orphans(facts, policy.orphans))
    return [*_plans(facts, policy), *unless_held(found, facts, policy)]


def by_figures(facts: Facts, policy: Policy) -> list[Decision]:
    """What the figures of files and instants alone say of each service, whoever does it."""
    return [
        _compaction(facts, policy.compaction),
        _clustering(facts, policy.clustering),
        _cleaning(facts, policy.cleaning),
    ]


def unless_held(found: Sequence[Decision], facts: Facts, policy: Policy) -> list[Decision]:
    """The same decisions; in the place of those that must wait, that nothing is to be done for now."""
    return [_unless_held(each, facts, policy) for each in found]


def again_at(decisions: Sequence[Decision], now: int) -> int | None:
    """When to look at a table again without a commit, in milliseconds since 1970; None for never."""
    times = [each.again_at for each in decisions if each.again_at is not None]
    return max(min(times), now + 1_000) if times else None


def _plans(facts: Facts, policy: Policy) -> list[Decision]:
    """Plans that nobody runs, the oldest first. All of them are run, not the last one alone."""
    if not policy.enabled or facts.paused is not None:
        return []
    found = []
    for plan in sorted(facts.plans, key=lambda each: (each.timestamp, each.action)):
        if plan.action not in (COMPACTION, CLUSTERING) or plan.job_state in ("pending", "running"):
            continue
        figures = {"file_groups": plan.file_groups, "requested": plan.requested_at}
        held = _held_plan(plan, facts)
        if held is not None:
            found.append(
                Decision(
                    service=plan.action,
                    reason=f"plan {plan.timestamp}: {held.reason}",
                    figures=figures,
                    instant=plan.timestamp,
                    again_at=held.until,
                )
            )
            continue
        found.append(
            Decision(
                service=plan.action,
                action=plan.action,
                reason=f"plan {plan.timestamp} isn't completed, and nobody is to run it",
                figures=figures,
                gain=float(plan.file_groups),
                cost=LEAST_SECONDS,
                instant=plan.timestamp,
            )
        )
    return found


def _held_plan(plan: Plan, facts: Facts) -> _Pause | None:
    if plan.state == "inflight" and plan.job_state is None:
        return _Pause("somebody runs it who isn't this service")
    if plan.job_state is None or _is_resumed(facts, plan.job_finished_at):
        return None
    if plan.job_state == "cancelled":
        return _Pause("its job was cancelled. Submit it, abort the plan, or resume the table's services")
    if plan.job_state == "failed" and (until := (plan.job_finished_at or 0) + FAILED_PAUSE) > facts.now:
        return _Pause("its job failed too often and is set aside. Its log says why; submit it, or resume", until)
    return None


def _is_resumed(facts: Facts, at: int | None) -> bool:
    return facts.resumed_at is not None and facts.resumed_at >= (at or 0)


def _unless_held(decision: Decision, facts: Facts, policy: Policy) -> Decision:
    """The same decision, or that nothing is to be done for now, whatever the figures say."""
    if decision.action is None:
        return decision
    held = _held(decision.service, facts, policy)
    if held is None:
        return decision
    return Decision(
        service=decision.service,
        reason=f"{held.reason}. It is due: {decision.reason}",
        figures=decision.figures,
        again_at=held.until,
    )


def _held(service: str, facts: Facts, policy: Policy) -> _Pause | None:
    if not policy.enabled:
        return _Pause("table-services.enabled is false")
    if facts.paused is not None:
        return _Pause(f"paused: {facts.paused}")
    own = [each for each in facts.jobs if each.action == service]
    if running := next((each for each in own if each.state == "running"), None):
        return _Pause(f"job {running.id} runs")
    ended = [each for each in own if each.state in ("succeeded", "failed", "cancelled")]
    if not ended or any(each.state == "pending" for each in own) or _is_resumed(facts, ended[0].finished_at):
        return None
    return _after(ended, facts.now)


def _after(ended: Sequence[Job], now: int) -> _Pause | None:
    """Whether to wait after jobs that ended in vain, the latest first."""
    last = ended[0]
    losses = 0
    for each in ended:
        if each.outcome != "conflict":
            break
        losses += 1
    if losses:
        pause = min(FIRST_PAUSE << min(losses - 1, 20), LONGEST_PAUSE)
        if (until := (last.finished_at or 0) + pause) > now:
            return _Pause(f"writers won {losses} times in a row", until)
    elif last.state == "failed" and last.instant is None and (until := (last.finished_at or 0) + FAILED_PAUSE) > now:
        return _Pause(f"job {last.id} failed too often and is set aside. Its log says why; submit, or resume", until)
    return None


def _compaction(facts: Facts, policy: CompactionPolicy) -> Decision:
    ratio = facts.log_bytes / facts.merged_bytes if facts.merged_bytes else None
    age = None if facts.oldest_log_at is None else max(0, facts.now - facts.oldest_log_at)
    figures = {
        "delta_commits": facts.delta_commits,
        "log_files": facts.log_files,
        "log_bytes": facts.log_bytes,
        "log_ratio": None if ratio is None else round(ratio, 4),
        "log_age_seconds": None if age is None else age // 1000,
        "buckets": facts.log_groups,
    }
    if not policy.enabled:
        return Decision(service=COMPACTION, reason="compaction.enabled is false", figures=figures)
    if not facts.log_files:
        return Decision(service=COMPACTION, reason="there are no log files that no plan merges", figures=figures)
    reached = [
        text
        for is_reached, text in (
            (facts.delta_commits >= policy.delta_commits, f"{facts.delta_commits} delta commits"),
            (facts.log_bytes >= policy.log_bytes, f"log files of {facts.log_bytes} bytes"),
            (
                facts.log_bytes >= RATIO_FROM and ratio is not None and ratio >= policy.log_ratio,
                f"log files are {ratio or 0:.0%} of the base files",
            ),
            (age is not None and age >= policy.log_age, f"the oldest log file is {(age or 0) // 1000} s old"),
        )
        if is_reached
    ]
    if not reached:
        older = None if facts.oldest_log_at is None else facts.oldest_log_at + policy.log_age
        what = f"{facts.delta_commits} of {policy.delta_commits} delta commits, {facts.log_bytes} bytes of log files"
        return Decision(service=COMPACTION, reason=f"too little to merge: {what}", figures=figures, again_at=older)
    size = facts.log_bytes + facts.merged_bytes
    return Decision(
        service=COMPACTION,
        action=COMPACTION,
        reason=", ".join(reached),
        figures=figures,
        gain=float(facts.log_files),
        cost=cost_of(size, COMPACTION, facts.jobs),
        bytes=size,
    )


def _clustering(facts: Facts, policy: ClusteringPolicy) -> Decision:
    fewer = facts.small_files - facts.small_become
    ratio = facts.unordered_bytes / facts.base_bytes if facts.base_bytes and policy.order_by else 0.0
    figures = {
        "files": facts.base_files,
        "small_files": facts.small_files,
        "fewer_files": fewer,
        "small_bytes": facts.small_bytes,
        "unordered_files": facts.unordered_files,
        "unordered_ratio": round(ratio, 4),
    }
    if not policy.enabled:
        return Decision(service=CLUSTERING, reason="clustering.enabled is false", figures=figures)
    unordered = bool(facts.unordered_files) and ratio > 0 and ratio >= policy.unordered_ratio
    if fewer < policy.fewer_files and not unordered:
        what = f"{facts.small_files} small files would become {facts.small_become}"
        return Decision(service=CLUSTERING, reason=f"{what}: {fewer} fewer, of {policy.fewer_files}", figures=figures)
    reached = []
    if fewer >= policy.fewer_files:
        reached.append(f"{facts.small_files} small files become {facts.small_become}")
    if unordered:
        reached.append(f"{ratio:.0%} of the bytes aren't sorted by {', '.join(policy.order_by)}")
    size = max(facts.small_bytes, facts.unordered_bytes if unordered else 0)
    return Decision(
        service=CLUSTERING,
        action=CLUSTERING,
        reason=", ".join(reached),
        figures=figures,
        gain=float(max(fewer, facts.unordered_files if unordered else 0)),
        cost=cost_of(size, CLUSTERING, facts.jobs),
        bytes=size,
    )


def _cleaning(facts: Facts, policy: CleaningPolicy) -> Decision:
    figures = {"files": facts.clean_files, "bytes": facts.clean_bytes}
    if not policy.enabled:
        return Decision(service=CLEAN, reason="clean.enabled is false", figures=figures)
    keeps = (("commits", policy.commits), ("hours", policy.hours), ("versions", policy.versions))
    kept = next(f"the latest {number} {name}" for name, number in keeps if number is not None)
    if facts.clean_files < policy.files:
        due = None
        if policy.hours is not None and facts.oldest_superseded_at is not None:
            # The files that were superseded next follow one after another: an hour later there may be enough.
            due = max(facts.oldest_superseded_at + policy.hours * HOUR, facts.now + HOUR)
        what = f"{facts.clean_files} files that {kept} don't need, of {policy.files}"
        return Decision(service=CLEAN, reason=f"too little to delete: {what}", figures=figures, again_at=due)
    return Decision(
        service=CLEAN,
        action=CLEAN,
        reason=f"{facts.clean_files} files that {kept} don't need",
        figures=figures,
        gain=float(facts.clean_files),
        cost=LEAST_SECONDS,
        bytes=0,
    )


def removing_orphans(facts: Facts, policy: OrphansPolicy) -> Decision:
    """Whether it is time to look for orphan files: the figures don't say whether there are any."""
    last = facts.orphans_removed_at
    figures = {"hours": policy.hours, "removed": last}
    if last is not None and last + policy.every > facts.now:
        passed = (facts.now - last) // 1000
        what = f"it was looked for orphan files {passed} s ago, and is each {policy.every // 1000} s"
        return Decision(service=ORPHANS, reason=what, figures=figures, again_at=last + policy.every)
    return Decision(
        service=ORPHANS,
        action=ORPHANS,
        reason="it was never looked for orphan files" if last is None else "it is time to look for orphan files",
        figures=figures,
        gain=0.0,
        cost=cost_of(0, ORPHANS, facts.jobs),
        bytes=0,
    )


def _publishing(facts: Facts, after: int) -> Decision:
    """`after`: so many commits."""
    partitions, commits = facts.unpublished_partitions, facts.unpublished_commits
    figures = {"partitions": partitions, "commits": commits}
    if not partitions:
        what = "Hive has the latest rows, but for partitions that have to be compacted before"
        return Decision(service=PUBLISH, reason=what, figures=figures)
    what = f"{commits} commits that Hive doesn't see, of {after}"
    if commits < after:
        return Decision(service=PUBLISH, reason=f"too little to publish: {what}", figures=figures)
    return Decision(
        service=PUBLISH,
        action=PUBLISH,
        reason=what,
        figures=figures,
        gain=float(partitions),
        cost=LEAST_SECONDS,
        bytes=0,
    )


def _showing(facts: Facts, every: int) -> Decision:
    """Whether log files are to be merged for Iceberg's readers. `every`: how often, in milliseconds."""
    last = max((each.finished_at or 0 for each in facts.jobs if (each.action, each.state) == _SHOWN), default=None)
    figures = {"log_files": facts.log_files, "buckets": facts.log_groups, "merged": last}
    kind = type_of(facts.parameters)
    engine = facts.parameters.get(MERGE_ENGINE, "").strip().lower() or str(MergeEngine.DEDUPLICATE)
    if kind != TableType.MERGE_ON_READ:
        return Decision(service=ICEBERG, reason="the table has no log files to merge", figures=figures)
    if engine != MergeEngine.DEDUPLICATE:
        what = f"the merge engine is {engine}: Iceberg's readers see what is compacted"
        return Decision(service=ICEBERG, reason=what, figures=figures)
    if not facts.log_files:
        return Decision(service=ICEBERG, reason="there are no log files to merge", figures=figures)
    if last is not None and last + every > facts.now:
        what = f"log files were merged {(facts.now - last) // 1000} s ago, and are each {every // 1000} s"
        return Decision(service=ICEBERG, reason=what, figures=figures, again_at=last + every)
    size = facts.log_bytes + facts.merged_bytes
    return Decision(
        service=ICEBERG,
        action=ICEBERG,
        reason=f"Iceberg's readers may not see the rows of {facts.log_files} log files",
        figures=figures,
        gain=float(facts.log_groups),
        cost=cost_of(size, ICEBERG, facts.jobs),
        bytes=size,
    )


_SHOWN = (ICEBERG, "succeeded")


def cost_of(size: int, action: str, jobs: Sequence[Job]) -> float:
    """The seconds that rewriting so many bytes takes, by what the table's earlier jobs of that action took."""
    known = [(each.bytes, each.cost) for each in jobs if each.action == action and each.state == "succeeded"]
    read = sum(size or 0 for size, cost in known if cost)
    took = sum(cost or 0.0 for size, cost in known if size)
    speed = read / took if read and took > 0 else BYTES_PER_SECOND
    return max(LEAST_SECONDS, size / speed)
