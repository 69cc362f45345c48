"""The texts of SASL's DIGEST-MD5 (RFC 2831), as Hadoop's and Hive's clients use it for tokens: md5-sess.

MD5 is weak, but what is proven is a random password that nobody can guess, for a nonce that is used once.
"""

import hashlib
import hmac
import re
from typing import NamedTuple

from lake.protocol.sasl import digest_layers
from lake.protocol.sasl.digest_layers import DigestProtection

REALM = "default"
_QOP = "auth"
_ALGORITHM = "md5-sess"
_COUNT = "00000001"
_DIRECTIVE = re.compile(rb'\s*([A-Za-z-]{1,20})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]*))\s*(?:,|$)')
_HASH = re.compile(r"[0-9a-f]{32}")
_SIZE = re.compile(r"[0-9]{1,9}")
_NO_BODY = ":" + "0" * 32
"""What the hash of the method ends with, if messages are protected."""


class BadDigest(ValueError):
    """A challenge or response means nothing, or proves nothing."""


class Proven(NamedTuple):
    """A client has the password. `answer`: by what the server proves that it has it, too."""

    answer: bytes
    protection: DigestProtection | None


def challenge(nonce: str) -> bytes:
    """The server's challenge."""
    qops = digest_layers.offered()
    said = [f'realm="{REALM}"', f'nonce="{nonce}"', f'qop="{",".join(qops)}"', "charset=utf-8"]
    said += [f"algorithm={_ALGORITHM}", f"maxbuf={digest_layers.MAX_SIZE}"]
    if "auth-conf" in qops:
        said.append(f'cipher="{digest_layers.CIPHER}"')
    return ",".join(said).encode()


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


def check_response(sent: dict[str, str], password: str, nonce: str) -> Proven:
    """Checks a client's response, and chooses the protection that it asks for. Raises BadDigest."""
    wanted = {"nonce": nonce, "nc": _COUNT, "realm": REALM}
    for name, value in wanted.items():
        if not hmac.compare_digest(sent.get(name, "").encode(), value.encode()):
            raise BadDigest(f"the directive {name} is not what was asked for")
    qop = sent.get("qop", _QOP)
    if qop not in digest_layers.offered():
        raise BadDigest("the directive qop is not what was asked for")
    if qop == "auth-conf" and sent.get("cipher") != digest_layers.CIPHER:
        raise BadDigest("the directive cipher is not what was asked for")
    for name in ("username", "cnonce", "digest-uri", "response"):
        if not sent.get(name):
            raise BadDigest(f"the directive {name} is missing")
    given = sent["response"]
    if not _HASH.fullmatch(given) or not hmac.compare_digest(given, _proof(sent, password, "AUTHENTICATE")):
        raise BadDigest("the response doesn't fit the password")
    return Proven(f"rspauth={_proof(sent, password, '')}".encode(), _protection(sent, password, qop))


def _protection(sent: dict[str, str], password: str, qop: str) -> DigestProtection | None:
    if qop == _QOP:
        return None
    size = sent.get("maxbuf", str(digest_layers.MAX_SIZE))
    if not _SIZE.fullmatch(size):
        raise BadDigest("the directive maxbuf is no number")
    session, encrypts = _session(sent, password), qop == "auth-conf"
    try:
        return DigestProtection(session, encrypts=encrypts, of_server=True, peer_max_size=int(size))
    except ValueError as error:
        raise BadDigest(str(error)) from None


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
    qop = said.get("qop", _QOP)
    first = _session(said, password).hex()
    second = _md5(f"{method}:{said['digest-uri']}{'' if qop == _QOP else _NO_BODY}".encode()).hex()
    together = ":".join((first, said["nonce"], said["nc"], said["cnonce"], qop, second))
    return _md5(together.encode()).hex()


def _session(said: dict[str, str], password: str) -> bytes:
    """The session's key, H(A1)."""
    secret = _md5(f"{said['username']}:{said['realm']}:{password}".encode())
    session = secret + f":{said['nonce']}:{said['cnonce']}".encode()
    if "authzid" in said:
        session += f":{said['authzid']}".encode()
    return _md5(session)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()
