"""The texts of SASL's DIGEST-MD5 (RFC 2831), as Hadoop's and Hive's clients use it for tokens: qop auth, md5-sess.

MD5 is weak, but what is proven is a random password that nobody can guess, for a nonce that is used once.
"""

import hashlib
import hmac
import re

REALM = "default"
_QOP = "auth"
_ALGORITHM = "md5-sess"
_COUNT = "00000001"
_DIRECTIVE = re.compile(rb'\s*([A-Za-z-]{1,20})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]*))\s*(?:,|$)')
_HASH = re.compile(r"[0-9a-f]{32}")


class BadDigest(ValueError):
    """A challenge or response means nothing, or proves nothing."""


def challenge(nonce: str) -> bytes:
    """The server's challenge."""
    return (f'realm="{REALM}",nonce="{nonce}",qop="{_QOP}",charset=utf-8,algorithm={_ALGORITHM}').encode()


def directives(data: bytes) -> dict[str, str]:
    """The directives of a challenge or response. Raises BadDigest, also for one that comes twice."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        match = _DIRECTIVE.match(data, at)
        if match is None:
            raise BadDigest("malformed directives")
        name = match[1].decode().lower()
        value = match[3] if match[2] is None else re.sub(rb"\\(.)", rb"\1", match[2])
        if name in found:
            raise BadDigest(f"the directive {name} comes twice")
        try:
            found[name] = value.decode()
        except UnicodeDecodeError:
            raise BadDigest(f"the directive {name} is not UTF-8") from None
        at = match.end()
    return found


def check_response(sent: dict[str, str], password: str, nonce: str) -> bytes:
    """Checks a client's response, and returns by what the server proves itself. Raises BadDigest."""
    wanted = {"nonce": nonce, "nc": _COUNT, "qop": _QOP, "realm": REALM}
    for name, value in wanted.items():
        if not hmac.compare_digest(sent.get(name, _QOP if name == "qop" else "").encode(), value.encode()):
            raise BadDigest(f"the directive {name} is not what was asked for")
    for name in ("username", "cnonce", "digest-uri", "response"):
        if not sent.get(name):
            raise BadDigest(f"the directive {name} is missing")
    given = sent["response"]
    if not _HASH.fullmatch(given) or not hmac.compare_digest(given, _proof(sent, password, "AUTHENTICATE")):
        raise BadDigest("the response doesn't fit the password")
    return f"rspauth={_proof(sent, password, '')}".encode()


def response(asked: bytes, user: str, password: str, cnonce: str) -> tuple[bytes, bytes]:
    """A client's response to a challenge, and the answer by which the server proves itself. Raises BadDigest."""
    found = directives(asked)
    if "nonce" not in found or found.get("algorithm") != _ALGORITHM:
        raise BadDigest("the server's challenge is not one of DIGEST-MD5")
    said = {
        "username": user,
        "realm": found.get("realm", REALM),
        "nonce": found["nonce"],
        "nc": _COUNT,
        "cnonce": cnonce,
        "digest-uri": f"null/{REALM}",
        "qop": _QOP,
    }
    said["response"] = _proof(said, password, "AUTHENTICATE")
    bare = ("nc", "qop", "response")
    parts = [f"{name}={value}" if name in bare else f'{name}="{value}"' for name, value in said.items()]
    return ",".join(["charset=utf-8", *parts]).encode(), f"rspauth={_proof(said, password, '')}".encode()


def _proof(said: dict[str, str], password: str, method: str) -> str:
    """The hash of RFC 2831, section 2.1.2.1; the server's own has no method."""
    secret = _md5(f"{said['username']}:{said['realm']}:{password}".encode())
    session = secret + f":{said['nonce']}:{said['cnonce']}".encode()
    if "authzid" in said:
        session += f":{said['authzid']}".encode()
    first = _md5(session).hex()
    second = _md5(f"{method}:{said['digest-uri']}".encode()).hex()
    together = ":".join((first, said["nonce"], said["nc"], said["cnonce"], _QOP, second))
    return _md5(together.encode()).hex()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()
