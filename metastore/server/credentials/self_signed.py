"""A certificate that vouches for itself, for a first try."""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from lake.protocol.errors import UserError


class NoCryptography(UserError):
    """The library that makes certificates is missing."""


def write(certificate: Path, key: Path, names: Sequence[str], days: int) -> None:
    """Writes a certificate for servers of these names and addresses, and its key, which only the owner may read.

    Raises NoCryptography, FileExistsError and other OSErrors. If one of the files exists, neither is written.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise NoCryptography("certificates are made with an extra: pip install 'lake-metastore[jwt]'") from None

    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = [_alternative(name) for name in names]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(private, hashes.SHA256())
    )
    if certificate.exists():
        raise FileExistsError(17, "exists", str(certificate))
    certificate.parent.mkdir(parents=True, exist_ok=True)
    unencrypted = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    _create(key, private.private_bytes(pem, serialization.PrivateFormat.PKCS8, unencrypted), 0o600)
    _create(certificate, made.public_bytes(pem), 0o644)


def _alternative(name: str):  # type: ignore[no-untyped-def]  # the library is optional
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _create(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
