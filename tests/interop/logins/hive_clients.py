"""How Hive's Java clients, of any version, are told to log in."""

from pathlib import Path
from typing import Any

from tests.interop.logins.conftest import Door
from tests.support.builders import database
from tests.support.certificates import STORE_PASSWORD
from tests.support.kerberos import REALM

CAROL = f"carol@{REALM}"


def by_kerberos(protection: str = "privacy") -> dict[str, str]:
    """Settings for the ticket or keytab of the JVM's user."""
    return {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": f"metastore/_HOST@{REALM}",
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": protection,
    }


def by_token(signature: str) -> dict[str, str]:
    """Settings for the delegation token that `hold` gave to the JVM's user under this name."""
    return by_kerberos() | {"hive.metastore.token.signature": signature}


def within_tls(trust_store: Path) -> dict[str, str]:
    return {
        "hive.metastore.use.SSL": "true",
        "hive.metastore.truststore.path": str(trust_store),
        "hive.metastore.truststore.password": STORE_PASSWORD,
    }


def log_in(jvm: Any, principal: str, keytab: Path) -> None:
    """Makes a principal the user of a JVM."""
    hadoop = jvm.org.apache.hadoop.conf.Configuration()
    hadoop.set("hadoop.security.authentication", "kerberos")
    hadoop.set("hadoop.security.auth_to_local", "DEFAULT RULE:[2:$1]")
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setConfiguration(hadoop)
    users.loginUserFromKeytab(principal, str(keytab))


def hold(jvm: Any, text: str, signature: str) -> None:
    """Gives a delegation token to the user of a JVM, as launchers of jobs do."""
    token = jvm.org.apache.hadoop.security.token.Token()
    token.decodeFromUrlString(text)
    token.setService(jvm.org.apache.hadoop.io.Text(signature))
    jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser().addToken(token)


def lives(client: Any, door: Door, name: str) -> set[tuple[str, str]]:
    """Makes a database and drops it; as whom and how the client did that."""
    client.createDatabase(database(name))
    assert client.getDatabase(name).name == name
    client.dropDatabase(name)
    client.close()
    return door.came_in("create_database", name) | door.came_in("drop_database", name)
