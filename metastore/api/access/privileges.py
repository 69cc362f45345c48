"""Privileges and roles."""

from lake.protocol.hive import (
    GetPrincipalsInRoleRequest,
    GetPrincipalsInRoleResponse,
    GetRoleGrantsForPrincipalRequest,
    GetRoleGrantsForPrincipalResponse,
    GrantRevokePrivilegeRequest,
    GrantRevokePrivilegeResponse,
    GrantRevokeRoleRequest,
    GrantRevokeRoleResponse,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    MetaException,
    PrincipalPrivilegeSet,
    PrivilegeBag,
    Role,
)
from metastore.api.methods import Call, answers
from metastore.api.rights import audited
from metastore.services.access.roles import principal_of


@answers("get_privilege_set", reads="principal user_name groups=group_names; ~SEE ref hiveObject", uncommitted="hidden")
def get_privilege_set(
    call: Call, ref: HiveObjectRef | None, user: str | None, groups: list[str] | None
) -> PrincipalPrivilegeSet:
    return call.metastore.privileges.of_object(call.scope, _object(ref), user, groups)


@answers("list_privileges", reads="~SEE ref hiveObject | privileges", uncommitted="hidden")
def list_privileges(
    call: Call, principal_name: str | None, principal_type: int | None, ref: HiveObjectRef | None
) -> list[HiveObjectPrivilege]:
    principal = None if principal_name is None else principal_of(principal_name, principal_type)
    return call.metastore.privileges.find(call.scope, principal, _object(ref))


@answers(
    "grant_privileges",
    changes="grants privileges.privileges[]",
    uncommitted="named",
    differs="a missing object is a MetaException",
)
def grant_privileges(call: Call, bag: PrivilegeBag | None) -> bool:
    call.metastore.privileges.grant(bag or PrivilegeBag())
    return True


@answers("revoke_privileges", changes="grants privileges.privileges[]", uncommitted="named")
def revoke_privileges(call: Call, bag: PrivilegeBag | None) -> bool:
    call.metastore.privileges.revoke(bag or PrivilegeBag())
    return True


@answers("grant_revoke_privileges", changes="grants request.privileges.privileges[]", uncommitted="named")
def grant_revoke_privileges(call: Call, request: GrantRevokePrivilegeRequest | None) -> GrantRevokePrivilegeResponse:
    request = request or GrantRevokePrivilegeRequest()
    bag = request.privileges or PrivilegeBag()
    if request.requestType == GrantRevokeType.GRANT:
        call.metastore.privileges.grant(bag)
    elif request.requestType == GrantRevokeType.REVOKE:
        call.metastore.privileges.revoke(bag, only_grant_option=bool(request.revokeGrantOption))
    else:
        raise MetaException(f"Unknown request type {request.requestType}")
    return GrantRevokePrivilegeResponse(True)


@answers(
    "refresh_privileges",
    changes="refreshed_grants objToRefresh grants=grantRequest.privileges.privileges[]",
    uncommitted="named",
    differs="a missing object is a MetaException",
)
def refresh_privileges(
    call: Call, ref: HiveObjectRef, authorizer: str | None, request: GrantRevokePrivilegeRequest | None
) -> GrantRevokePrivilegeResponse:
    bag = (request and request.privileges) or PrivilegeBag()
    call.metastore.privileges.refresh(ref, authorizer, bag)
    return GrantRevokePrivilegeResponse(True)


@answers("create_role", changes="ADMIN everything", uncommitted="no table")
def create_role(call: Call, role: Role | None) -> bool:
    call.metastore.roles.create(role or Role())
    return True


@answers("drop_role", changes="ADMIN everything", uncommitted="no table")
def drop_role(call: Call, name: str | None) -> bool:
    call.metastore.roles.drop(name)
    return True


@answers("get_role_names", reads="- | roles", uncommitted="no table")
def get_role_names(call: Call) -> list[str]:
    return call.metastore.roles.names()


@answers("grant_role", changes="GRANT role role_name", uncommitted="no table", audit=audited.role_grant)
def grant_role(
    call: Call,
    name: str | None,
    principal_name: str | None,
    principal_type: int | None,
    grantor: str | None,
    grantor_type: int | None,
    grant_option: bool | None,
) -> bool:
    call.metastore.roles.grant(
        name,
        principal_of(principal_name, principal_type),
        grantor=grantor,
        grantor_type=grantor_type,
        grant_option=bool(grant_option),
    )
    return True


@answers("revoke_role", changes="GRANT role role_name", uncommitted="no table", audit=audited.role_grant)
def revoke_role(call: Call, name: str | None, principal_name: str | None, principal_type: int | None) -> bool:
    call.metastore.roles.revoke(name, principal_of(principal_name, principal_type))
    return True


@answers(
    "grant_revoke_role",
    changes="GRANT role request.roleName",
    uncommitted="no table",
    audit=audited.requested_role_grant,
)
def grant_revoke_role(call: Call, request: GrantRevokeRoleRequest | None) -> GrantRevokeRoleResponse:
    request = request or GrantRevokeRoleRequest()
    principal = principal_of(request.principalName, request.principalType)
    option = bool(request.grantOption)
    if request.requestType == GrantRevokeType.GRANT:
        call.metastore.roles.grant(
            request.roleName,
            principal,
            grantor=request.grantor,
            grantor_type=request.grantorType,
            grant_option=option,
        )
    elif request.requestType == GrantRevokeType.REVOKE:
        call.metastore.roles.revoke(request.roleName, principal, only_grant_option=option)
    else:
        raise MetaException(f"Unknown request type {request.requestType}")
    return GrantRevokeRoleResponse(True)


@answers("list_roles", reads="principal principal_name principal_type", uncommitted="no table")
def list_roles(call: Call, principal_name: str | None, principal_type: int | None) -> list[Role]:
    return call.metastore.roles.of_principal(principal_of(principal_name, principal_type))


@answers("get_principals_in_role", reads="SEE role request.roleName", uncommitted="no table")
def get_principals_in_role(call: Call, request: GetPrincipalsInRoleRequest) -> GetPrincipalsInRoleResponse:
    return GetPrincipalsInRoleResponse(call.metastore.roles.members(request.roleName))


@answers(
    "get_role_grants_for_principal",
    reads="principal request.principal_name request.principal_type",
    uncommitted="no table",
)
def get_role_grants_for_principal(
    call: Call, request: GetRoleGrantsForPrincipalRequest
) -> GetRoleGrantsForPrincipalResponse:
    principal = principal_of(request.principal_name, request.principal_type)
    return GetRoleGrantsForPrincipalResponse(call.metastore.roles.grants_of(principal))


def _object(ref: HiveObjectRef | None) -> HiveObjectRef:
    if ref is None:
        raise MetaException("the object is missing")
    return ref
