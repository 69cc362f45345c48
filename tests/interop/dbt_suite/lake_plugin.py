"""What the tests that dbt's adapters share need to run here: a session, and what makes a table one of ours.

A plugin of pytest in the environment that has dbt. Spark's settings are in `spark-defaults.conf`, as for any session.
"""

import os
import tempfile

import pytest
import yaml
from dbt.tests.fixtures.project import write_file

pytest_plugins = ["dbt.tests.fixtures.project"]

#: A project that has these may merge into Parquet tables. `unique_key` is the primary key of its incremental models.
MACROS = """
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
  {% do return(raw_strategy) %}
{% endmacro %}

{% macro spark__tblproperties_clause() -%}
  {%- set found = config.get('tblproperties') or {} -%}
  {%- set key = config.get('unique_key') or [] -%}
  {%- set columns = [key] if key is string else key -%}
  {%- if config.get('materialized') == 'incremental' and columns and 'primary-key' not in found -%}
    {%- set found = dict(found, **{'primary-key': columns | join(',')}) -%}
  {%- endif -%}
  {%- if found %}
    tblproperties (
      {% for name, value in found.items() %}'{{ name }}' = '{{ value }}'{{ ', ' if not loop.last }}{% endfor %}
    )
  {%- endif %}
{%- endmacro %}
"""
KEYED = {"primary-key": "id"}
WITHOUT_KEY = {"timeline.archived-days": "9"}


class Lake:
    """Of a class of tests: all tables that it makes have these properties."""

    properties: dict[str, str] = KEYED

    @pytest.fixture(scope="class")
    def dbt_profile_target(self):
        return {"type": "spark", "host": "localhost", "user": "dbt", "method": "session", "threads": 1}

    @pytest.fixture(scope="class")
    def dbt_project_yml(self, project_root, project_config_update):
        tables = {"+file_format": "parquet", "+tblproperties": self.properties}
        made = {"name": "test", "profile": "test", "flags": {"send_anonymous_usage_stats": False}}
        made |= {kind: dict(tables) for kind in ("models", "seeds", "snapshots")}
        for name, value in (project_config_update or {}).items():
            made[name] = made[name] | value if isinstance(value, dict) and name in made else value
        write_file(yaml.safe_dump(made), project_root, "dbt_project.yml")
        return made

    @pytest.fixture(scope="class")
    def macros(self):
        return {"lake.sql": MACROS}


class LakeWithoutKey(Lake):
    properties = WITHOUT_KEY


@pytest.fixture(scope="class")
def logs_dir():
    """Not below the root of the tests."""
    directory = tempfile.mkdtemp()
    os.environ["DBT_LOG_PATH"] = directory
    yield directory
    del os.environ["DBT_LOG_PATH"]
