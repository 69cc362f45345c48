"""The form in which a handler's declaration says which rights its method needs.

    @answers("get_table_req", reads="SEE table req.dbName req.tblName cat=req.catName")

A text holds needs with semicolons between, or `-` for none. Behind a bar is what else is done: for a method that reads
the filter of its answer (`filters`), for one that changes something the check of what is new (`changes`). Both take
paths.

A need is an action, a kind of object, and the arguments that name the object, as paths from the method's arguments in
the IDL. A path with `[]` goes through a list, and a need with such a path is one for each item. `?`: where this
argument is missing, the need is none. `~` before an action: where the object is hidden, the answer is an empty one and
no error. `if=`: the need is one only if this argument is set. A kind without an action, in lower case, decides by more
than names: `special`. `databases` is a pattern of names, and a need only if it matches one name alone.
"""

from dataclasses import dataclass
from typing import Any

from metastore.services.access.rights import Action


@dataclass(frozen=True, slots=True)
class Path:
    """Where in the arguments something is. `within`: the list whose items it begins at, if there is one."""

    within: tuple[str, ...] | None
    names: tuple[str, ...]
    optional: bool

    @classmethod
    def parse(cls, text: str) -> "Path":
        optional = text.endswith("?")
        head, many, rest = text.removesuffix("?").partition("[]")
        names = tuple(name for name in (rest if many else head).split(".") if name)
        return cls(tuple(head.split(".")) if many else None, names, optional)


@dataclass(frozen=True, slots=True)
class Need:
    """One need of a method. `action`: None for one of the special kinds."""

    action: Action | None
    kind: str
    paths: tuple[Path, ...]
    named: dict[str, Path]
    gentle: bool

    @property
    def within(self) -> tuple[str, ...] | None:
        """The list through which the paths go."""
        found = {each.within for each in (*self.paths, *self.named.values()) if each.within is not None}
        if len(found) > 1:
            raise ValueError(f"a need goes through one list, not through {found}")
        return next(iter(found), None)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a method needs. `changes`: whether it changes something. `extra`: the filter or the check, with paths."""

    changes: bool
    needs: tuple[Need, ...]
    extra: str | None
    extra_paths: tuple[Path, ...]

    @classmethod
    def parse(cls, text: str, *, changes: bool) -> "Rule":
        """The rule that a text says, in this module's form. Raises ValueError or LookupError for another text."""
        needs, _, extra = text.partition("|")
        words = extra.split()
        parsed = () if needs.strip() == "-" else tuple(_need(each) for each in needs.split(";"))
        return cls(changes, parsed, words[0] if words else None, tuple(Path.parse(each) for each in words[1:]))

    @property
    def by_names_alone(self) -> bool:
        """Whether the needs follow from the arguments, and the answer is for everybody the same who has them."""
        return (
            not self.changes
            and self.extra is None
            and all(need.action is not None and not need.gentle for need in self.needs)
        )


def _need(text: str) -> Need:
    words = text.split()
    action = None
    gentle = words[0].startswith("~")
    if words[0].isupper():
        action = Action[words.pop(0).removeprefix("~")]
    kind, *paths = words
    named = dict(each.split("=", 1) for each in paths if "=" in each)
    return Need(
        action,
        kind,
        tuple(Path.parse(each) for each in paths if "=" not in each),
        {name: Path.parse(path) for name, path in named.items()},
        gentle,
    )


def value_at(value: Any, names: tuple[str, ...]) -> Any:
    """What is at a path; None where something on the way is missing."""
    for name in names:
        if value is None:
            return None
        value = getattr(value, name)
    return value
