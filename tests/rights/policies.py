"""Authorizers that a test's server loads."""

import itertools
import time
from typing import Any

from metastore.services.access.rights import Action, Decision, Kind, Securable


class OnlyShop:
    """Everybody may see what is in `shop`; the user `hang` waits for ever, for `fail` it breaks."""

    def decide(self, caller: Any, action: Action, object: Securable) -> Any:
        if caller.user == "hang":
            time.sleep(3600)
        if caller.user == "fail":
            raise RuntimeError("broken")
        if caller.user == "odd":
            return True
        if caller.user == "unsayable":
            return Decision(True, {object})  # type: ignore[arg-type]
        reading = action in (Action.SEE, Action.LIST, Action.SELECT)
        return Decision(object.kind is Kind.EVERYTHING or (object.database == "shop" and reading), "only shop")


class Endless(OnlyShop):
    """Its lists have no end."""

    def visible(self, caller: Any, objects: Any, action: Action) -> Any:
        return itertools.repeat(True)


def endless() -> Endless:
    return Endless()


def only_shop() -> OnlyShop:
    return OnlyShop()


def nothing() -> None:
    return None


class OwnAndShown:
    """The user `bob` may do everything in the database `owned_db`, and read one table of another."""

    def decide(self, caller: Any, action: Action, object: Securable) -> Decision:
        reading = action in (Action.SEE, Action.LIST, Action.SELECT)
        shown = object.database == "open_db" and object.table in ("", "shown_t") and reading
        own = object.database == "owned_db" and object.kind in (Kind.DATABASE, Kind.TABLE)
        return Decision(caller.user == "bob" and (own or shown or action is Action.TAKE_PART), "own and shown")


def own_and_shown() -> OwnAndShown:
    return OwnAndShown()
