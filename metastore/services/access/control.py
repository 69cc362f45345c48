"""Access control as the operator has switched it on: who decides, who may do anything, and whose names are believed."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from metastore.services.access.caller import Caller
from metastore.services.access.places import Places
from metastore.services.access.rights import Authorizer
from metastore.services.access.storage import user_of
from metastore.warehouse.permissions import made_for

GROUP = "group:"
"""Before the name of a group among `admins`."""


@dataclass(frozen=True, slots=True)
class AccessControl:
    """`admins`: users, and groups with `group:` before their names. They may do anything, whatever a policy says.

    `trust_unproven`: whether a name counts that nobody has proven; otherwise such a caller is nobody.
    `by_directories`: whether permissions of directories decide. Then those that a call makes belong to its caller.
    """

    authorizer: Authorizer
    places: Places
    admins: frozenset[str]
    trust_unproven: bool
    by_directories: bool = False

    def acting(self, caller: Caller) -> Caller:
        """A caller as decisions see it: without the name and groups that it only claims."""
        if caller.mechanism == "none" and not self.trust_unproven:
            return replace(caller, user=None, groups=())
        return caller

    def is_admin(self, caller: Caller) -> bool:
        """Whether a caller, as `acting` returns it, is one of the operator's administrators, or the server itself."""
        if caller.mechanism == "server":
            return True
        if not self.admins:
            return False
        if caller.user in self.admins:
            return True
        for name in caller.groups:  # noqa: SIM110  # asked for each call, where a generator would cost the most
            if GROUP + name in self.admins:
                return True
        return False

    def making(self, caller: Caller) -> AbstractContextManager[None]:
        """What holds while a call of a caller's is answered: whose the directories are that are made."""
        return made_for(user_of(caller)) if self.by_directories else nullcontext()

    def roles(self, caller: Caller) -> frozenset[str]:
        """The roles of a caller."""
        return self.authorizer.roles(caller)
