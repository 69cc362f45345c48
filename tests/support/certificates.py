"""Certificates of an authority of the tests' own."""

import subprocess
from pathlib import Path

import trustme

STORE_PASSWORD = "changeit"
"""Of keystores of Java's."""


class Authority:
    """An authority, and the PEM files that it issues into a directory."""

    def __init__(self, directory: Path) -> None:
        self._ca = trustme.CA()
        self._directory = directory
        self.file = directory / "authority.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def issue(self, name: str, *hosts: str, common_name: str | None = None) -> tuple[Path, Path]:
        """A certificate and its key, in files that begin with `name`; files that are there are replaced."""
        issued = self._ca.issue_cert(*hosts, common_name=common_name)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        return certificate, key

    def trust_store(self, name: str) -> Path:
        """The authority in a keystore of Java's, made by the JDK's own program, as an operator would."""
        store = self._directory / f"{name}.jks"
        options = ["-noprompt", "-alias", "authority", "-storepass", STORE_PASSWORD]
        command = ["keytool", "-importcert", *options, "-file", str(self.file), "-keystore", str(store)]
        subprocess.run(command, check=True, capture_output=True)
        return store
