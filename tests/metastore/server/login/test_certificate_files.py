"""The files of TLS, and the names in clients' certificates."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from metastore.server.credentials.certificates import BadCertificate, CertificateFiles, user_of
from metastore.server.credentials.identity import Denied
from metastore.settings import Settings
from tests.metastore.server.login.conftest import Keys


@pytest.fixture
def encrypted_key(keys: Keys, tmp_path: Path) -> Path:
    key = serialization.load_pem_private_key(keys.key.read_bytes(), None)
    file = tmp_path / "encrypted.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    return file


@pytest.mark.parametrize(
    ("password", "complaint"),
    [
        ("password", None),
        ("wrong", "no pair of a certificate and its key"),
        (None, "is encrypted: set tls_key_password"),
    ],
    ids=["right", "wrong", "none"],
)
def test_encrypted_key(keys: Keys, encrypted_key: Path, password: str | None, complaint: str | None) -> None:
    settings = Settings(tls_certificate=keys.certificate, tls_key=encrypted_key, tls_key_password=password)
    if complaint is None:
        assert CertificateFiles(settings).context.cert_store_stats()["x509"] == 0
        return
    with pytest.raises(BadCertificate, match=complaint):
        CertificateFiles(settings)


def test_files_that_can_not_be_used(keys: Keys, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    _, other_key = keys.authority.issue("other", "localhost")
    for certificate, key, authorities, complaint in (
        (tmp_path / "none.pem", keys.key, None, "can't read .*none.pem: No such file"),
        (keys.certificate, nothing, None, "no pair"),
        (keys.certificate, other_key, None, "no pair"),
        (keys.certificate, keys.key, nothing, "has no certificates in PEM"),
    ):
        settings = Settings(tls_certificate=certificate, tls_key=key, tls_client_ca=authorities)
        with pytest.raises(BadCertificate, match=complaint):
            CertificateFiles(settings)


CERTIFICATE: dict[str, Any] = {
    "subject": ((("organizationName", "A, B"),), (("commonName", "carol"),)),
    "subjectAltName": (("DNS", "host.example"), ("email", "a@example"), ("email", "b@example"), ("URI", "spiffe://a")),
}


@pytest.mark.parametrize(
    ("field", "user"),
    [
        ("cn", "carol"),
        ("subject", r"CN=carol,O=A\, B"),
        ("dns", "host.example"),
        ("uri", "spiffe://a"),
        ("email", None),
    ],
)
def test_users_of_certificates(field: Any, user: str | None) -> None:
    if user is None:
        with pytest.raises(Denied, match="2 names of the kind email"):
            user_of(CERTIFICATE, field)
    else:
        assert user_of(CERTIFICATE, field).user == user


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 300, "\x00root"])
def test_names_that_can_not_be_used(name: str) -> None:
    with pytest.raises(Denied, match="can't be used"):
        user_of({"subject": ((("commonName", name),),)}, "cn")


def test_two_common_names_are_no_user() -> None:
    two = {"subject": ((("commonName", "root"),), (("commonName", "carol"),))}
    with pytest.raises(Denied, match="2 names"):
        user_of(two, "cn")
