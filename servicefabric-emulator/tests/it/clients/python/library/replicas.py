"""Partitions, replicas, and where clients are sent."""

import json

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import checks

NOBODY = "00000000-0000-0000-0000-000000000001"
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def partitions(cluster, service):
    """The ids of a service's partitions."""
    return [each.partition_information.id for each in cluster.get_partition_info_list(service).items]


def identity(replica):
    """The id of a replica or instance."""
    return replica.instance_id if replica.service_kind == "Stateless" else replica.replica_id


def primary(cluster, partition):
    """The primary replica of a partition."""
    replicas = cluster.get_replica_info_list(partition).items
    return the_one(replicas, "primary", lambda each: each.replica_role == "Primary")


def without_epoch(partition):
    """A partition as JSON, without what a list and a single one call by different names."""
    found = partition.serialize()
    found.pop("PrimaryEpoch", None)
    return found


@checks("partitions: singleton, ranges without gaps, and names")
def kinds(cluster):
    web = the_one(cluster.get_partition_info_list("Shop~Web").items, "partition", lambda each: True)
    expect(isinstance(web, models.StatelessServicePartitionInfo), f"{type(web).__name__} of a stateless service")
    expect_fields(web, {"partition_status": "Ready", "health_state": "Ok", "instance_count": 3}, "partition of Web")
    expect(isinstance(web.partition_information, models.SingletonPartitionInformation), "Web is partitioned")

    ranges = []
    for each in cluster.get_partition_info_list("Shop~Cart").items:
        expect(isinstance(each, models.StatefulServicePartitionInfo), f"{type(each).__name__} of a stateful service")
        expect_fields(each, {"target_replica_set_size": 3, "min_replica_set_size": 2}, "partition of Cart")
        expect(each.primary_epoch is not None, "a partition without an epoch")
        expect(isinstance(each.partition_information, models.Int64RangePartitionInformation), "Cart has no ranges")
        ranges.append((int(each.partition_information.low_key), int(each.partition_information.high_key)))
    ranges.sort()
    expect_equal(len(ranges), 4, "ranges")
    expect_equal((ranges[0][0], ranges[-1][1]), (LOWEST, HIGHEST), "ends of the ranges")
    for (_, high), (low, _) in zip(ranges, ranges[1:]):
        expect_equal(low, high + 1, "a range begins behind the one before")

    names = [each.partition_information.name for each in cluster.get_partition_info_list("Shop~Regions").items]
    expect_equal(sorted(names), ["eu", "us"], "names")


@checks("partition: by id as in the list, nothing for an unknown id, no ids but GUIDs")
def partition(cluster):
    listed = cluster.get_partition_info_list("Shop~Cart").items[1]
    found = cluster.get_partition_info(listed.partition_information.id)
    expect_equal(without_epoch(found), without_epoch(listed), "a partition of Cart")
    name = cluster.get_service_name_info(listed.partition_information.id)
    expect_fields(name, {"id": "Shop~Cart", "name": "fabric:/Shop/Cart"}, "service of a partition")
    expect_equal(cluster.get_partition_info(NOBODY), None, "a partition that is not there")
    cluster.refused("E_INVALIDARG", 400, "get_partition_info", "not-a-guid")
    cluster.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", 404, "get_partition_info_list", "Shop~Nothing")
    cluster.refused("FABRIC_E_PARTITION_NOT_FOUND", 404, "get_service_name_info", NOBODY)


@checks("instances: one on a node, ready, each with the address of every listener")
def instances(cluster):
    found = cluster.get_replica_info_list(partitions(cluster, "Shop~Web")[0]).items
    expect_equal(len(found), 3, "instances")
    expect_equal(len({each.node_name for each in found}), 3, "nodes with an instance")
    for each in found:
        expect(isinstance(each, models.StatelessServiceInstanceInfo), f"{type(each).__name__} of a stateless service")
        expect_fields(each, {"replica_status": "Ready", "health_state": "Ok"}, "an instance of Web")
        expect(int(each.instance_id) > 0, f"the id {each.instance_id}")
        expect(each.last_in_build_duration_in_seconds.isdigit(), each.last_in_build_duration_in_seconds)
        endpoints = json.loads(each.address)["Endpoints"]
        expect_equal(sorted(endpoints), ["http", "https"], "listeners")
        for name, address in endpoints.items():
            expect(address.startswith(f"{name}://"), f"{name} listens on {address}")


@checks("replicas: one primary and two active secondaries in every partition")
def replicas(cluster):
    for partition_id in partitions(cluster, "Shop~Cart"):
        found = cluster.get_replica_info_list(partition_id).items
        roles = sorted(each.replica_role for each in found)
        expect_equal(roles, ["ActiveSecondary", "ActiveSecondary", "Primary"], "roles")
        expect_equal(len({each.node_name for each in found}), 3, "nodes with a replica")
        for each in found:
            expect(isinstance(each, models.StatefulServiceReplicaInfo), f"{type(each).__name__} of a stateful service")
            expect_equal(each.replica_status, "Ready", "status")


@checks("replica: by id as in the list, nothing for an unknown id")
def replica(cluster):
    for service in ("Shop~Web", "Shop~Cart"):
        partition_id = partitions(cluster, service)[0]
        for listed in cluster.get_replica_info_list(partition_id).items:
            found = cluster.get_replica_info(partition_id, identity(listed))
            expect_equal(found.serialize(), listed.serialize(), f"a replica of {service}")
        expect_equal(cluster.get_replica_info(partition_id, "1"), None, "a replica that is not there")
    cluster.refused("FABRIC_E_PARTITION_NOT_FOUND", 404, "get_replica_info_list", NOBODY)
    cluster.refused("E_INVALIDARG", 400, "get_replica_info", partition_id, "not-a-number")


@checks("resolve: instances of a service without keys")
def resolve_singleton(cluster):
    found = cluster.resolve_service("Shop~Web")
    expect_equal(found.name, "fabric:/Shop/Web", "name")
    expect_equal({each.kind for each in found.endpoints}, {"Stateless"}, "kinds of endpoints")
    instances = cluster.get_replica_info_list(partitions(cluster, "Shop~Web")[0]).items
    addresses = sorted(each.address for each in found.endpoints)
    expect_equal(addresses, sorted(each.address for each in instances), "addresses")
    same = cluster.resolve_service("Shop~Web", partition_key_type=1)
    expect_equal(same.serialize(), found.serialize(), "with the key type that stands for no key")


@checks("resolve: the partition of a number, at the ends of every range")
def resolve_range(cluster):
    for each in cluster.get_partition_info_list("Shop~Cart").items:
        information = each.partition_information
        for key in (information.low_key, information.high_key):
            found = cluster.resolve_service("Shop~Cart", partition_key_type=2, partition_key_value=key)
            expect_equal(found.partition_information.id, information.id, f"partition of {key}")
            kinds = sorted(endpoint.kind for endpoint in found.endpoints)
            expect_equal(kinds, ["StatefulPrimary", "StatefulSecondary", "StatefulSecondary"], "kinds of endpoints")
            leader = the_one(found.endpoints, "primary", lambda endpoint: endpoint.kind == "StatefulPrimary")
            expect_equal(leader.address, primary(cluster, information.id).address, f"primary of {key}")


@checks("resolve: the partition of a name")
def resolve_name(cluster):
    for each in cluster.get_partition_info_list("Shop~Regions").items:
        name = each.partition_information.name
        found = cluster.resolve_service("Shop~Regions", partition_key_type=3, partition_key_value=name)
        expect_equal(found.partition_information.id, each.partition_information.id, f"partition of {name}")


@checks("resolve: keys that do not fit are refused")
def resolve_refused(cluster):
    code = "FABRIC_E_INVALID_PARTITION_KEY"
    resolve = "resolve_service"
    cluster.refused(code, 400, resolve, "Shop~Cart")
    cluster.refused(code, 400, resolve, "Shop~Cart", partition_key_type=3, partition_key_value="eu")
    cluster.refused(code, 400, resolve, "Shop~Web", partition_key_type=2, partition_key_value="5")
    cluster.refused(code, 400, resolve, "Shop~Regions", partition_key_type=3, partition_key_value="EU")
    cluster.refused(code, 400, resolve, "Shop~Cart", partition_key_type=2, partition_key_value="five")
    cluster.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", 404, resolve, "Shop~Nothing")


@checks("resolve: a moved primary is seen when the old answer is challenged")
def resolve_challenge(cluster):
    key = {"partition_key_type": 2, "partition_key_value": "0"}
    before = cluster.resolve_service("Shop~Cart", **key)
    partition_id = before.partition_information.id
    old = primary(cluster, partition_id)
    others = [each for each in cluster.get_replica_info_list(partition_id).items if each.replica_role != "Primary"]
    cluster.move_primary_replica(partition_id, node_name=others[0].node_name)
    cluster.settle()
    new = primary(cluster, partition_id)
    expect_equal(new.node_name, others[0].node_name, "node of the primary")
    after = cluster.resolve_service("Shop~Cart", previous_rsp_version=before.version, **key)
    expect(after.version != before.version, f"the version is still {after.version}")
    leader = the_one(after.endpoints, "primary", lambda each: each.kind == "StatefulPrimary")
    expect_equal(leader.address, new.address, "address of the primary")
    expect(leader.address != old.address, "the address has not changed")
    again = cluster.resolve_service("Shop~Cart", previous_rsp_version=after.version, **key)
    expect_equal(again.version, after.version, "version when nothing has changed")


@checks("moves: a primary goes to a node that had no replica")
def move_primary(cluster):
    partition_id = partitions(cluster, "Shop~Cart")[3]
    old = primary(cluster, partition_id)
    used = {each.node_name for each in cluster.get_replica_info_list(partition_id).items}
    free = next(each.name for each in cluster.get_node_info_list().items if each.name not in used)
    cluster.move_primary_replica(partition_id, node_name=free)
    cluster.settle()
    expect_equal(primary(cluster, partition_id).node_name, free, "node of the primary")
    ready = [each for each in cluster.get_replica_info_list(partition_id).items if each.replica_status == "Ready"]
    expect_equal({each.node_name for each in ready}, used - {old.node_name} | {free}, "nodes of the replicas")


@checks("moves: a secondary and an instance go to the node that is named")
def moves(cluster):
    partition_id = partitions(cluster, "Shop~Cart")[0]
    found = cluster.get_replica_info_list(partition_id).items
    used = {each.node_name for each in found}
    free = next(each.name for each in cluster.get_node_info_list().items if each.name not in used)
    secondary = next(each for each in found if each.replica_role == "ActiveSecondary")
    cluster.move_secondary_replica(partition_id, secondary.node_name, new_node_name=free)
    cluster.settle()
    ready = [each for each in cluster.get_replica_info_list(partition_id).items if each.replica_status == "Ready"]
    expect_equal({each.node_name for each in ready}, used - {secondary.node_name} | {free}, "nodes of the replicas")

    web = partitions(cluster, "Shop~Web")[0]
    used = {each.node_name for each in cluster.get_replica_info_list(web).items}
    free = next(each.name for each in cluster.get_node_info_list().items if each.name not in used)
    leaves = sorted(used)[0]
    cluster.move_instance("Shop~Web", web, current_node_name=leaves, new_node_name=free)
    cluster.settle()
    ready = [each for each in cluster.get_replica_info_list(web).items if each.replica_status == "Ready"]
    expect_equal({each.node_name for each in ready}, used - {leaves} | {free}, "nodes of the instances")


@checks("restart and removal: a persisted replica keeps its id, a removed one is replaced")
def restart(cluster):
    partition_id = partitions(cluster, "Shop~Cart")[2]
    secondary = next(
        each for each in cluster.get_replica_info_list(partition_id).items if each.replica_role == "ActiveSecondary"
    )
    cluster.restart_replica(secondary.node_name, partition_id, secondary.replica_id)
    cluster.settle()
    again = cluster.get_replica_info(partition_id, secondary.replica_id)
    expect(again is not None, "the replica is gone after it was restarted")
    expect_fields(again, {"replica_status": "Ready", "node_name": secondary.node_name}, "restarted replica")
    cluster.remove_replica(secondary.node_name, partition_id, secondary.replica_id)
    cluster.settle()
    ready = [each for each in cluster.get_replica_info_list(partition_id).items if each.replica_status == "Ready"]
    expect_equal(len(ready), 3, "replicas after one was removed")
    expect(secondary.replica_id not in {each.replica_id for each in ready}, "the removed replica is still there")
    cluster.refused("FABRIC_E_REPLICA_DOES_NOT_EXIST", 404, "restart_replica", secondary.node_name, partition_id, "1")
    cluster.refused("FABRIC_E_NODE_NOT_FOUND", 404, "restart_replica", "nobody", partition_id, secondary.replica_id)
