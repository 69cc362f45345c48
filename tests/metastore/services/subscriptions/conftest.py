"""Hive's Java classes for the tests that read its messages with them."""

from tests.hive_client.conftest import jvm

__all__ = ["jvm"]
