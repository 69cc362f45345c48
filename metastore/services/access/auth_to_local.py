"""Users of Kerberos principals: the rules of Hadoop's `hadoop.security.auth_to_local`.

The syntax and the meaning are those of Hadoop's `KerberosName`:

    RULE:[<components>:<format>](<pattern>)s/<from>/<to>/g/L
    DEFAULT

A rule concerns principals with so many components. In its format `$0` is the realm, `$1` and `$2` are the components.
It applies if the pattern, when there is one, matches all of the result. What `from` matches is replaced by `to` (once,
or with `g` everywhere), and `L` writes it in lower case. DEFAULT takes the first component of a principal of the
default realm. The first rule that applies decides.
"""

import re
from dataclasses import dataclass
from typing import Self

MAX_PRINCIPAL_CHARACTERS = 1024
"""Longer principals are refused unread."""

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:\[(?P<components>\d):(?P<format>[^\]]*)\]"
    r"(?:\((?P<pattern>[^)]*)\))?(?:s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?)(?:/?(?P<lower>L))?(?=\s|$)"
)
_PRINCIPAL = re.compile(r"([^/@\\\s]+)(?:/([^/@\\\s]+))?(?:@([^/@\\\s]+))")
_JAVA_GROUP = re.compile(r"\\(.)|\$(\d)|(\\)$")


class BadRule(ValueError):
    """A rule can't be read."""


class NoUser(Exception):
    """No rule gives a principal a user. The text says which principal."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The name of a user or service in Kerberos: `user@REALM` or `service/host@REALM`."""

    components: tuple[str, ...]
    realm: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for names of another form. Escaped characters are refused: nobody needs them in names."""
        found = _PRINCIPAL.fullmatch(text) if len(text) <= MAX_PRINCIPAL_CHARACTERS else None
        if found is None:
            raise ValueError(f"{text[:100]!r} is no principal of the form user@REALM or service/host@REALM")
        return cls(tuple(each for each in found.groups()[:2] if each is not None), found[3])

    def __str__(self) -> str:
        return f"{'/'.join(self.components)}@{self.realm}"


@dataclass(frozen=True, slots=True)
class _Rule:
    components: int
    format: str
    pattern: re.Pattern[str] | None
    replaced: re.Pattern[str] | None
    replacement: str
    everywhere: bool
    lower: bool

    def apply(self, principal: Principal) -> str | None:
        """The user, or None if the rule doesn't concern the principal."""
        if len(principal.components) != self.components:
            return None
        parts = (principal.realm, *principal.components)
        name = re.sub(r"\$(\d)", lambda found: parts[int(found[1])], self.format)
        if self.pattern is not None and not self.pattern.fullmatch(name):
            return None
        if self.replaced is not None:
            name = self.replaced.sub(self.replacement, name, count=0 if self.everywhere else 1)
        return name.lower() if self.lower else name


@dataclass(frozen=True, slots=True)
class _Default:
    realm: str
    lower: bool

    def apply(self, principal: Principal) -> str | None:
        if principal.realm != self.realm:
            return None
        name = principal.components[0]
        return name.lower() if self.lower else name


class AuthToLocal:
    """Rules that were read."""

    def __init__(self, text: str, default_realm: str) -> None:
        """`text`: rules with white space between. Raises BadRule."""
        self._rules = list(_read(text, default_realm))
        if not self._rules:
            raise BadRule("there is no rule; DEFAULT takes the first component of a principal of the default realm")

    def user(self, text: str) -> str:
        """The user of a principal.

        Raises NoUser if no rule applies, or if the one that does leaves `/`, `@` or nothing: such a name is no user's.
        """
        try:
            principal = Principal.parse(text)
        except ValueError as error:
            raise NoUser(str(error)) from None
        for rule in self._rules:
            name = rule.apply(principal)
            if name is None:
                continue
            if not name or "/" in name or "@" in name:
                raise NoUser(f"the rule of auth_to_local for {principal} gives {name!r}, which is no user's name")
            return name
        raise NoUser(f"no rule of auth_to_local gives principal {principal} a user")


def _read(text: str, default_realm: str) -> "list[_Rule | _Default]":
    rules: list[_Rule | _Default] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _RULE.match(text, at, end)
        if found is None:
            raise BadRule(
                f"can't read {text[at:end].strip()[:80]!r}: expected DEFAULT or RULE:[n:format](pattern)s/a/b/"
            )
        at = found.end()
        lower = found["lower"] is not None
        rules.append(_Default(default_realm, lower) if found["default"] else _rule(found, lower=lower))
    return rules


def _rule(found: re.Match[str], *, lower: bool) -> _Rule:
    components = int(found["components"])
    if components not in (1, 2):
        raise BadRule(f"{found[0].strip()}: principals have 1 or 2 components, not {components}")
    if any(int(number) > components for number in re.findall(r"\$(\d)", found["format"])):
        raise BadRule(f"{found[0].strip()}: its format names a component that such principals don't have")
    try:
        pattern = None if found["pattern"] is None else re.compile(found["pattern"])
        replaced = None if found["from"] is None else re.compile(found["from"])
        replacement = _JAVA_GROUP.sub(_in_python, found["to"] or "")
        if replaced is not None:
            replaced.sub(replacement, "")  # raises re.error for a group that the pattern doesn't have
    except (re.error, IndexError) as error:
        raise BadRule(f"{found[0].strip()}: {error}") from None
    return _Rule(components, found["format"], pattern, replaced, replacement, found["all"] is not None, lower)


def _in_python(found: re.Match[str]) -> str:
    """A part of Java's replacement text (`$1`, `\\x`) as Python writes it."""
    if found[3]:
        raise IndexError("the replacement ends with a backslash")
    if found[2]:
        return f"\\g<{found[2]}>"
    return "\\\\" if found[1] == "\\" else str(found[1])
