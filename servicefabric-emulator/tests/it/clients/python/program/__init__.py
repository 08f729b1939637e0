"""Checks with the command line `sfctl`, against the cluster of `shop.toml`. A check is called what it runs."""

from conformance.checks import Checks

checks = Checks()

NOBODY = "00000000-0000-0000-0000-000000000001"


def items(answer):
    """The items of a page, which is to be the only one."""
    if answer["continuationToken"]:
        raise AssertionError("there is a further page")
    return answer["items"]


def partition_of(sfctl, service, number=0):
    """The id of one of a service's partitions."""
    return items(sfctl("partition list", service_id=service))[number]["partitionInformation"]["id"]


def replicas_of(sfctl, partition):
    """The replicas of a partition that are ready."""
    return [each for each in items(sfctl("replica list", partition_id=partition)) if each["replicaStatus"] == "Ready"]


def node_names(sfctl):
    """The names of all nodes."""
    return [each["name"] for each in items(sfctl("node list"))]


def event_of(health, source, prop):
    """The event of a source for a property; `None` when there is none."""
    found = [each for each in health["healthEvents"] if (each["sourceId"], each["property"]) == (source, prop)]
    return found[0] if found else None
