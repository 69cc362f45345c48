"""Which URI schemes the warehouse knows, and how a location becomes a driver and a path of its own.

Only storages that make sense as a warehouse are known; most of fsspec's other protocols fetch from anywhere
(http, github), wrap one another (zip, simplecache, `::` chains) or run commands (ssh), which no client may
make a server do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import fsspec

from metastore.warehouse.directories import Directories
from metastore.warehouse.errors import WarehouseError
from metastore.warehouse.local import LocalDirectories
from metastore.warehouse.locations import Location
from metastore.warehouse.remote import RemoteDirectories

_BUCKET = re.compile(r"(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]*)")
_HOST = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*)(:(?P<port>[0-9]{1,5}))?")
# An account's host elsewhere than at Azure would be sent the server's Azure token.
_CONTAINER = re.compile(r"(?P<container>[a-z0-9$][a-z0-9-]*)@(?P<account>[a-z0-9]+)\.(dfs|blob)\.core\.windows\.net")
# fsspec's drivers read these in a path as patterns and as versions, even in calls that delete.
_SPECIAL = re.compile(r"[*?\[#]")


@dataclass(frozen=True)
class Scheme:
    """A URI scheme: fsspec's driver, what stands between `//` and the path, the pip extra with the driver."""

    driver: str
    authority: re.Pattern[str] | None = None
    form: str = ""
    extra: str | None = None
    has_directories: bool = False
    keeps_placeholders: bool = False
    renames: bool = False


_S3 = Scheme("s3", _BUCKET, "bucket", "s3", keeps_placeholders=True)
_GOOGLE = Scheme("gs", _BUCKET, "bucket", "gcs", keeps_placeholders=True)
_AZURE = Scheme("abfs", _CONTAINER, "container@account.dfs.core.windows.net", "azure")

SCHEMES: Mapping[str, Scheme] = {
    "file": Scheme("file", has_directories=True, renames=True),
    "s3": _S3,
    "s3a": _S3,
    "s3n": _S3,
    "gs": _GOOGLE,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "hdfs": Scheme("hdfs", _HOST, "host:port", "hdfs", has_directories=True, renames=True),
    "memory": Scheme("memory", _BUCKET, "name", has_directories=True),
}

DEFAULT_SCHEMES = tuple(scheme for scheme in SCHEMES if scheme != "memory")
"""All storages that outlive the process."""

_LOCAL = LocalDirectories()


def canonical(location: Location) -> Location:
    """The same place under its driver's own scheme: `s3a:` and `s3:` lead to the same bucket."""
    return location._replace(scheme=SCHEMES[location.scheme].driver)


def check(location: Location) -> None:
    """Raises WarehouseError for a location that its storage can't have, or that its driver would misread."""
    scheme = SCHEMES[location.scheme]
    if scheme.authority is None:
        if location.authority:
            raise WarehouseError(f"cannot use {location}: write {location.scheme}:/path, without a host")
        return
    if not scheme.authority.fullmatch(location.authority):
        raise WarehouseError(f"cannot use {location}: write {location.scheme}://{scheme.form}/path")
    if _SPECIAL.search(location.path):
        raise WarehouseError(f"cannot use {location}: the storage's driver does not take * ? [ # literally")


def open_directories(location: Location, options: Mapping[str, Mapping[str, Any]]) -> tuple[Directories, str]:
    """The storage of a checked location, and the location's path there.

    `options` are fsspec's storage options by scheme, or by its driver's name. fsspec keeps the instances.
    Raises WarehouseError: the driver is not installed; and what drivers raise that connect at once.
    """
    scheme = SCHEMES[location.scheme]
    if scheme.driver == "file":
        return _LOCAL, location.path
    path, connection = _place(scheme, location)
    configured = options.get(location.scheme, options.get(scheme.driver, {}))
    try:
        # Others write to the same storage: what a driver remembers of its listings is soon wrong.
        fs = fsspec.filesystem(scheme.driver, **{**configured, **connection, "use_listings_cache": False})
    except ImportError as error:
        raise WarehouseError(
            f"cannot reach {location}: no driver for {location.scheme}: is installed ({error}). "
            f"Run: pip install 'lake-metastore[{scheme.extra}]'"
        ) from error
    directories = RemoteDirectories(
        fs,
        has_directories=scheme.has_directories,
        keeps_placeholders=scheme.keeps_placeholders,
        renames=scheme.renames,
    )
    return directories, path


def _place(scheme: Scheme, location: Location) -> tuple[str, dict[str, Any]]:
    """A location's path as its driver has it, and what the location says about the connection."""
    parts = scheme.authority and scheme.authority.fullmatch(location.authority)
    if not parts:
        raise WarehouseError(f"cannot use {location}: write {location.scheme}://{scheme.form}/path")
    below = "" if location.path == "/" else location.path
    match scheme.driver:
        case "hdfs":
            return location.path, {"host": parts["host"], "port": int(parts["port"] or 0)}
        case "abfs":
            return parts["container"] + below, {"account_name": parts["account"]}
        case "memory":
            return f"/{parts['bucket']}{below}", {}
        case _:
            return parts["bucket"] + below, {}
