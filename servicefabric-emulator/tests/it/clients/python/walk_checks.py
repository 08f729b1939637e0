"""Walks a whole cluster with the Python library, whatever is in it, and compares what its queries say about each other.

`ENDPOINT` names the cluster.
"""

import json
import os
import xml.etree.ElementTree as ElementTree
from collections import Counter

from conformance.checks import Checks, expect, expect_equal, finish
from conformance.library import Cluster
from library.replicas import identity, without_epoch

checks = Checks()

# No more than so many of a kind are looked at one by one; they are spread over the whole.
MOST = 25


def some(things):
    """All of a few, a part of many."""
    return things[:: max(1, -(-len(things) // MOST))]


class Walk:
    """A cluster, and the lists that are asked for once."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.nodes, _ = cluster.pages("get_node_info_list")
        self.types, _ = cluster.pages("get_application_type_info_list")
        self.applications, _ = cluster.pages("get_application_info_list")
        self.services = {each.id: cluster.pages("get_service_info_list", each.id)[0] for each in self.applications}

    def chosen(self):
        """Some services, each with its application."""
        everything = [(each, service) for each in self.applications for service in self.services[each.id]]
        return some(everything)


@checks("walk: nobody is listed twice")
def unique(walk):
    for kind, names in (
        ("node", [each.name for each in walk.nodes]),
        ("type", [(each.name, each.version) for each in walk.types]),
        ("application", [each.name for each in walk.applications]),
        ("service", [each.name for found in walk.services.values() for each in found]),
    ):
        twice = [name for name, count in Counter(names).items() if count > 1]
        expect(not twice, f"a {kind} is listed twice: {twice[:5]}")
    counted = int(os.environ.get("SERVICES", "0"))
    found = sum(len(each) for each in walk.services.values())
    expect_equal(found, counted or found, "services")


@checks("walk: every type can be read")
def types(walk):
    for each in walk.types:
        found = walk.cluster.get_service_type_info_list(each.name, each.version)
        ElementTree.fromstring(walk.cluster.get_application_manifest(each.name, each.version).manifest)
        for service_type in found:
            name = service_type.service_type_description.service_type_name
            one = walk.cluster.get_service_type_info_by_name(each.name, each.version, name)
            expect_equal(one.serialize(), service_type.serialize(), name)
            manifest = service_type.service_manifest_name
            ElementTree.fromstring(walk.cluster.get_service_manifest(each.name, each.version, manifest).manifest)


@checks("walk: every entity by its id is the one of the list")
def by_id(walk):
    cluster = walk.cluster
    for node in some(walk.nodes):
        expect_equal(cluster.get_node_info(node.name).serialize(), node.serialize(), node.name)
        cluster.get_node_health(node.name)
    for application in some(walk.applications):
        found = cluster.get_application_info(application.id)
        expect_equal(found.serialize(), application.serialize(), application.name)
        health = cluster.get_application_health(application.id)
        expect_equal(health.aggregated_health_state, application.health_state, f"health of {application.name}")
    for application, service in walk.chosen():
        found = cluster.get_service_info(application.id, service.id)
        expect_equal(found.serialize(), service.serialize(), service.name)
        expect_equal(cluster.get_application_name_info(service.id).name, application.name, service.name)
        expect_equal(cluster.get_service_description(service.id).service_name, service.name, service.name)
        health = cluster.get_service_health(service.id)
        expect_equal(health.aggregated_health_state, service.health_state, f"health of {service.name}")


@checks("walk: partitions and replicas, and where their keys lead")
def partitions(walk):
    cluster = walk.cluster
    for _, service in walk.chosen():
        found, _ = cluster.pages("get_partition_info_list", service.id)
        expect(found, f"{service.name} has no partitions")
        for partition in some(found):
            information = partition.partition_information
            again = cluster.get_partition_info(information.id)
            expect_equal(without_epoch(again), without_epoch(partition), f"a partition of {service.name}")
            expect_equal(cluster.get_service_name_info(information.id).name, service.name, "service of a partition")
            replicas, _ = cluster.pages("get_replica_info_list", information.id)
            for replica in replicas:
                one = cluster.get_replica_info(information.id, identity(replica))
                expect_equal(one.serialize(), replica.serialize(), f"a replica of {service.name}")
                if replica.address:
                    expect("Endpoints" in json.loads(replica.address), f"{service.name} listens on {replica.address}")
            key = {"Int64Range": (2, "low_key"), "Named": (3, "name")}.get(information.service_partition_kind)
            query = {"partition_key_type": key[0], "partition_key_value": getattr(information, key[1])} if key else {}
            resolved = cluster.resolve_service(service.id, **query)
            expect_equal(resolved.partition_information.id, information.id, f"{query} of {service.name}")
            ready = {each.address for each in replicas if each.replica_status == "Ready" and each.address}
            addresses = {each.address for each in resolved.endpoints if each.address}
            expect(addresses <= ready, f"{service.name} is resolved to {addresses - ready}, which nobody has")


@checks("walk: what runs on the nodes is what the partitions have")
def deployed(walk):
    cluster = walk.cluster
    for application in some(walk.applications):
        placed = Counter()
        for service in walk.services[application.id]:
            for partition in cluster.pages("get_partition_info_list", service.id)[0]:
                replicas, _ = cluster.pages("get_replica_info_list", partition.partition_information.id)
                placed.update((each.node_name, service.name) for each in replicas if each.replica_status == "Ready")
        running = Counter()
        for node in walk.nodes:
            found = cluster.get_deployed_service_replica_info_list(node.name, application.id) or []
            running.update((node.name, each.service_name) for each in found if each.replica_status == "Ready")
            if found:
                there = cluster.get_deployed_application_info(node.name, application.id)
                expect(there is not None, f"{node.name} runs replicas of {application.name} without it")
                cluster.get_deployed_service_package_info_list(node.name, application.id)
                cluster.get_deployed_code_package_info_list(node.name, application.id)
                cluster.get_deployed_service_type_info_list(node.name, application.id)
                cluster.get_deployed_application_health(node.name, application.id)
        expect_equal(running, placed, f"replicas of {application.name}")


@checks("walk: every service is a name, with properties that can be read")
def names(walk):
    for _, service in walk.chosen():
        walk.cluster.get_name_exists_info(service.id)
        page = walk.cluster.get_property_info_list(service.id, include_values=True)
        for each in page.properties:
            one = walk.cluster.get_property_info(service.id, each.name)
            expect_equal(one.serialize(), each.serialize(), f"{each.name} of {service.name}")


@checks("walk: the health of the cluster has all nodes and applications")
def health(walk):
    found = walk.cluster.get_cluster_health()
    expect_equal({each.name for each in found.node_health_states}, {each.name for each in walk.nodes}, "nodes")
    known = {each.name for each in found.application_health_states} - {"fabric:/System"}
    expect_equal(known, {each.name for each in walk.applications}, "applications")


if __name__ == "__main__":
    subject = Cluster.from_environment()
    subject.settle()
    finish(checks.run(Walk(subject)))
