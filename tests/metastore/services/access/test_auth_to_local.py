"""Users of Kerberos principals, by Hadoop's rules. The examples are those of Hadoop's and Hive's documentation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.services.access.auth_to_local import AuthToLocal, BadRule, NoUser

DOCUMENTED = r"""
RULE:[2:$1@$0](jhs@MYCOMPANY.COM)s/.*/mapred/
RULE:[2:$1@$0](n[a-z]*@MYCOMPANY.COM)s/@.*//
RULE:[1:$1@$0](.*@LOUD.COM)s/@.*///L
RULE:[1:$1](guest-.*)
RULE:[2:$1;$2](^.*;admin$)s/;admin$//
DEFAULT
"""


@pytest.mark.parametrize(
    ("principal", "user"),
    [
        ("ann@EXAMPLE.COM", "ann"),
        ("hive/host.example@EXAMPLE.COM", "hive"),
        ("jhs/host@MYCOMPANY.COM", "mapred"),
        ("nn/host@MYCOMPANY.COM", "nn"),
        ("Ann@LOUD.COM", "ann"),
        ("guest-1@ANYWHERE", "guest-1"),
        ("root/admin@ANYWHERE", "root"),
    ],
)
def test_documented_rules(principal: str, user: str) -> None:

    assert AuthToLocal(DOCUMENTED, "EXAMPLE.COM").user(principal) == user


@pytest.mark.parametrize(
    ("rule", "principal", "user"),
    [
        ("RULE:[1:$1]s/(a)(b)/$2$1/g", "abxab@R", "baxba"),
        ("RULE:[1:$1]s/(a)(b)/$2$1/", "abxab@R", "baxab"),
        (r"RULE:[1:$1]s/a/\$1/", "a@R", "$1"),
        ("RULE:[1:$0-$1]/L", "A@R", "r-a"),
        ("DEFAULT/L", "ANN@R", "ann"),
        ("RULE:[1:$1](x.*) RULE:[1:other]", "ann@R", "other"),
        ("RULE:[2:$2_$1]", "a/b@R", "b_a"),
    ],
)
def test_rule(rule: str, principal: str, user: str) -> None:
    assert AuthToLocal(rule, "R").user(principal) == user


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", "ann@ELSEWHERE"),
        ("DEFAULT", "ann"),
        ("DEFAULT", "a/b/c@R"),
        ("DEFAULT", r"ann\@R@R"),
        ("DEFAULT", "ann@R\n"),
        ("DEFAULT", "x" * 2000 + "@R"),
        ("RULE:[1:$1](a)", "ab@R"),
        ("RULE:[1:$1@$0]", "ann@R"),
        ("RULE:[1:$1]s/.*//", "ann@R"),
        ("RULE:[2:$1/$2]", "a/b@R"),
    ],
)
def test_nobody(rules: str, principal: str) -> None:
    """A realm that no rule knows is refused, and so is a name that is left with a host or realm."""
    with pytest.raises(NoUser):
        AuthToLocal(rules, "R").user(principal)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "default",
        "RULE:[1]",
        "RULE:[3:$1]",
        "RULE:[1:$2]",
        "RULE:[1:$1](()",
        "RULE:[1:$1](*)",
        "RULE:[1:$1]s/a/$1/",
        "DEFAULT RULE",
        "DEFAULTS",
        r"RULE:[1:$1]s/a/\\\/",
        "RULE:[1:$1](a)x",
    ],
)
def test_rules_that_can_not_be_read(text: str) -> None:
    with pytest.raises(BadRule):
        AuthToLocal(text, "R")


@given(st.text(), st.text())
def test_any_principal_has_a_plain_user_or_none(name: str, realm: str) -> None:
    try:
        user = AuthToLocal(DOCUMENTED, "R").user(f"{name}@{realm}")
    except NoUser:
        return
    assert user
    assert not set("/@") & set(user)
