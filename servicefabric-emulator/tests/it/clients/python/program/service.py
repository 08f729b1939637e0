"""`sfctl service` and `sfctl property`."""

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import checks, event_of, items, partition_of, replicas_of


@checks("service list, service info")
def services(sfctl):
    found = items(sfctl("service list", application_id="Shop"))
    expect_equal([each["id"] for each in found], ["Shop~Admin~Web", "Shop~Cart", "Shop~Regions", "Shop~Web"], "ids")
    cart = sfctl("service info", application_id="Shop", service_id="Shop~Cart")
    expect_equal(cart, found[1], "fabric:/Shop/Cart")
    expect_fields(
        cart,
        {"name": "fabric:/Shop/Cart", "serviceKind": "Stateful", "serviceStatus": "Active", "hasPersistedState": True},
        "fabric:/Shop/Cart",
    )
    of_type = items(sfctl("service list", application_id="Shop", service_type_name="WebType"))
    expect_equal({each["serviceKind"] for each in of_type}, {"Stateless"}, "kinds")
    expect_equal(sfctl("service info", application_id="Shop", service_id="Shop~Nothing"), None, "nothing")
    sfctl.refused("FABRIC_E_APPLICATION_NOT_FOUND", "service list", application_id="Nowhere")


@checks("service description, service app-name")
def description(sfctl):
    web = sfctl("service description", service_id="Shop~Web")
    expect_fields(web, {"serviceKind": "Stateless", "instanceCount": 3, "applicationName": "fabric:/Shop"}, "Web")
    expect_equal(web["partitionDescription"]["partitionScheme"], "Singleton", "scheme of Web")
    cart = sfctl("service description", service_id="Shop~Cart")
    expect_fields(cart, {"serviceKind": "Stateful", "targetReplicaSetSize": 3, "minReplicaSetSize": 2}, "Cart")
    expect_fields(cart["partitionDescription"], {"partitionScheme": "UniformInt64Range", "count": 4}, "scheme of Cart")
    name = sfctl("service app-name", service_id="Shop~Admin~Web")
    expect_fields(name, {"id": "Shop", "name": "fabric:/Shop"}, "application of a service")
    sfctl.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", "service description", service_id="Shop~Nothing")
    sfctl.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", "service app-name", service_id="Shop~Nothing")


@checks("service health, service report-health")
def health(sfctl):
    found = sfctl("service health", service_id="Shop~Web")
    expect_fields(found, {"name": "fabric:/Shop/Web", "aggregatedHealthState": "Ok"}, "health")
    report = {
        "service_id": "Shop~Web",
        "source_id": "YARP",
        "health_property": "DynamicConfig",
        "health_state": "Warning",
        "description": "hi",
        "ttl": "PT1M30S",
        "remove_when_expired": "true",
        "immediate": True,
    }
    sfctl("service report-health", sequence_number="7", **report)
    found = sfctl("service health", service_id="Shop~Web")
    event = event_of(found, "YARP", "DynamicConfig")
    expect_fields(
        event,
        {
            "healthState": "Warning",
            "description": "hi",
            "timeToLiveInMilliSeconds": "0:01:30",
            "sequenceNumber": "7",
            "removeWhenExpired": True,
        },
        "event",
    )
    sfctl.refused("FABRIC_E_HEALTH_STALE_REPORT", "service report-health", sequence_number="6", **report)
    sfctl.advance(91)
    expect_equal(event_of(sfctl("service health", service_id="Shop~Web"), "YARP", "DynamicConfig"), None, "expired")
    sfctl.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", "service health", service_id="Shop~Nothing")


@checks("service resolve")
def resolve(sfctl):
    web = sfctl("service resolve", service_id="Shop~Web")
    expect_equal(web["name"], "fabric:/Shop/Web", "name")
    expect_equal([each["kind"] for each in web["endpoints"]], ["Stateless"] * 3, "kinds")
    key = {"partition_key_type": "2", "partition_key_value": "-5"}
    cart = sfctl("service resolve", service_id="Shop~Cart", **key)
    information = cart["partitionInformation"]
    expect(int(information["lowKey"]) <= -5 <= int(information["highKey"]), f"the partition of -5 is {information}")
    again = sfctl("service resolve", service_id="Shop~Cart", previous_rsp_version=cart["version"], **key)
    expect_equal(again["version"], cart["version"], "version when nothing has changed")
    eu = sfctl("service resolve", service_id="Shop~Regions", partition_key_type="3", partition_key_value="eu")
    expect_equal(eu["partitionInformation"]["name"], "eu", "partition of a name")
    sfctl.refused("FABRIC_E_INVALID_PARTITION_KEY", "service resolve", service_id="Shop~Cart")
    sfctl.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", "service resolve", service_id="Shop~Nothing")


@checks("service create, service update, service delete")
def create(sfctl):
    # Not with named partitions: this version of the program takes its own list of names for one text.
    new = {"app_id": "Shop", "service_type": "WebType", "stateless": True, "singleton_scheme": True}
    sfctl("service create", name="fabric:/Shop/New", instance_count="2", **new)
    stateful = {"app_id": "Shop", "service_type": "CartType", "stateful": True}
    sizes = {"target_replica_set_size": "3", "min_replica_set_size": "2"}
    ranges = {"int_scheme": True, "int_scheme_low": "0", "int_scheme_high": "9", "int_scheme_count": "2"}
    sfctl("service create", name="fabric:/Shop/Ranges", **stateful, **sizes, **ranges)
    sfctl("service create", name="fabric:/Shop/Single", singleton_scheme=True, **stateful, **sizes)
    sfctl.settle()
    expect_equal(len(replicas_of(sfctl, partition_of(sfctl, "Shop~New"))), 2, "instances")
    keys = [each["partitionInformation"] for each in items(sfctl("partition list", service_id="Shop~Ranges"))]
    expect_equal(sorted((each["lowKey"], each["highKey"]) for each in keys), [("0", "4"), ("5", "9")], "ranges")
    sfctl.refused(
        "FABRIC_E_SERVICE_ALREADY_EXISTS", "service create", name="fabric:/Shop/New", instance_count="1", **new
    )
    wrong = {**new, "service_type": "NoType"}
    sfctl.refused(
        "FABRIC_E_SERVICE_TYPE_NOT_FOUND", "service create", name="fabric:/Shop/Odd", instance_count="1", **wrong
    )

    sfctl("service update", service_id="Shop~New", stateless=True, instance_count="4")
    sfctl("service update", service_id="Shop~Single", stateful=True, target_replica_set_size="5")
    sfctl.settle()
    expect_equal(len(replicas_of(sfctl, partition_of(sfctl, "Shop~New"))), 4, "instances after the update")
    expect_equal(sfctl("service description", service_id="Shop~Single")["targetReplicaSetSize"], 5, "replicas wanted")
    expect_equal(len(replicas_of(sfctl, partition_of(sfctl, "Shop~Single"))), 5, "replicas after the update")
    for name in ("New", "Ranges", "Single"):
        sfctl("service delete", service_id=f"Shop~{name}")
    sfctl.settle()
    expect_equal(sfctl("service info", application_id="Shop", service_id="Shop~New"), None, "a deleted service")
    sfctl.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", "service delete", service_id="Shop~New")
    sfctl.refused(
        "FABRIC_E_SERVICE_DOES_NOT_EXIST", "service update", service_id="Shop~New", stateless=True, instance_count="1"
    )


@checks("service package-list, service package-info, service package-health")
def packages(sfctl):
    node = replicas_of(sfctl, partition_of(sfctl, "Shop~Web"))[0]["nodeName"]
    place = {"node_name": node, "application_id": "Shop"}
    found = sfctl("service package-list", **place)
    web = the_one(found, "WebPkg", lambda each: each["name"] == "WebPkg")
    expect_fields(web, {"status": "Active", "servicePackageActivationId": ""}, "WebPkg")
    expect_equal(sfctl("service package-info", service_package_name="WebPkg", **place), [web], "by name")
    health = sfctl("service package-health", service_package_name="WebPkg", **place)
    expect_fields(health, {"serviceManifestName": "WebPkg", "nodeName": node, "aggregatedHealthState": "Ok"}, "health")
    expect(event_of(health, "System.Hosting", "ServiceTypeRegistration:WebType") is not None, "nothing of hosting")


@checks("service code-package-list, service deployed-type-list, service deployed-type")
def code(sfctl):
    node = replicas_of(sfctl, partition_of(sfctl, "Shop~Web"))[0]["nodeName"]
    place = {"node_name": node, "application_id": "Shop"}
    found = sfctl("service code-package-list", service_manifest_name="WebPkg", **place)
    entry = the_one(found, "Code", lambda each: each["name"] == "Code")["mainEntryPoint"]
    expect_equal(entry["status"], "Started", "entry point")
    statistics = entry["codePackageEntryPointStatistics"]
    expect_fields(statistics, {"exitFailureCount": "0", "activationFailureCount": "0"}, "statistics")
    expect(int(statistics["activationCount"]) >= 1, f"activated {statistics['activationCount']} times")
    types = sfctl("service deployed-type-list", **place)
    web = the_one(types, "WebType", lambda each: each["serviceTypeName"] == "WebType")
    expect_fields(web, {"status": "Registered", "codePackageName": "Code", "serviceManifestName": "WebPkg"}, "WebType")
    expect_equal(sfctl("service deployed-type", service_type_name="WebType", **place), [web], "by name")


@checks("property put, property get, property list, property delete")
def properties(sfctl):
    name = {"name_id": "Shop~Web"}
    values = {
        "text": {"Kind": "String", "Data": "true"},
        "whole": {"Kind": "Int64", "Data": "9007199254740993"},
        "real": {"Kind": "Double", "Data": 0.5},
        "guid": {"Kind": "Guid", "Data": "8e9f1a52-3c4b-4d5e-9f60-718293a4b5c6"},
        "bytes": {"Kind": "Binary", "Data": [0, 255]},
    }
    for prop, value in values.items():
        sfctl("property put", property_name=prop, value=value, custom_id_type="mine", **name)
        found = sfctl("property get", property_name=prop, **name)
        expect_equal(found["name"], prop, "name")
        expect_fields(found["value"], {"kind": value["Kind"], "data": value["Data"]}, prop)
        expect_fields(found["metadata"], {"typeId": value["Kind"], "customTypeId": "mine"}, prop)
    listed = sfctl("property list", include_values=True, **name)
    expect_equal(listed["isConsistent"], True, "consistent")
    found = {each["name"]: each["value"]["data"] for each in listed["properties"]}
    expect_equal(found, {prop: value["Data"] for prop, value in values.items()}, "values")
    bare = sfctl("property list", **name)["properties"]
    expect_equal([each["value"] for each in bare], [None] * len(values), "values that are not asked for")
    for prop in values:
        sfctl("property delete", property_name=prop, **name)
    expect_equal(sfctl("property list", **name)["properties"], [], "properties that are left")
    sfctl.refused("FABRIC_E_PROPERTY_DOES_NOT_EXIST", "property get", property_name="text", **name)
    sfctl.refused("FABRIC_E_NAME_DOES_NOT_EXIST", "property list", name_id="Shop~Nothing")
