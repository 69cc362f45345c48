"""The extension's own calls of the metastore: connections, leases, and what happens when no answer comes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.relay import Relay
from tests.support.server import MetastoreServer

#: Reaches the extension's classes, which are not public.
REFLECTION = """
jvm = spark._jvm
loader = spark._jsparkSession.sharedState().jarClassLoader()

def invoke(name, target, *arguments):
    found = jvm.java.lang.Class.forName("lake.metastore.spark." + name.split(".")[0], True, loader)
    method = next(each for each in found.getDeclaredMethods() if each.getName() == name.split(".")[1])
    method.setAccessible(True)
    given = spark._sc._gateway.new_array(jvm.Object, len(arguments))
    for i, each in enumerate(arguments):
        given[i] = each
    return method.invoke(target, given)

def field(target, name):
    found = target.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(target)

def metastore(session):
    return invoke("Metastore.of", None, session._jsparkSession)

def call(session, method, once=False):
    name = "Metastore.callOnce" if once else "Metastore.call"
    return invoke(name, metastore(session), method, spark._sc._gateway.new_array(jvm.Object, 0))

def renewals():
    threads = jvm.Thread.getAllStackTraces().keySet()
    return sum(each.getName() == "renewal of readers' leases" for each in threads)
"""


@pytest.fixture
def relay(metastore_server: MetastoreServer) -> Iterator[Relay]:
    with Relay(metastore_server.host, metastore_server.port) as relay:
        yield relay


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    spark.sql(f"CREATE TABLE {database}.t (id BIGINT, v STRING) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    spark.python(
        f"from lake.spark import write\nwrite(spark.sql(\"SELECT 1L id, 'a' v\"), '{database}.t', operation='upsert')"
    )
    return f"{database}.t"


def through(spark: SparkSession, relay: Relay, code: str) -> Any:
    """Runs code that finds a session whose own calls go through the relay as `other`."""
    settings = f"other.conf.set('hive.metastore.uris', {relay.uri!r})\n"
    settings += "other.conf.set('hive.metastore.client.socket.timeout', '2')\n"
    return spark.python(f"{REFLECTION}\nother = spark.newSession()\n{settings}{code}")


def test_sessions_share_connections_and_leases(spark: SparkSession, lake: Lake, table: str) -> None:
    code = f"""
{REFLECTION}
other = spark.newSession()
result = [other.table({table!r}).count(), spark.table({table!r}).count()]
result += [renewals(), metastore(spark).equals(metastore(other))]
"""
    assert spark.python(code) == [1, 1, 1, True]
    assert len(lake.leases(table)) == 1


def test_users_do_not_share_connections(spark: SparkSession) -> None:
    code = f"""
{REFLECTION}
users = jvm.org.apache.hadoop.security.UserGroupInformation
before, own = users.getLoginUser(), metastore(spark)
users.setLoginUser(users.createRemoteUser("alice"))
try:
    result = [own.equals(metastore(spark)), metastore(spark).equals(metastore(spark.newSession()))]
finally:
    users.setLoginUser(before)
result.append(own.equals(metastore(spark)))
"""
    assert spark.python(code) == [False, True, True]


def test_leases_last_as_long_as_each_read_says(spark: SparkSession, relay: Relay, lake: Lake, table: str) -> None:
    code = f"""
leases = invoke("Metastore.leases", metastore(other))
for hours in ("1", "12", "0"):
    other.conf.set("spark.metastore.readerLeaseHours", hours)
    other.table({table!r}).count()
(held,) = field(leases, "held").values()
reads = field(held, "reads")
result = [reads.lastKey() - reads.firstKey() >= 11 * 60, invoke("ReaderLeases.renewAll", leases)]
"""
    assert through(spark, relay, code) == [True, True]
    assert len(lake.leases(table)) == 1
    # When the last hour is over, the lease is released and the thread ends.
    code += "while reads.pollFirstEntry() is not None:\n    pass\nresult = invoke('ReaderLeases.renewAll', leases)"
    assert through(spark, relay, code) is False
    assert lake.leases(table) == []


def test_a_hanging_call_does_not_block_others(spark: SparkSession, relay: Relay, table: str) -> None:
    relay.hold("lake_get_snapshot")
    code = f"""
from concurrent.futures import ThreadPoolExecutor
other.conf.set("hive.metastore.client.socket.timeout", "60")
with ThreadPoolExecutor(2) as threads:
    result = list(threads.map(lambda _: other.table({table!r}).count(), range(2)))
"""
    assert through(spark, relay, code) == [1, 1]
    assert relay.overtaken


def test_calls_are_repeated_over_a_new_connection_only_if_they_may_be(spark: SparkSession, relay: Relay) -> None:
    relay.lose("getVersion")
    assert through(spark, relay, "call(other, 'getStatus'); result = call(other, 'getVersion') is not None")
    assert relay.requests["getVersion"] == 2
    relay.lose("getVersion")
    with pytest.raises(SparkError, match=rf"the metastore at {relay.uri} did not answer getVersion \(.*closed"):
        through(spark, relay, "call(other, 'getVersion', once=True)")
    assert relay.requests["getVersion"] == 1


def test_a_connection_that_was_closed_is_noticed_before_a_call(spark: SparkSession, relay: Relay) -> None:
    through(spark, relay, "call(other, 'getStatus')")
    relay.close_connections()
    relay.requests["getVersion"] = 0
    assert through(spark, relay, "result = call(other, 'getVersion', once=True) is not None")
    assert relay.requests["getVersion"] == 1


def test_no_call_is_repeated_after_a_timeout(spark: SparkSession, relay: Relay) -> None:
    through(spark, relay, "call(other, 'getStatus')")
    relay.hold("getVersion")
    with pytest.raises(SparkError, match=r"did not answer getVersion \(.*timed out"):
        through(spark, relay, "call(other, 'getVersion')")
    assert relay.requests["getVersion"] == 1


def test_a_server_that_is_gone(spark: SparkSession, relay: Relay, table: str) -> None:
    code = f"read = other.table({table!r})\n"
    assert through(spark, relay, f"{code}result = read.count()") == 1
    relay.close()
    with pytest.raises(SparkError) as error:
        through(spark, relay, code)
    assert re.fullmatch(
        rf"AnalysisException: the metastore at {relay.uri} did not answer lake_timeline_position"
        r" \(.*Connection refused.*\):"
        r" look whether it runs, and whether spark\.hadoop\.hive\.metastore\.uris names it\.?",
        str(error.value).strip(),
    )
