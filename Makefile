# `make` lists what there is.
SHELL := /bin/bash
PY := .venv/bin/python
# Tests start a thousand processes, each of which would compile all modules.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests setup-logins setup-bench demo test test-fast test-long interop bench lint generate site release lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup  ## see Spark, a stream and a warehouse use the metastore (eight minutes, sets up all it needs)
	@$(PY) demo/run.py

test: setup-tests  ## run the tests; ARGS="…" goes to pytest
	$(PY) -m pytest --numprocesses 3 --no-loadscope-reorder --reruns 1 -m "not long and not interop" $(ARGS)

test-fast: setup  ## run the tests that need neither a database nor Java, in less than a minute
	$(PY) -m pytest --fast --numprocesses 2 -m "not long and not interop" $(ARGS)

test-long: setup-logins  ## run the tests that take minutes, too
	$(PY) -m pytest -m "not interop" $(ARGS)

bench: setup-bench  ## measure how fast it is; ARGS="hive --results bench/results" keeps the figures
	$(PY) -m bench $(ARGS)

interop: setup-logins  ## run other systems' clients and servers with this one (their jars come through Maven)
	$(PY) -m pytest -m interop --timeout 1800 --interop-record=docs/interop.md $(ARGS)

lint: setup  ## check style, types and the rules of imports
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo

generate: setup  ## regenerate Thrift types, the list of settings, the list of methods
	$(PY) -m tools.generate_types
	$(PY) -m tools.update_readme
	$(PY) -m tools.update_methods

site: setup  ## build the documentation as a site, into build/site
	$(PY) -m mkdocs build --strict

setup:  ## make the virtual environment
	@tools/setup.sh

setup-tests:
	@tools/setup.sh --spark35

setup-logins:
	@tools/setup.sh --spark35 --spark-connect --logins --mariadb --engines --dbt

setup-bench:
	@tools/setup.sh --jdbc --spark35 --spark-connect

release: setup-tests  ## build both wheels and the image's files into dist/, and try them in a new environment
	$(PY) -m tools.release

lock:  ## write the lock files, with the newest versions that fit
	@tools/lock.sh

clean:  ## remove environments, caches and builds
	rm -rf .venv .venv-spark35 .venv-lock build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
