"""The plans of open table services."""

from collections.abc import Collection

from sqlalchemy import Connection, func, select, tuple_

from metastore.store.schema.timeline import instant_plans, instants

AT_ONCE = 1_000
"""File groups that one statement names."""


def slices(
    tx: Connection, table_id: int, action: str, groups: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """The greatest timestamp of the open instants of an action that plan to rewrite a file group.

    By (partition, file group), for those of some file groups that are in a plan.
    """
    query = (
        select(instant_plans.c.partition_name, instant_plans.c.file_group, func.max(instants.c.timestamp))
        .join(instants, instants.c.id == instant_plans.c.instant_id)
        .where(instants.c.table_id == table_id, instants.c.position.is_(None), instants.c.begun_as == action)
        .group_by(instant_plans.c.partition_name, instant_plans.c.file_group)
    )
    found: dict[tuple[str, str], str] = {}
    wanted = sorted(groups)
    for start in range(0, len(wanted), AT_ONCE):
        pairs = tuple_(instant_plans.c.partition_name, instant_plans.c.file_group).in_(wanted[start : start + AT_ONCE])
        found.update({(row[0], row[1]): row[2] for row in tx.execute(query.where(pairs))})
    return found
