"""Reports of engines about their scans and commits, as the figures that the metastore keeps for its table services."""

from typing import Any

from lake.protocol.lake import EngineFigures

_MOST = 1 << 50  # what a worker takes
_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}


def figures(report: dict[str, Any]) -> EngineFigures | None:
    """The figures of one report; None for one that says nothing."""
    metrics = report.get("metrics")
    if not isinstance(metrics, dict):
        return None
    none = EngineFigures(scans=0, files=0, deleteFiles=0, bytes=0, planningMs=0, commits=0, attempts=0)
    match report.get("report-type"):
        case "scan-report":
            return none.replace(
                scans=1,
                files=_count(metrics, "result-data-files"),
                deleteFiles=_count(metrics, "result-delete-files"),
                bytes=_count(metrics, "total-file-size-in-bytes"),
                planningMs=_milliseconds(metrics, "total-planning-duration"),
            )
        case "commit-report":
            return none.replace(commits=1, attempts=max(1, _count(metrics, "attempts")))
    return None


def _count(metrics: dict[str, Any], name: str) -> int:
    found = metrics.get(name)
    value = found.get("value") if isinstance(found, dict) else None
    return _bounded(value) if isinstance(value, int) else 0


def _milliseconds(metrics: dict[str, Any], name: str) -> int:
    found = metrics.get(name)
    value = found.get("total-duration") if isinstance(found, dict) else None
    unit = _NANOSECONDS.get(str(found.get("time-unit")).lower(), 0) if isinstance(found, dict) else 0
    return _bounded(value * unit // 1_000_000) if isinstance(value, int) else 0


def _bounded(value: int) -> int:
    return min(max(value, 0), _MOST)
