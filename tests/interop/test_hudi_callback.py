"""Hudi's own client of the commit callback logs in on the HTTP port, as docs/hudi.md says."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from metastore.server.credentials import password_file
from tests.support import jvm
from tests.support.certificates import STORE_PASSWORD, Authority
from tests.support.server import MetastoreServer

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"


@pytest.mark.parametrize("version", ["0.15.0", "1.2.0"])
def test_it_logs_in(class_path: Callable[..., list[Path]], tmp_path: Path, version: str) -> None:
    (bundle,) = class_path(f"{BUNDLE}:{version}", exclusions=("*:*",))
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", "localhost")
    users = tmp_path / "users"
    password_file.add(users, "writer", "secret", (), allow_weak=True)
    options = (
        *("--authentication", "plain", "--password-file", str(users), "--http-port", "0", "--workers", "1"),
        *("--tls-certificate", str(certificate), "--tls-key", str(key), "--audit", "all"),
    )
    trust = (
        f"-Djavax.net.ssl.trustStore={authority.trust_store('trust')}",
        f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
    )
    jars = [bundle, jvm.pyspark_class_path()]
    with (
        MetastoreServer(tmp_path / "data", *options) as server,
        jvm.running(jars, tmp_path, options=(*jvm.SMALL, *trust)) as gateway,
    ):
        match = re.search(r"uri=http://\S+:(\d+)", server.log.read_text())
        assert match is not None
        hudi = gateway.jvm.org.apache.hudi

        def post(password: str) -> None:
            properties = gateway.jvm.java.util.Properties()
            sent = base64.b64encode(f"writer:{password}".encode()).decode()
            for name, value in {
                "on": "true",
                "http.url": f"https://localhost:{match[1]}/hudi/commits",
                "http.custom.headers": f"Authorization:Basic {sent}",
                "http.timeout.seconds": "30",
            }.items():
                properties.setProperty(f"hoodie.write.commit.callback.{name}", value)
            config = hudi.config.HoodieWriteConfig.newBuilder().withPath("/tmp/t").withProps(properties).build()
            client = hudi.callback.client.http.HoodieWriteCommitHttpCallbackClient(config)
            client.send('{"basePath": "/no/such/table", "tableName": "t"}')

        post("guess")  # Hudi logs what it is answered, and goes on
        post("secret")
        log = server.log.read_text()
        assert re.search(r"login refused .*user=writer", log)
        assert re.search(r"audit .*method=lake_refresh_hudi .*user=writer", log)
        assert "secret" not in log
