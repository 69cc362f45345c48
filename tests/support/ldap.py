"""A directory server (OpenLDAP's slapd) on the loopback interface, for tests."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.certificates import Authority
from tests.support.waiting import wait_until

BASE = "dc=lake,dc=example"
PEOPLE = f"ou=people,{BASE}"
GROUPS = f"ou=groups,{BASE}"
SERVER_DN, SERVER_PASSWORD = f"cn=metastore,{BASE}", "server's"

_WHERE = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin"
_MODULES = Path("/usr/lib/ldap")
_SCHEMAS = Path("/etc/ldap/schema")

_CONFIGURATION = """
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/inetorgperson.schema
modulepath {modules}
moduleload back_mdb
TLSCACertificateFile {authority}
TLSCertificateFile {certificate}
TLSCertificateKeyFile {key}
pidfile {directory}/pid
database mdb
suffix "{base}"
rootdn "cn=root,{base}"
directory {directory}/data
access to attrs=userPassword by anonymous auth by * none
access to dn.subtree="ou=people,{base}" by dn="{server}" read by self read by anonymous auth by * none
access to * by dn="{server}" read by users read by anonymous auth by * none
"""

_USER = """
dn: uid={uid},{people}
objectClass: inetOrgPerson
uid: {uid}
cn: {uid}
sn: {uid}
userPassword: {password}
"""


def missing() -> str | None:
    """Why there can be no directory here; None if there can."""
    if importlib.util.find_spec("ldap") is None:
        return "needs the package python-ldap (tools/setup.sh --logins)"
    if shutil.which("slapd", path=_WHERE) is None or not _MODULES.exists():
        return "needs slapd (tools/setup.sh --logins)"
    return None


def entries(users: dict[str, str], groups: dict[str, list[str]]) -> str:
    """LDIF of users with their passwords, and of groups with their members."""
    texts = [
        f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: lake\no: lake\n",
        *(f"dn: ou={unit},{BASE}\nobjectClass: organizationalUnit\nou: {unit}\n" for unit in ("people", "groups")),
        f"dn: {SERVER_DN}\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: metastore\n"
        f"userPassword: {SERVER_PASSWORD}\n",
        *(_USER.format(uid=uid, people=PEOPLE, password=password) for uid, password in users.items()),
    ]
    for name, members in groups.items():
        lines = "".join(f"member: uid={member},{PEOPLE}\n" for member in members)
        texts.append(f"dn: cn={name},{GROUPS}\nobjectClass: groupOfNames\ncn: {name}\n{lines}")
    return "\n".join(texts)


class Directory:
    """A running directory server."""

    def __init__(self, directory: Path, authority: Authority, ldif: str) -> None:
        certificate, key = authority.issue("slapd", "localhost", "127.0.0.1")
        self.authority = authority.file
        (directory / "data").mkdir()
        self._configuration = directory / "slapd.conf"
        self._configuration.write_text(
            _CONFIGURATION.format(
                schemas=_SCHEMAS,
                modules=_MODULES,
                authority=authority.file,
                certificate=certificate,
                key=key,
                directory=directory,
                base=BASE,
                server=SERVER_DN,
            )
        )
        command = [shutil.which("slapadd", path=_WHERE) or "slapadd", "-f", str(self._configuration)]
        subprocess.run(command, input=ldif, text=True, check=True, capture_output=True)
        self.port, self.tls_port = _free_port(), _free_port()
        self.url, self.tls_url = f"ldap://127.0.0.1:{self.port}", f"ldaps://127.0.0.1:{self.tls_port}"
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        program = shutil.which("slapd", path=_WHERE) or "slapd"
        process = subprocess.Popen(
            [program, "-f", str(self._configuration), "-h", f"{self.url} {self.tls_url}", "-d", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: all(map(_answers, (self.port, self.tls_port))), what="slapd listens")
        return process

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def restart(self) -> None:
        self.process = self._start()


@contextlib.contextmanager
def running(directory: Path, authority: Authority, ldif: str) -> Iterator[Directory]:
    """A directory server until the end of the block; only where nothing is `missing`."""
    server = Directory(directory, authority, ldif)
    try:
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
