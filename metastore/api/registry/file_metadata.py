"""What Hive can keep of ORC files, and the recycling of dropped files: off by default, and answered so."""

from lake.protocol.hive import (
    CacheFileMetadataRequest,
    CacheFileMetadataResult,
    ClearFileMetadataRequest,
    ClearFileMetadataResult,
    CmRecycleRequest,
    CmRecycleResponse,
    GetFileMetadataByExprRequest,
    GetFileMetadataByExprResult,
    GetFileMetadataRequest,
    GetFileMetadataResult,
    PutFileMetadataRequest,
    PutFileMetadataResult,
)
from metastore.api.methods import Call, answers


@answers("get_file_metadata", reads="ADMIN everything", uncommitted="no table", off="no metadata of files is kept")
def get_file_metadata(call: Call, request: GetFileMetadataRequest) -> GetFileMetadataResult:
    return GetFileMetadataResult(metadata={}, isSupported=False)


@answers(
    "get_file_metadata_by_expr", reads="ADMIN everything", uncommitted="no table", off="no metadata of files is kept"
)
def get_file_metadata_by_expr(call: Call, request: GetFileMetadataByExprRequest) -> GetFileMetadataByExprResult:
    return GetFileMetadataByExprResult(metadata={}, isSupported=False)


@answers("put_file_metadata", changes="ADMIN everything", uncommitted="no table", off="no metadata of files is kept")
def put_file_metadata(call: Call, request: PutFileMetadataRequest) -> PutFileMetadataResult:
    """Nothing is kept."""
    return PutFileMetadataResult()


@answers("clear_file_metadata", changes="ADMIN everything", uncommitted="no table", off="no metadata of files is kept")
def clear_file_metadata(call: Call, request: ClearFileMetadataRequest) -> ClearFileMetadataResult:
    """There is nothing to forget. (Hive 2.3 fails where it might say so.)"""
    return ClearFileMetadataResult()


@answers(
    "cache_file_metadata",
    changes="WRITE table req.dbName req.tblName",
    uncommitted="no table",
    off="no metadata of files is kept",
)
def cache_file_metadata(call: Call, request: CacheFileMetadataRequest) -> CacheFileMetadataResult:
    return CacheFileMetadataResult(isSupported=False)


@answers("cm_recycle", changes="ADMIN everything", uncommitted="no table", off="there is no change manager")
def cm_recycle(call: Call, request: CmRecycleRequest) -> CmRecycleResponse:
    """Without a change manager the files stay where they are."""
    return CmRecycleResponse()
