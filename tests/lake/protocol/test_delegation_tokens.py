"""Delegation tokens in Hadoop's encoding, and DIGEST-MD5, against what others compute and against any bytes."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lake.protocol.sasl import delegation_token, digest_md5
from lake.protocol.sasl.delegation_token import BadToken, Identifier, Token
from lake.protocol.sasl.digest_layers import DigestProtection
from lake.protocol.sasl.digest_md5 import BadDigest
from lake.protocol.sasl.protection import BadMessage

NUMBERS = st.integers(-(2**63), 2**63 - 1)


@example(Identifier("", "", "", -113, 128, -112, 127))
@given(st.builds(Identifier, st.text(), st.text(), st.text(), NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_identifiers_survive(identifier: Identifier) -> None:
    assert Identifier.decode(identifier.encode()) == identifier


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (127, "7f"), (-112, "90"), (128, "8f80"), (-113, "8770"), (1 << 40, "8a010000000000"), (256, "8e0100")],
)
def test_numbers_as_writable_utils_writes_them(number: int, encoded: str) -> None:
    assert Identifier("", "", "", 0, 0, 0, number).encode()[7:].hex() == encoded


@given(st.binary(), st.binary(), st.text(), st.text())
def test_tokens_survive(identifier: bytes, password: bytes, kind: str, service: str) -> None:
    token = Token(identifier[:500], password[:100], kind[:50], service[:50])
    assert delegation_token.from_text(delegation_token.to_text(token)) == token


@given(st.binary(max_size=200))
def test_any_bytes_are_a_token_or_none(data: bytes) -> None:
    for read in (Identifier.decode, lambda data: delegation_token.from_text(base64.urlsafe_b64encode(data).decode())):
        try:
            read(data)
        except BadToken as error:
            assert str(error)


@given(st.binary(max_size=300))
def test_any_bytes_are_directives_or_none(data: bytes) -> None:
    try:
        digest_md5.directives(data)
    except BadDigest as error:
        assert str(error)


def test_directives_take_linear_time() -> None:
    with pytest.raises(BadDigest):
        digest_md5.directives(b'username="' + b"\\" * 60_000)
    with pytest.raises(BadDigest):
        digest_md5.directives(b"a=b," * 10_000)


def test_client_and_server_agree_and_nothing_else_does() -> None:
    asked = digest_md5.challenge("nonce")
    answer, proof = digest_md5.response(asked, "user==", "password", "cnonce")
    said = digest_md5.directives(answer)
    assert digest_md5.check_response(said, "password", "nonce") == (proof, None)
    for change in (
        {"nonce": "other"}, {"cnonce": "other"}, {"username": "other"}, {"digest-uri": "other"}, {"nc": "00000002"},
        {"qop": "auth-conf"}, {"realm": "other"}, {"response": "0" * 32}, {"response": "é"}, {"authzid": "root"},
    ):  # fmt: skip
        with pytest.raises(BadDigest):
            digest_md5.check_response(said | change, "password", "nonce")
    for missing in said:
        if missing not in ("charset", "qop"):
            with pytest.raises(BadDigest):
                digest_md5.check_response({k: v for k, v in said.items() if k != missing}, "password", "nonce")
    with pytest.raises(BadDigest):
        digest_md5.check_response(said, "other", "nonce")
    with pytest.raises(BadDigest):
        digest_md5.check_response(said, "password", "another")  # a replay


SESSION = bytes(range(16))


def pair(encrypts: bool) -> tuple[DigestProtection, DigestProtection]:
    """A server's protection and a client's."""
    return tuple(  # type: ignore[return-value]
        DigestProtection(SESSION, encrypts=encrypts, of_server=of_server, peer_max_size=65_536)
        for of_server in (True, False)
    )


@pytest.mark.parametrize("encrypts", [False, True])
@given(messages=st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), max_size=10))
def test_protected_messages_arrive(encrypts: bool, messages: list[tuple[bool, bytes]]) -> None:
    server, client = pair(encrypts)
    for from_server, message in messages:
        sender, receiver = (server, client) if from_server else (client, server)
        wrapped = sender.wrap(message)
        assert len(wrapped) == len(message) + 16
        assert receiver.unwrap(wrapped) == message


@pytest.mark.parametrize("encrypts", [False, True])
@given(data=st.data())
def test_nothing_else_does(encrypts: bool, data: st.DataObject) -> None:
    """A changed byte, a cut, a repeated, an omitted and a reflected message."""
    server, client = pair(encrypts)
    first, second = client.wrap(b"first message"), client.wrap(b"second message")
    kind = data.draw(st.sampled_from(["byte", "cut", "again", "omitted", "reflected"]))
    if kind == "again":
        assert server.unwrap(first) == b"first message"
    at = data.draw(st.integers(0, len(first) - 1))
    sent = {
        "byte": first[:at] + bytes([first[at] ^ data.draw(st.integers(1, 255))]) + first[at + 1 :],
        "cut": first[:at],
        "again": first,
        "omitted": second,
        "reflected": server.wrap(b"from the server"),
    }[kind]
    with pytest.raises(BadMessage):
        server.unwrap(sent)


def test_encryption_hides_and_small_peers_are_refused() -> None:
    _, client = pair(True)
    assert b"password" not in client.wrap(b"password")
    for size in (0, 16, 1_023):
        with pytest.raises(ValueError, match="too small"):
            DigestProtection(SESSION, encrypts=True, of_server=True, peer_max_size=size)


@pytest.mark.parametrize("qop", ["auth-int", "auth-conf"])
def test_a_response_chooses_the_protection(qop: str) -> None:
    said = digest_md5.directives(digest_md5.response(digest_md5.challenge("nonce"), "user==", "password", "c")[0])
    said |= {"qop": qop, "cipher": "rc4", "maxbuf": "2000"}
    said["response"] = digest_md5._proof(said, "password", "AUTHENTICATE")
    proven = digest_md5.check_response(said, "password", "nonce")
    assert proven.protection is not None and proven.protection.max_bytes == 2_000 - 16
    for change in ({"maxbuf": "12"}, {"maxbuf": "x"}, {"maxbuf": "9" * 5_000}, {"qop": "auth"}, {"qop": "none"}):
        with pytest.raises(BadDigest):
            digest_md5.check_response(said | change, "password", "nonce")
    if qop == "auth-conf":
        with pytest.raises(BadDigest, match="cipher"):
            digest_md5.check_response(said | {"cipher": "3des"}, "password", "nonce")
