"""Resource plans of workload management."""

from lake.protocol.hive import (
    MetaException,
    WMAlterPoolRequest,
    WMAlterPoolResponse,
    WMAlterResourcePlanRequest,
    WMAlterResourcePlanResponse,
    WMAlterTriggerRequest,
    WMAlterTriggerResponse,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrDropTriggerToPoolMappingResponse,
    WMCreateOrUpdateMappingRequest,
    WMCreateOrUpdateMappingResponse,
    WMCreatePoolRequest,
    WMCreatePoolResponse,
    WMCreateResourcePlanRequest,
    WMCreateResourcePlanResponse,
    WMCreateTriggerRequest,
    WMCreateTriggerResponse,
    WMDropMappingRequest,
    WMDropMappingResponse,
    WMDropPoolRequest,
    WMDropPoolResponse,
    WMDropResourcePlanRequest,
    WMDropResourcePlanResponse,
    WMDropTriggerRequest,
    WMDropTriggerResponse,
    WMGetActiveResourcePlanRequest,
    WMGetActiveResourcePlanResponse,
    WMGetAllResourcePlanRequest,
    WMGetAllResourcePlanResponse,
    WMGetResourcePlanRequest,
    WMGetResourcePlanResponse,
    WMGetTriggersForResourePlanRequest,
    WMGetTriggersForResourePlanResponse,
    WMMapping,
    WMNullableResourcePlan,
    WMTrigger,
    WMValidateResourcePlanRequest,
    WMValidateResourcePlanResponse,
)
from metastore.api.methods import Call, answers
from metastore.services.registry import resource_plan_rules as rules


@answers("create_resource_plan", changes="ADMIN everything", uncommitted="no table", stores=True)
def create_resource_plan(call: Call, request: WMCreateResourcePlanRequest) -> WMCreateResourcePlanResponse:
    if request.resourcePlan is None:
        raise MetaException("the resource plan is missing")
    call.metastore.resource_plans.create(request.resourcePlan, request.copyFrom)
    return WMCreateResourcePlanResponse()


@answers("get_resource_plan", reads="ADMIN everything", uncommitted="no table")
def get_resource_plan(call: Call, request: WMGetResourcePlanRequest) -> WMGetResourcePlanResponse:
    return WMGetResourcePlanResponse(call.metastore.resource_plans.get(request.resourcePlanName, request.ns))


@answers("get_active_resource_plan", reads="ADMIN everything", uncommitted="no table")
def get_active_resource_plan(call: Call, request: WMGetActiveResourcePlanRequest) -> WMGetActiveResourcePlanResponse:
    return WMGetActiveResourcePlanResponse(call.metastore.resource_plans.active(request.ns))


@answers("get_all_resource_plans", reads="ADMIN everything", uncommitted="no table")
def get_all_resource_plans(call: Call, request: WMGetAllResourcePlanRequest) -> WMGetAllResourcePlanResponse:
    return WMGetAllResourcePlanResponse(call.metastore.resource_plans.all(request.ns))


@answers("alter_resource_plan", changes="ADMIN everything", uncommitted="no table")
def alter_resource_plan(call: Call, request: WMAlterResourcePlanRequest) -> WMAlterResourcePlanResponse:
    return WMAlterResourcePlanResponse(
        call.metastore.resource_plans.alter(
            request.resourcePlanName,
            request.ns,
            request.resourcePlan or WMNullableResourcePlan(),
            activate_disabled=bool(request.isEnableAndActivate),
            deactivate=bool(request.isForceDeactivate),
            replace=bool(request.isReplace),
        )
    )


@answers("validate_resource_plan", reads="ADMIN everything", uncommitted="no table")
def validate_resource_plan(call: Call, request: WMValidateResourcePlanRequest) -> WMValidateResourcePlanResponse:
    return call.metastore.resource_plans.validate(request.resourcePlanName, request.ns)


@answers("drop_resource_plan", changes="ADMIN everything", uncommitted="no table")
def drop_resource_plan(call: Call, request: WMDropResourcePlanRequest) -> WMDropResourcePlanResponse:
    call.metastore.resource_plans.drop(request.resourcePlanName, request.ns)
    return WMDropResourcePlanResponse()


@answers(
    "create_wm_pool", changes="ADMIN everything", uncommitted="no table", stores=True, differs="names in lower case"
)
def create_wm_pool(call: Call, request: WMCreatePoolRequest) -> WMCreatePoolResponse:
    if request.pool is None:
        raise MetaException("the pool is missing")
    with call.metastore.resource_plans.edited(request.pool.resourcePlanName, request.pool.ns) as plan:
        rules.add_pool(plan, request.pool)
    return WMCreatePoolResponse()


@answers(
    "alter_wm_pool",
    changes="ADMIN everything",
    uncommitted="no table",
    differs="names in lower case; what refers to a moved pool follows it",
)
def alter_wm_pool(call: Call, request: WMAlterPoolRequest) -> WMAlterPoolResponse:
    if request.pool is None:
        raise MetaException("the pool is missing")
    with call.metastore.resource_plans.edited(request.pool.resourcePlanName, request.pool.ns) as plan:
        rules.alter_pool(plan, request.poolPath, request.pool)
    return WMAlterPoolResponse()


@answers("drop_wm_pool", changes="ADMIN everything", uncommitted="no table", differs="compares whole paths")
def drop_wm_pool(call: Call, request: WMDropPoolRequest) -> WMDropPoolResponse:
    with call.metastore.resource_plans.edited(request.resourcePlanName, request.ns) as plan:
        rules.drop_pool(plan, request.poolPath)
    return WMDropPoolResponse()


@answers("create_wm_trigger", changes="ADMIN everything", uncommitted="no table", stores=True)
def create_wm_trigger(call: Call, request: WMCreateTriggerRequest) -> WMCreateTriggerResponse:
    trigger = _trigger(request.trigger)
    with call.metastore.resource_plans.edited(trigger.resourcePlanName, trigger.ns) as plan:
        rules.add_trigger(plan, trigger)
    return WMCreateTriggerResponse()


@answers("alter_wm_trigger", changes="ADMIN everything", uncommitted="no table")
def alter_wm_trigger(call: Call, request: WMAlterTriggerRequest) -> WMAlterTriggerResponse:
    trigger = _trigger(request.trigger)
    with call.metastore.resource_plans.edited(trigger.resourcePlanName, trigger.ns) as plan:
        rules.alter_trigger(plan, trigger)
    return WMAlterTriggerResponse()


@answers(
    "drop_wm_trigger",
    changes="ADMIN everything",
    uncommitted="no table",
    differs="a missing one is NoSuchObjectException",
)
def drop_wm_trigger(call: Call, request: WMDropTriggerRequest) -> WMDropTriggerResponse:
    with call.metastore.resource_plans.edited(request.resourcePlanName, request.ns) as plan:
        rules.drop_trigger(plan, request.triggerName)
    return WMDropTriggerResponse()


@answers("get_triggers_for_resourceplan", reads="ADMIN everything", uncommitted="no table")
def get_triggers_for_resourceplan(
    call: Call, request: WMGetTriggersForResourePlanRequest
) -> WMGetTriggersForResourePlanResponse:
    return WMGetTriggersForResourePlanResponse(
        call.metastore.resource_plans.triggers(request.resourcePlanName, request.ns)
    )


@answers("create_or_drop_wm_trigger_to_pool_mapping", changes="ADMIN everything", uncommitted="no table")
def create_or_drop_wm_trigger_to_pool_mapping(
    call: Call, request: WMCreateOrDropTriggerToPoolMappingRequest
) -> WMCreateOrDropTriggerToPoolMappingResponse:
    with call.metastore.resource_plans.edited(request.resourcePlanName, request.ns) as plan:
        rules.link_trigger(plan, request.triggerName, request.poolPath, drop=bool(request.drop))
    return WMCreateOrDropTriggerToPoolMappingResponse()


@answers("create_or_update_wm_mapping", changes="ADMIN everything", uncommitted="no table", stores=True)
def create_or_update_wm_mapping(call: Call, request: WMCreateOrUpdateMappingRequest) -> WMCreateOrUpdateMappingResponse:
    mapping = _mapping(request.mapping)
    with call.metastore.resource_plans.edited(mapping.resourcePlanName, mapping.ns) as plan:
        rules.put_mapping(plan, mapping, update=bool(request.update))
    return WMCreateOrUpdateMappingResponse()


@answers("drop_wm_mapping", changes="ADMIN everything", uncommitted="no table")
def drop_wm_mapping(call: Call, request: WMDropMappingRequest) -> WMDropMappingResponse:
    mapping = _mapping(request.mapping)
    with call.metastore.resource_plans.edited(mapping.resourcePlanName, mapping.ns) as plan:
        rules.drop_mapping(plan, mapping)
    return WMDropMappingResponse()


def _trigger(trigger: WMTrigger | None) -> WMTrigger:
    if trigger is None:
        raise MetaException("the trigger is missing")
    return trigger


def _mapping(mapping: WMMapping | None) -> WMMapping:
    if mapping is None:
        raise MetaException("the mapping is missing")
    return mapping
