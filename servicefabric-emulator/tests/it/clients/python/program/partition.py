"""`sfctl partition` and `sfctl replica`."""

import json

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import NOBODY, checks, event_of, items, node_names, partition_of, replicas_of


@checks("partition list, partition info, partition svc-name")
def partitions(sfctl):
    found = items(sfctl("partition list", service_id="Shop~Cart"))
    expect_equal(len(found), 4, "partitions")
    for each in found:
        expect_fields(each, {"serviceKind": "Stateful", "partitionStatus": "Ready", "healthState": "Ok"}, "a partition")
        expect_equal(each["partitionInformation"]["servicePartitionKind"], "Int64Range", "kind")
    one = found[2]["partitionInformation"]["id"]
    by_id = sfctl("partition info", partition_id=one)
    # A single partition is asked for in an older version, which calls it by another name.
    epoch = {"primaryEpoch": None, "additionalProperties": None}
    expect_equal({**by_id, **epoch}, {**found[2], **epoch}, "by id")
    name = sfctl("partition svc-name", partition_id=one)
    expect_fields(name, {"id": "Shop~Cart", "name": "fabric:/Shop/Cart"}, "service of a partition")
    expect_equal(sfctl("partition info", partition_id=NOBODY), None, "a partition that is not there")
    sfctl.refused("E_INVALIDARG", "partition info", partition_id="not-a-guid")
    sfctl.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", "partition list", service_id="Shop~Nothing")


@checks("partition health, partition report-health")
def partition_health(sfctl):
    partition = partition_of(sfctl, "Shop~Cart")
    found = sfctl("partition health", partition_id=partition)
    expect_fields(found, {"partitionId": partition, "aggregatedHealthState": "Ok"}, "health")
    expect_equal(len(found["replicaHealthStates"]), 3, "replicas")
    report = {"source_id": "Operator", "health_property": "Load", "health_state": "Error", "ttl": "PT1M"}
    sfctl("partition report-health", partition_id=partition, remove_when_expired="true", immediate=True, **report)
    found = sfctl("partition health", partition_id=partition, replicas_health_state_filter="8")
    expect_equal(found["aggregatedHealthState"], "Error", "health after an error")
    expect_equal(found["replicaHealthStates"], [], "replicas in error")
    expect_equal(
        sfctl("service health", service_id="Shop~Cart")["aggregatedHealthState"], "Error", "health of the service"
    )
    sfctl.advance(61)
    expect_equal(sfctl("partition health", partition_id=partition)["aggregatedHealthState"], "Ok", "after it expired")
    sfctl.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", "partition health", partition_id=NOBODY)


@checks("replica list, replica info")
def replicas(sfctl):
    web = partition_of(sfctl, "Shop~Web")
    instances = items(sfctl("replica list", partition_id=web))
    expect_equal(len(instances), 3, "instances")
    for each in instances:
        expect_fields(each, {"serviceKind": "Stateless", "replicaStatus": "Ready", "healthState": "Ok"}, "an instance")
        expect_equal(sorted(json.loads(each["address"])["Endpoints"]), ["http", "https"], "listeners")
    one = instances[0]["instanceId"]
    expect_equal(sfctl("replica info", partition_id=web, replica_id=one), instances[0], "by id")
    cart = items(sfctl("replica list", partition_id=partition_of(sfctl, "Shop~Cart")))
    roles = sorted(each["replicaRole"] for each in cart)
    expect_equal(roles, ["ActiveSecondary", "ActiveSecondary", "Primary"], "roles")
    expect_equal(sfctl("replica info", partition_id=web, replica_id="1"), None, "a replica that is not there")
    sfctl.refused("FABRIC_E_PARTITION_NOT_FOUND", "replica list", partition_id=NOBODY)


@checks("replica health, replica report-health")
def replica_health(sfctl):
    for service, kind, key in (("Shop~Web", "Stateless", "instanceId"), ("Shop~Cart", "Stateful", "replicaId")):
        partition = partition_of(sfctl, service)
        replica = replicas_of(sfctl, partition)[0][key]
        place = {"partition_id": partition, "replica_id": replica}
        report = {"source_id": "YARP", "health_property": "DynamicConfig", "health_state": "Warning", "ttl": "PT1M"}
        sfctl("replica report-health", service_kind=kind, remove_when_expired="true", immediate=True, **place, **report)
        found = sfctl("replica health", **place)
        expect_fields(found, {"serviceKind": kind, key: replica, "aggregatedHealthState": "Warning"}, service)
        expect(event_of(found, "YARP", "DynamicConfig") is not None, f"no event about a replica of {service}")
    sfctl.advance(61)
    sfctl.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", "replica health", partition_id=NOBODY, replica_id="1")


@checks("replica deployed-list")
def deployed(sfctl):
    partition = partition_of(sfctl, "Shop~Cart")
    replica = replicas_of(sfctl, partition)[0]
    found = sfctl("replica deployed-list", node_name=replica["nodeName"], application_id="Shop")
    mine = the_one(
        found,
        "replica",
        lambda each: each.get("replicaId") == replica["replicaId"] and each["partitionId"] == partition,
    )
    expect_fields(
        mine,
        {
            "serviceKind": "Stateful",
            "serviceName": "fabric:/Shop/Cart",
            "replicaRole": replica["replicaRole"],
            "replicaStatus": "Ready",
            "codePackageName": "Code",
            "address": replica["address"],
        },
        "deployed replica",
    )
    expect(
        not sfctl("replica deployed-list", node_name=replica["nodeName"], application_id="Nowhere"),
        "replicas of nothing",
    )


@checks("replica restart, replica remove")
def restart(sfctl):
    partition = partition_of(sfctl, "Shop~Cart", 1)
    secondary = next(each for each in replicas_of(sfctl, partition) if each["replicaRole"] == "ActiveSecondary")
    place = {"node_name": secondary["nodeName"], "partition_id": partition, "replica_id": secondary["replicaId"]}
    sfctl("replica restart", **place)
    sfctl.settle()
    again = sfctl("replica info", partition_id=partition, replica_id=secondary["replicaId"])
    expect_equal(again and again["replicaStatus"], "Ready", "the restarted replica")
    sfctl("replica remove", **place)
    sfctl.settle()
    ids = {each["replicaId"] for each in replicas_of(sfctl, partition)}
    expect_equal(len(ids), 3, "replicas after one was removed")
    expect(secondary["replicaId"] not in ids, "the removed replica is still there")
    sfctl.refused("FABRIC_E_REPLICA_DOES_NOT_EXIST", "replica remove", **place)
    sfctl.refused("FABRIC_E_NODE_NOT_FOUND", "replica restart", **{**place, "node_name": "nobody"})


@checks("partition move-primary-replica, partition move-secondary-replica, partition move-instance")
def moves(sfctl):
    everywhere = set(node_names(sfctl))

    def nodes_of(partition, role=None):
        return {each["nodeName"] for each in replicas_of(sfctl, partition) if role in (None, each.get("replicaRole"))}

    cart = partition_of(sfctl, "Shop~Cart", 3)
    free = min(everywhere - nodes_of(cart))
    sfctl("partition move-primary-replica", partition_id=cart, node_name=free)
    sfctl.settle()
    expect_equal(nodes_of(cart, "Primary"), {free}, "node of the primary")

    before, free = nodes_of(cart), min(everywhere - nodes_of(cart))
    leaves = min(nodes_of(cart, "ActiveSecondary"))
    sfctl("partition move-secondary-replica", partition_id=cart, current_node_name=leaves, new_node_name=free)
    sfctl.settle()
    expect_equal(nodes_of(cart), before - {leaves} | {free}, "nodes of the replicas")

    web = partition_of(sfctl, "Shop~Web")
    before, free = nodes_of(web), min(everywhere - nodes_of(web))
    leaves = min(before)
    sfctl(
        "partition move-instance", service_id="Shop~Web", partition_id=web, current_node_name=leaves, new_node_name=free
    )
    sfctl.settle()
    expect_equal(nodes_of(web), before - {leaves} | {free}, "nodes of the instances")
    sfctl.refused("FABRIC_E_PARTITION_NOT_FOUND", "partition move-primary-replica", partition_id=NOBODY)
