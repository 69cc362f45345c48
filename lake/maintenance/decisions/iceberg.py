"""Iceberg's tables: what their metadata file says, and what is decided from it. Their own procedures do the work.

The metastore has the place of the metadata file alone. The file has the table's snapshots with their summaries, so that
nothing is listed here, either. https://iceberg.apache.org/spec/#table-metadata-fields
"""

import gzip
import io
import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import fsspec

from lake.maintenance.decisions import decisions
from lake.maintenance.decisions.decisions import CLEAN, CLUSTERING, Decision
from lake.maintenance.decisions.facts import Facts
from lake.maintenance.decisions.policy import CleaningPolicy, ClusteringPolicy, Policy

TABLE_TYPE, METADATA_LOCATION = "table_type", "metadata_location"
"""Properties that Iceberg gives its tables in Hive's metastore."""

UUID = "uuid"
"""One more of these: Iceberg's own id of the table, which its metadata has, too. Not all clients set it."""

MAX_METADATA_BYTES = 64 << 20
"""The largest metadata file that is read, unpacked."""

_COMPACTED = ".gz.metadata.json"


class UnreadableMetadata(Exception):
    """A table's metadata file can't be read; the message says why."""


class Figures(NamedTuple):
    """What a metadata file says. Times in milliseconds since 1970, sizes in bytes.

    `added`: when data files were added, and how many, by snapshot. `rewritten_at`: of the latest snapshot that replaced
    files and kept the rows; 0 without one. `expirable_at`: the times of snapshots that no branch or tag begins with.
    """

    files: int
    size: int
    delete_files: int
    snapshots: int
    added: Collection[tuple[int, int]]
    rewritten_at: int
    expirable_at: Collection[int]


def is_iceberg(parameters: Mapping[str, str]) -> bool:
    """Whether a table with these properties is Iceberg's."""
    return parameters.get(TABLE_TYPE, "").lower() == "iceberg"


def metadata_of(parameters: Mapping[str, str], location: str) -> Mapping[str, Any]:
    """A table's metadata. Raises UnreadableMetadata.

    Properties are a client's, so a file anywhere else than in the table's own directory isn't read.
    """
    place = parameters.get(METADATA_LOCATION, "")
    # fsspec reads `a::b` as a place within another one.
    if not place.startswith(f"{location.rstrip('/')}/metadata/") or "/../" in place or "::" in place:
        raise UnreadableMetadata(f"its metadata_location {place!r} is not below {location}/metadata")
    try:
        with fsspec.open(place, "rb") as file:
            data = file.read(MAX_METADATA_BYTES + 1)
        if place.endswith(_COMPACTED):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(MAX_METADATA_BYTES + 1)
        if len(data) > MAX_METADATA_BYTES:
            raise UnreadableMetadata(f"its metadata file {place} has more than {MAX_METADATA_BYTES} bytes")
        found = json.loads(data)
    except (OSError, ValueError, EOFError, ImportError) as error:
        raise UnreadableMetadata(f"its metadata file {place} can't be read: {error}") from None
    if not isinstance(found, dict):
        raise UnreadableMetadata(f"its metadata file {place} is no table's")
    return found


def why_not_alone(facts: Facts) -> str | None:
    """Why orphan files can't be told from others' in a table's directory; None if they can. Raises UnreadableMetadata.

    `facts.shared` must have been asked for. What is listed is the place that the metastore knows of, so Iceberg's own
    metadata must not have another.
    """
    if facts.shared is not False:
        return f"{facts.location} holds, or lies in, the directory of another table, partition or database"
    place = str(metadata_of(facts.parameters, facts.location).get("location", ""))
    if place.rstrip("/") != facts.location.rstrip("/"):
        return f"Iceberg's metadata says that the table lies at {place!r}, and the metastore {facts.location!r}"
    return None


def figures_of(metadata: Mapping[str, Any]) -> Figures:
    """What a metadata file says of its snapshots. Raises UnreadableMetadata for one of another form."""
    try:
        snapshots = {int(each["snapshot-id"]): each for each in metadata.get("snapshots") or ()}
        times = {number: int(each["timestamp-ms"]) for number, each in snapshots.items()}
        summaries = {number: dict(each.get("summary") or {}) for number, each in snapshots.items()}
        current = metadata.get("current-snapshot-id")
        latest = summaries.get(int(-1 if current is None else current), {})
        heads = {int(each["snapshot-id"]) for each in (metadata.get("refs") or {}).values()}
        heads.add(int(-1 if current is None else current))
        added = [(times[number], int(each.get("added-data-files", 0))) for number, each in summaries.items()]
        rewritten = [times[number] for number, each in summaries.items() if each.get("operation") == "replace"]
        return Figures(
            files=int(latest.get("total-data-files", 0)),
            size=int(latest.get("total-files-size", 0)),
            delete_files=int(latest.get("total-delete-files", 0)),
            snapshots=len(snapshots),
            added=added,
            rewritten_at=max(rewritten, default=0),
            expirable_at=sorted(time for number, time in times.items() if number not in heads),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableMetadata(f"its metadata file has another form: {type(error).__name__} {error}") from None


def decide(facts: Facts, policy: Policy, figures: Figures) -> list[Decision]:
    """What is due for an Iceberg table: rewriting small files, expiring snapshots, and removing orphan files."""
    found = [_rewriting(facts, policy.clustering, figures), _expiry(facts, policy.cleaning, figures)]
    if policy.orphans.enabled:
        found.append(decisions.removing_orphans(facts, policy.orphans))
    return decisions.unless_held(found, facts, policy)


def unread(error: UnreadableMetadata) -> list[Decision]:
    """That nothing is decided, and why."""
    return [Decision(service=CLUSTERING, reason=f"nothing is done to the table: {error}")]


def _rewriting(facts: Facts, policy: ClusteringPolicy, figures: Figures) -> Decision:
    """The summaries don't say how files are spread over partitions: what came since the last rewriting counts."""
    done = [each.finished_at or 0 for each in facts.jobs if each.action == CLUSTERING and each.state == "succeeded"]
    since = max([figures.rewritten_at, *done])
    new = sum(files for time, files in figures.added if time > since)
    fewer = min(new, figures.files - max(1, -(-figures.size // policy.target_file_bytes))) if figures.files else 0
    average = figures.size // figures.files if figures.files else 0
    numbers = {
        "files": figures.files,
        "bytes": figures.size,
        "delete_files": figures.delete_files,
        "new_files": new,
        "fewer_files": max(0, fewer),
        "scans": facts.scans,
        "files_per_scan": facts.scanned_files // facts.scans if facts.scans else 0,
        "delete_files_per_scan": facts.scanned_delete_files // facts.scans if facts.scans else 0,
    }
    if not policy.enabled:
        return Decision(service=CLUSTERING, reason="clustering.enabled is false", figures=numbers)
    if fewer < policy.fewer_files or average >= policy.small_file_bytes:
        what = f"{new} files came since the last rewriting, of {average} bytes in the mean of all"
        return Decision(
            service=CLUSTERING, reason=f"{what}: {max(0, fewer)} fewer, of {policy.fewer_files}", figures=numbers
        )
    return Decision(
        service=CLUSTERING,
        action=CLUSTERING,
        reason=f"{new} files came since the last rewriting, and files have {average} bytes in the mean",
        figures=numbers,
        gain=float(fewer),
        cost=decisions.cost_of(figures.size, CLUSTERING, facts.jobs),
        bytes=figures.size,
    )


def _expiry(facts: Facts, policy: CleaningPolicy, figures: Figures) -> Decision:
    numbers = {"snapshots": figures.snapshots}
    if not policy.enabled:
        return Decision(service=CLEAN, reason="clean.enabled is false", figures=numbers)
    if policy.versions is not None:
        what = "clean.versions-retained means nothing to Iceberg: give clean.commits-retained or clean.hours-retained"
        return Decision(service=CLEAN, reason=what, figures=numbers)
    if policy.commits is not None:
        old = max(0, figures.snapshots - policy.commits)
        kept, due = f"the latest {policy.commits} snapshots", None
    else:
        horizon = facts.now - (policy.hours or 0) * decisions.HOUR
        old = sum(time < horizon for time in figures.expirable_at)
        kept = f"those of the latest {policy.hours} hours"
        later = [time for time in figures.expirable_at if time >= horizon]
        due = min(later) + (policy.hours or 0) * decisions.HOUR + 1 if later else None
    old = min(old, len(figures.expirable_at))
    if old < policy.files:
        what = f"{old} snapshots beside {kept}, of {policy.files}"
        due = None if due is None else max(due, facts.now + decisions.HOUR)
        return Decision(service=CLEAN, reason=f"too few to expire: {what}", figures=numbers, again_at=due)
    return Decision(
        service=CLEAN,
        action=CLEAN,
        reason=f"{old} snapshots beside {kept}",
        figures=numbers,
        gain=float(old),
        cost=decisions.LEAST_SECONDS,
        bytes=0,
    )
