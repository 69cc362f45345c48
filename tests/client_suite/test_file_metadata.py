"""Metadata of files, and the recycling of dropped ones: features that are off in Hive by default."""

from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CacheFileMetadataRequest,
    CacheFileMetadataResult,
    CmRecycleRequest,
    CmRecycleResponse,
    GetFileMetadataByExprRequest,
    GetFileMetadataByExprResult,
    GetFileMetadataRequest,
    GetFileMetadataResult,
    PutFileMetadataRequest,
    PutFileMetadataResult,
)


def test_nothing_is_supported(client: ThriftClient) -> None:
    assert client.get_file_metadata(GetFileMetadataRequest([1, 2])) == GetFileMetadataResult({}, False)
    by_expression = GetFileMetadataByExprRequest([1], b"expression")
    assert client.get_file_metadata_by_expr(by_expression) == GetFileMetadataByExprResult({}, False)
    assert client.cache_file_metadata(CacheFileMetadataRequest("no_such", "t")) == CacheFileMetadataResult(False)


def test_what_is_put_is_not_kept(client: ThriftClient) -> None:
    assert client.put_file_metadata(PutFileMetadataRequest([1], [b"metadata"])) == PutFileMetadataResult()
    assert client.get_file_metadata(GetFileMetadataRequest([1])) == GetFileMetadataResult({}, False)


@pytest.mark.hive4
def test_files_are_not_recycled(client: ThriftClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("data")
    assert client.cm_recycle(CmRecycleRequest(str(tmp_path), True)) == CmRecycleResponse()
    assert (tmp_path / "file").read_text() == "data"
