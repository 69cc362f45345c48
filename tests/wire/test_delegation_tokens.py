"""Delegation tokens in Hadoop's encoding, and DIGEST-MD5, against what others compute and against any bytes."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metastore.wire import delegation_token, digest_md5
from metastore.wire.delegation_token import BadToken, Identifier, Token
from metastore.wire.digest_md5 import BadDigest

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
    assert digest_md5.check_response(said, "password", "nonce") == proof
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
