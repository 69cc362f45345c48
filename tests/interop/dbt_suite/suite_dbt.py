"""Tests that dbt's adapters share, on keyed tables and on tables with a timeline; and ours of what dbt writes."""

import pytest
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import BaseIncremental, BaseIncrementalNotSchemaChange
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowLimit
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.persist_docs.test_persist_docs import BasePersistDocs, BasePersistDocsColumnMissing
from dbt.tests.adapter.simple_seed.test_seed import BaseTestEmptySeed
from dbt.tests.adapter.store_test_failures_tests.basic import StoreTestFailuresAsInteractions
from dbt.tests.util import relation_from_name, run_dbt
from lake_plugin import Lake, LakeWithoutKey

MERGE = {"+incremental_strategy": "merge"}


class TestKeyedMaterializations(Lake, BaseSimpleMaterializations):
    pass


class TestKeyedTableMaterialization(Lake, BaseTableMaterialization):
    pass


class TestKeyedEmpty(Lake, BaseEmpty):
    pass


class TestKeyedEphemeral(Lake, BaseEphemeral):
    pass


class TestKeyedGenericTests(Lake, BaseGenericTests):
    pass


class TestKeyedSingularTests(Lake, BaseSingularTests):
    pass


class TestKeyedSingularTestsEphemeral(Lake, BaseSingularTestsEphemeral):
    pass


class TestKeyedIncremental(Lake, BaseIncremental):
    pass


class TestPlainNotSchemaChange(LakeWithoutKey, BaseIncrementalNotSchemaChange):
    pass


class TestKeyedAdapterMethod(Lake, BaseAdapterMethod):
    pass


class TestKeyedValidateConnection(Lake, BaseValidateConnection):
    pass


class TestKeyedShow(Lake, BaseShowLimit):
    pass


class TestKeyedPersistDocs(Lake, BasePersistDocs):
    pass


class TestKeyedPersistDocsColumnMissing(Lake, BasePersistDocsColumnMissing):
    pass


class TestPlainStoredFailures(LakeWithoutKey, StoreTestFailuresAsInteractions):
    pass


class TestPlainEmptySeed(LakeWithoutKey, BaseTestEmptySeed):
    pass


class TestKeyedSnapshotCheckCols(Lake, BaseSnapshotCheckCols):
    pass


class TestKeyedSnapshotTimestamp(Lake, BaseSnapshotTimestamp):
    pass


class TestKeyedSchemaChange(Lake, BaseIncrementalOnSchemaChange):
    pass


class TestMergedExcludeColumns(Lake, BaseMergeExcludeColumns):
    @pytest.fixture(scope="class")
    def project_config_update(self):
        return {"models": MERGE}


class TestPlainMaterializations(LakeWithoutKey, BaseSimpleMaterializations):
    pass


class TestPlainIncremental(LakeWithoutKey, BaseIncremental):
    pass


class TestPlainTableMaterialization(LakeWithoutKey, BaseTableMaterialization):
    pass


WRITTEN = """
{{{{ config(materialized='incremental', {config}) }}}}
select * from (
  {{% if is_incremental() %}} values (2, 'B', 'x'), (3, 'c', 'y')
  {{% else %}} values (1, 'a', 'x'), (2, 'b', 'x'), (4, 'd', 'z')
  {{% endif %}}
) as v(id, name, dt)
"""


class Writes(Lake):
    """A model of ours, run for two states of its source."""

    config = "incremental_strategy='append'"

    @pytest.fixture(scope="class")
    def models(self):
        return {"written.sql": WRITTEN.format(config=self.config)}

    def rows(self, project):
        relation = relation_from_name(project.adapter, "written")
        return [tuple(row) for row in project.run_sql(f"select id, name, dt from {relation} order by id", fetch="all")]

    def written(self, project):
        assert len(run_dbt(["run"])) == 1
        assert self.rows(project) == [(1, "a", "x"), (2, "b", "x"), (4, "d", "z")]
        assert len(run_dbt(["run"])) == 1
        return self.rows(project)


class TestAppendUpserts(Writes):
    """dbt's default strategy: an INSERT, which updates rows by their key."""

    def test_rows(self, project):
        assert self.written(project) == [(1, "a", "x"), (2, "B", "x"), (3, "c", "y"), (4, "d", "z")]


class TestMergeUpserts(Writes):
    config = "incremental_strategy='merge', unique_key='id'"

    def test_rows(self, project):
        assert self.written(project) == [(1, "a", "x"), (2, "B", "x"), (3, "c", "y"), (4, "d", "z")]


class TestOverwrittenPartitions(Writes):
    config = "incremental_strategy='insert_overwrite', partition_by='dt'"
    properties = {"primary-key": "id,dt"}

    def test_rows(self, project):
        assert self.written(project) == [(2, "B", "x"), (3, "c", "y"), (4, "d", "z")]


class TestOverwrittenPartitionsWithoutKey(Writes):
    config = "incremental_strategy='insert_overwrite', partition_by='dt'"
    properties = LakeWithoutKey.properties

    def test_rows(self, project):
        assert self.written(project) == [(2, "B", "x"), (3, "c", "y"), (4, "d", "z")]
