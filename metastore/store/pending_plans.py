"""What table services that aren't completed yet are going to rewrite."""

from sqlalchemy import Connection, func, select

from metastore.store.schema import instant_plans, instants


def slices(tx: Connection, table_id: int, action: str) -> dict[tuple[str, str], str]:
    """The greatest timestamp of the pending instants of an action that are going to rewrite a file group.

    By partition and file group, of all that are in a plan.
    """
    query = (
        select(instant_plans.c.partition_name, instant_plans.c.file_group, func.max(instants.c.timestamp))
        .join(instants, instants.c.id == instant_plans.c.instant_id)
        .where(instants.c.table_id == table_id, instants.c.position.is_(None), instants.c.begun_as == action)
        .group_by(instant_plans.c.partition_name, instant_plans.c.file_group)
    )
    return {(row[0], row[1]): row[2] for row in tx.execute(query)}
