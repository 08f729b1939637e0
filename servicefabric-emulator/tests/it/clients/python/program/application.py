"""`sfctl application`, and types."""

import xml.etree.ElementTree as ElementTree

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import checks, event_of, items, partition_of, replicas_of


def local(element):
    """The name of an element without its namespace."""
    return element.tag.split("}")[-1]


@checks("application type-list, application type")
def types(sfctl):
    found = [(each["name"], each["version"]) for each in items(sfctl("application type-list"))]
    expect_equal(found, [("MeterType", "3.1"), ("ShopType", "1.0.0"), ("ShopType", "2.0.0")], "types")
    named = items(sfctl("application type", application_type_name="ShopType", application_type_version="1.0.0"))
    shop = the_one(named, "ShopType", lambda each: True)
    expect_equal(shop["status"], "Available", "status")
    parameters = {each["key"]: each["value"] for each in shop["defaultParameterList"]}
    expect_equal(parameters, {"Host": "shop.invalid", "Policy": "RoundRobin"}, "default parameters")
    expect_equal(items(sfctl("application type", application_type_name="NoType")), [], "an unknown type")


@checks("application manifest, service manifest")
def manifests(sfctl):
    of_shop = {"application_type_name": "ShopType", "application_type_version": "1.0.0"}
    root = ElementTree.fromstring(sfctl("application manifest", **of_shop)["manifest"])
    expect_equal((local(root), root.get("ApplicationTypeVersion")), ("ApplicationManifest", "1.0.0"), "root element")
    root = ElementTree.fromstring(sfctl("service manifest", service_manifest_name="WebPkg", **of_shop)["manifest"])
    expect_equal((local(root), root.get("Name")), ("ServiceManifest", "WebPkg"), "root element")
    sfctl.refused("FABRIC_E_SERVICE_MANIFEST_NOT_FOUND", "service manifest", service_manifest_name="NoPkg", **of_shop)
    unknown = {"application_type_name": "NoType", "application_type_version": "1.0.0"}
    sfctl.refused("FABRIC_E_APPLICATION_TYPE_NOT_FOUND", "application manifest", **unknown)


@checks("service type-list")
def service_types(sfctl):
    found = sfctl("service type-list", application_type_name="ShopType", application_type_version="1.0.0")
    described = {each["serviceTypeDescription"]["serviceTypeName"]: each["serviceTypeDescription"] for each in found}
    expect_equal(sorted(described), ["CartType", "WebType"], "types")
    expect_fields(
        described["CartType"], {"isStateful": True, "hasPersistedState": True, "kind": "Stateful"}, "CartType"
    )
    expect_fields(described["WebType"], {"isStateful": False, "kind": "Stateless"}, "WebType")
    extension = the_one(described["WebType"]["extensions"], "extension", lambda each: each["key"] == "YARP-preview")
    labels = {label.get("Key"): label.text for label in ElementTree.fromstring(extension["value"])}
    expect_equal(labels["YARP.Enable"], "true", "label")
    code = "FABRIC_E_APPLICATION_TYPE_NOT_FOUND"
    sfctl.refused(code, "service type-list", application_type_name="ShopType", application_type_version="9")


@checks("application list, application info")
def applications(sfctl):
    found = items(sfctl("application list"))
    expect_equal(
        [each["name"] for each in found], ["fabric:/Big Shop", "fabric:/Meters/North", "fabric:/Shop"], "names"
    )
    of_type = items(sfctl("application list", application_type_name="MeterType"))
    expect_equal([each["id"] for each in of_type], ["Meters~North"], "ids of one type")
    shop = sfctl("application info", application_id="Shop")
    expect_equal(shop, found[2], "fabric:/Shop")
    expect_fields(
        shop, {"id": "Shop", "typeName": "ShopType", "typeVersion": "1.0.0", "status": "Ready"}, "fabric:/Shop"
    )
    expect_equal(
        [(each["key"], each["value"]) for each in shop["parameters"]], [("Host", "shop.example")], "parameters"
    )
    without = sfctl("application info", application_id="Shop", exclude_application_parameters=True)
    expect(not without["parameters"], "parameters although they are excluded")
    expect_equal(sfctl("application info", application_id="Nowhere"), None, "an application that is not there")


@checks("application health, application report-health")
def health(sfctl):
    found = sfctl("application health", application_id="Shop")
    expect_fields(found, {"name": "fabric:/Shop", "aggregatedHealthState": "Ok"}, "health")
    expect("fabric:/Shop/Web" in [each["serviceName"] for each in found["serviceHealthStates"]], "a service is missing")
    report = {"source_id": "Operator", "health_property": "Mood", "health_state": "Warning", "ttl": "PT1M"}
    sfctl("application report-health", application_id="Shop", remove_when_expired="true", **report)
    expect_equal(
        event_of(sfctl("application health", application_id="Shop"), "Operator", "Mood"), None, "before it is sent"
    )
    sfctl.advance(30)
    found = sfctl("application health", application_id="Shop", events_health_state_filter="4")
    expect_equal(found["aggregatedHealthState"], "Warning", "health after the report was sent")
    expect(event_of(found, "Operator", "Mood") is not None, "the event is missing")
    sfctl.advance(61)
    sfctl.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", "application health", application_id="Nowhere")


@checks("application deployed-list, application deployed, application deployed-health")
def deployed(sfctl):
    node = replicas_of(sfctl, partition_of(sfctl, "Shop~Web"))[0]["nodeName"]
    found = items(sfctl("application deployed-list", node_name=node, include_health_state=True))
    shop = the_one(found, "Shop", lambda each: each["id"] == "Shop")
    expect_fields(shop, {"status": "Active", "typeVersion": "1.0.0", "healthState": "Ok"}, "fabric:/Shop")
    one = sfctl("application deployed", node_name=node, application_id="Shop", include_health_state=True)
    expect_equal(one, shop, "by id")
    expect_equal(sfctl("application deployed", node_name=node, application_id="Nowhere"), None, "nothing")
    found = sfctl("application deployed-health", node_name=node, application_id="Shop")
    expect_fields(found, {"nodeName": node, "aggregatedHealthState": "Ok"}, "health")
    sfctl.refused("FABRIC_E_NODE_NOT_FOUND", "application deployed-list", node_name="nobody")


@checks("application create, application delete")
def create(sfctl):
    new = {"app_name": "fabric:/Branch", "app_type": "ShopType", "app_version": "1.0.0"}
    sfctl("application create", parameters={"Host": "branch.example"}, **new)
    sfctl.settle()
    found = sfctl("application info", application_id="Branch")
    expect_fields(found, {"name": "fabric:/Branch", "status": "Ready"}, "fabric:/Branch")
    expect_equal([each["value"] for each in found["parameters"]], ["branch.example"], "parameters")
    sfctl.refused("FABRIC_E_APPLICATION_ALREADY_EXISTS", "application create", **new)
    other = {**new, "app_name": "fabric:/Other", "app_version": "9"}
    sfctl.refused("FABRIC_E_APPLICATION_TYPE_NOT_FOUND", "application create", **other)
    sfctl("application delete", application_id="Branch", force_remove="true")
    sfctl.settle()
    expect_equal(sfctl("application info", application_id="Branch"), None, "a deleted application")
    sfctl.refused("FABRIC_E_APPLICATION_NOT_FOUND", "application delete", application_id="Branch")


@checks("application provision, application unprovision")
def provision(sfctl):
    third = {"application_type_name": "ShopType", "application_type_version": "3.0.0"}
    expect_equal(items(sfctl("application type", **third)), [], "a version that is in the image store only")
    sfctl("application provision", application_type_build_path="ShopType/3.0.0")
    sfctl.settle()
    expect_equal([each["status"] for each in items(sfctl("application type", **third))], ["Available"], "status")
    sfctl("application unprovision", **third)
    sfctl.settle()
    expect_equal(items(sfctl("application type", **third)), [], "a version that was unprovisioned")
    sfctl.refused("FABRIC_E_APPLICATION_TYPE_NOT_FOUND", "application unprovision", **third)
    in_use = {"application_type_name": "MeterType", "application_type_version": "3.1"}
    sfctl.refused("FABRIC_E_APPLICATION_TYPE_IN_USE", "application unprovision", **in_use)


@checks("application upgrade, application upgrade-status, application upgrade-resume, application upgrade-rollback")
def upgrade(sfctl):
    target = {"application_id": "Meters~North", "parameters": {}}
    sfctl.refused(
        "FABRIC_E_APPLICATION_TYPE_NOT_FOUND",
        "application upgrade",
        application_version="9",
        mode="UnmonitoredAuto",
        **target
    )
    shop = {"application_id": "Shop", "parameters": {"Host": "new.example"}}
    sfctl("application upgrade", application_version="2.0.0", mode="UnmonitoredManual", **shop)
    sfctl.settle()
    waiting = sfctl("application upgrade-status", application_id="Shop")
    expect_fields(
        waiting,
        {
            "upgradeState": "RollingForwardPending",
            "targetApplicationTypeVersion": "2.0.0",
            "rollingUpgradeMode": "UnmonitoredManual",
        },
        "progress",
    )
    expect_equal(sfctl("application info", application_id="Shop")["status"], "Upgrading", "status of the application")
    sfctl("application upgrade-resume", application_id="Shop", upgrade_domain_name=waiting["nextUpgradeDomain"])
    sfctl.settle()
    states = [each["state"] for each in sfctl("application upgrade-status", application_id="Shop")["upgradeDomains"]]
    expect_equal(states.count("Completed"), 2, "domains that are done")
    sfctl("application upgrade-rollback", application_id="Shop")
    for _ in range(10):
        state = sfctl("application upgrade-status", application_id="Shop")["upgradeState"]
        if state == "RollingBackCompleted":
            break
        sfctl.settle()
    expect_equal(state, "RollingBackCompleted", "state at the end")
    sfctl.settle()
    found = sfctl("application info", application_id="Shop")
    expect_fields(found, {"typeVersion": "1.0.0", "status": "Ready"}, "fabric:/Shop")
