#!/usr/bin/env bash
# Writes requirements/*.lock anew with the newest versions that fit, by uv in an environment of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

"${PYTHON:-python3}" -m venv .venv-lock
.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv

compile() {
    .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
        --no-emit-index-url --no-emit-find-links --no-emit-package lake-metastore-client \
        --custom-compile-command "make lock" "$@"
}

compile requirements/build.in -o requirements/build.lock
compile pyproject.toml --group dev -c requirements/build.lock -o requirements/dev.lock
compile requirements/spark35.in -o requirements/spark35.lock
compile requirements/logins.in -c requirements/build.lock -c requirements/dev.lock -o requirements/logins.lock
compile requirements/spark-connect.in -c requirements/build.lock -c requirements/dev.lock -o requirements/spark-connect.lock
compile requirements/engines.in -c requirements/build.lock -o requirements/engines.lock
compile requirements/dbt.in -o requirements/dbt.lock
compile pyproject.toml requirements/image.in --extra s3 --extra gcs --extra azure --extra kafka --extra jwt --extra cedar \
    -c requirements/build.lock -o requirements/image.lock
