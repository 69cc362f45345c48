"""Locations as Hadoop's `Path` spells them: `file:/a/b`, `s3a://bucket/a/b`.

A location is not a URL: every character of its path stands for itself, `%3A` in a partition's directory
included. Nothing here touches a file system.
"""

import re
from typing import NamedTuple, Self

from metastore.warehouse.errors import WarehouseError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


class Location(NamedTuple):
    """A directory's place: scheme and authority ("" where there is none) and a normalised, absolute path."""

    scheme: str
    authority: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Splits and normalises a location the way Hadoop's `Path` does.

        Doubled slashes, `.` and a trailing slash vanish, `..` takes its parent away. Stricter than Hadoop
        where that is safer: `..` above the root is refused, and so is what can't be the name of a file (NUL,
        half a surrogate pair).

        Raises WarehouseError: empty, relative, or malformed.
        """
        if text.startswith("file:/") and not text.startswith("file://"):  # as most are kept
            _check_characters(text)
            return cls("file", "", _normalised(text, text[len("file:") :]))
        scheme, rest = "", text
        colon, slash = text.find(":"), text.find("/")
        if colon >= 0 and (slash < 0 or colon < slash):
            scheme, rest = text[:colon].lower(), text[colon + 1 :]
            if not _SCHEME.fullmatch(scheme):
                raise _malformed(text, f"{scheme!r} is no scheme")
        authority = ""
        if rest.startswith("//") and len(rest) > 2:
            end = rest.find("/", 2)
            end = len(rest) if end < 0 else end
            authority, rest = rest[2:end], rest[end:] or "/"
        if (scheme, authority) == ("file", "localhost"):
            authority = ""
        if authority and not scheme:
            raise _malformed(text, f"{authority!r} needs a scheme before it")
        if not rest.startswith("/"):
            raise _malformed(text, "it is relative" if rest else "it is empty")
        _check_characters(text)
        return cls(scheme, authority, _normalised(text, rest))

    def __str__(self) -> str:
        authority = f"//{self.authority}" if self.authority else ""
        return f"{self.scheme}:{authority}{self.path}"

    def join(self, relative: str) -> Self:
        """The place `relative` below this one.

        Raises WarehouseError: nothing in `relative`, an absolute path, or one that climbs with `..`.
        """
        names = [name for name in relative.split("/") if name not in ("", ".")]
        if not names or relative.startswith("/") or ".." in names:
            raise WarehouseError(f"cannot find {relative!r} below {self}: give a relative path without '..'")
        _check_characters(relative)
        base = "" if self.path == "/" else self.path
        return type(self)(self.scheme, self.authority, f"{base}/{'/'.join(names)}")

    def relative_to(self, base: "Location") -> str | None:
        """The path from `base` to this place, None unless this place is strictly below it, name by name."""
        if (self.scheme, self.authority) != (base.scheme, base.authority):
            return None
        prefix = base.path if base.path == "/" else base.path + "/"
        return self.path[len(prefix) :] or None if self.path.startswith(prefix) else None

    @property
    def parent(self) -> Self | None:
        """The directory this one lies in, None for the root of a store."""
        if self.path == "/":
            return None
        return type(self)(self.scheme, self.authority, self.path.rpartition("/")[0] or "/")


def _normalised(text: str, path: str) -> str:
    if "//" not in path and "/." not in path and (not path.endswith("/") or path == "/"):
        return path
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                raise _malformed(text, "'..' leads above the root")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def _check_characters(text: str) -> None:
    try:
        if b"\0" not in text.encode():
            return
    except UnicodeEncodeError:
        pass
    raise _malformed(text, "it has characters that no file name can have")


def _malformed(text: str, why: str) -> WarehouseError:
    return WarehouseError(
        f"cannot use {text!r} as a location: {why}. Give an absolute path or a URI like file:/a/b or s3a://bucket/a/b."
    )
