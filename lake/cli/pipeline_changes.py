"""Prints what changed definitions of layers come to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lake.cli.output import print_table

if TYPE_CHECKING:
    from lake.layers.applying.differing import LayerDifference, Row, Sample
    from lake.layers.applying.planning import LayerPlan
    from lake.layers.undo.revert import Revert

_COUNTS = ("inserted", "updated", "deleted")
_MOST = 60
"""Characters of a value that are shown."""


def print_plan(found: Sequence["LayerPlan"]) -> None:
    """Print what becomes of layers, but for those of which nothing is to be said, and how their texts differ."""
    shown = [
        each for each in found if each.changes or each.refused or each.rewrites or each.computes.value != "nothing"
    ]
    if not shown:
        click.echo("no definition has changed", err=True)
        return
    rows = []
    for each in shown:
        is_read = each.computes.value in ("all", "a range")
        what = [change.value for change in each.changes]
        rows.append(
            (
                each.layer,
                ", ".join(what),
                _computed(each),
                each.rows if is_read else None,
                each.bytes if is_read else None,
                len(each.below),
            )
        )
    print_table(("table", "changed", "computes", "reads rows", "reads bytes", "tables below"), rows)
    for each in shown:
        if each.difference:
            click.echo()
            click.echo(f"{each.layer}:")
            for line in each.difference:
                click.echo(line)
    for each in shown:
        if each.refused:
            click.echo(each.refused, err=True)
        elif each.asks:
            click.echo(f"{each.layer} is rewritten by apply, or by run --full-refresh {each.layer}", err=True)
        for name, value in each.keeps.items():
            click.echo(f"{each.layer} keeps {name} = {value or 'nothing'}, with which it was made", err=True)


def _computed(plan: "LayerPlan") -> str:
    if plan.since is not None:
        column, value = plan.since
        return f"{column} >= {value}"
    return "all, rewritten" if plan.rewrites else plan.computes.value


def print_revert(found: "Revert") -> None:
    """Print the definitions that come back, and how their rows do."""
    rows = [
        (each.layer, "reverted already" if each.since is None else f"{each.since.changed_at:%Y-%m-%d %H:%M:%S}")
        for each in found.layers
    ]
    print_table(("table", "changed at"), rows)
    for each in found.layers:
        click.echo()
        click.echo(f"{each.layer}:")
        for text in (*each.before.queries, *(f"{name}: {view}" for name, view in each.before.views.items())):
            click.echo(text)
        for one in each.before.conditions:
            click.echo(f"{one['name']}: EXPECT ({one['condition']}), {one['violation']}")
        for line in each.difference:
            click.echo(line)
    click.echo()
    if found.restored:
        click.echo(f"rolled back, and on by increments: {', '.join(each.layer for each in found.restored)}", err=True)
    elif any(each.since is not None for each in found.layers):
        click.echo(f"computed as a whole, since {found.why_whole}", err=True)
    for name in sorted(found.unapplied):
        click.echo(
            f"{name}: its file has yet another definition, which nobody has applied, and which stays so", err=True
        )
    for plan in found.applies:
        if plan.changes == ("new",):
            click.echo(f"{plan.layer} isn't there: the refresh makes it, and computes all", err=True)
            continue
        changes = ", ".join(change.value for change in plan.changes)
        click.echo(
            f"{plan.layer}: its file has another definition ({changes}), which nobody has applied: the refresh does so"
            f" too, and computes {_computed(plan)}",
            err=True,
        )


def print_differences(found: Sequence["LayerDifference"]) -> None:
    """Print how many rows of layers differ, and some of them."""
    if not found:
        click.echo("no definition has changed", err=True)
        return
    rows = [
        (
            each.layer,
            *((each.counts.get(name, 0) if each.counts is not None else None) for name in _COUNTS),
            ", ".join(each.uncompared),
        )
        for each in found
    ]
    print_table(("table", *_COUNTS, "columns not compared"), rows)
    for each in found:
        if each.samples:
            click.echo()
            click.echo(f"{each.layer}:")
            for sample in each.samples:
                click.echo(_sample(sample))
    for each in found:
        if each.rows is not None:
            click.echo(f"{each.layer} has another key now: {each.rows[0]:,} rows become {each.rows[1]:,}", err=True)
        if each.moved:
            click.echo(
                f"{each.layer}: {', '.join(each.moved)} read as now: the state is gone that its rows are of", err=True
            )


def _sample(sample: "Sample") -> str:
    """A plus and a row that comes, a minus and one that goes, or what changes in one that stays."""
    if sample.before is None or sample.now is None:
        sign, row = ("+", sample.now) if sample.before is None else ("-", sample.before)
        return f"{sign} {_row(row or {})}"
    before, now = sample.before, sample.now
    same = {name: value for name, value in now.items() if value == before[name]}
    changed = [f"{name}={_value(before[name])} -> {_value(now[name])}" for name in now if name not in same]
    return f"~ {', '.join([_row(same), *changed] if same else changed)}"


def _row(row: "Row") -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _value(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
