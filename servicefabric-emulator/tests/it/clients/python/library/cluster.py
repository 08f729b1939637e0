"""The cluster itself and its nodes."""

import xml.etree.ElementTree as ElementTree

from conformance.checks import expect, expect_equal, expect_fields
from . import checks


@checks("version: one that the library is made for")
def version(cluster):
    found = cluster.get_cluster_version().version
    expect(found.split(".")[0] in ("8", "9"), f"the version is {found}")


@checks("manifest: well-formed XML of a cluster")
def manifest(cluster):
    root = ElementTree.fromstring(cluster.get_cluster_manifest().manifest)
    expect_equal(root.tag.split("}")[-1], "ClusterManifest", "root element")


@checks("versions: what is provisioned is what the nodes run")
def provisioned(cluster):
    codes = [each.code_version for each in cluster.get_provisioned_fabric_code_version_info_list()]
    configurations = [each.config_version for each in cluster.get_provisioned_fabric_config_version_info_list()]
    for node in cluster.get_node_info_list().items:
        expect(node.code_version in codes, f"{node.name} runs {node.code_version}, provisioned are {codes}")
        expect(node.config_version in configurations, f"{node.name} has {node.config_version}, not {configurations}")


@checks("nodes: all fields of a node that is up")
def nodes(cluster):
    items = cluster.get_node_info_list().items
    expect_equal(len(items), 5, "nodes")
    expect_equal(len({node.name for node in items}), 5, "different names")
    expect_equal(len({node.id.id for node in items}), 5, "different ids")
    for node in items:
        expect_fields(
            node,
            {"node_status": "Up", "health_state": "Ok", "is_stopped": False, "node_down_time_in_seconds": "0"},
            node.name,
        )
        for field in ("ip_address_or_fqdn", "type", "instance_id", "node_up_at", "is_seed_node"):
            expect(getattr(node, field) is not None, f"{node.name} has no {field}")
        expect(int(node.node_up_time_in_seconds) >= 0, f"{node.name}: up since {node.node_up_time_in_seconds}")
        expect(node.fault_domain.startswith("fd:/"), f"{node.name}: fault domain {node.fault_domain}")
        expect(node.upgrade_domain, f"{node.name} has no upgrade domain")


@checks("nodes: in pages of two, as in one")
def node_pages(cluster):
    together = [node.name for node in cluster.get_node_info_list().items]
    paged, pages = cluster.pages("get_node_info_list", max_results=2)
    expect_equal([node.name for node in paged], together, "names in pages")
    expect_equal(pages, 3, "pages")


@checks("nodes: filtered by status")
def node_filter(cluster):
    for status, count in (("default", 5), ("all", 5), ("up", 5), ("down", 0), ("disabled", 0), ("disabling", 0)):
        found = cluster.get_node_info_list(node_status_filter=status).items
        expect_equal(len(found), count, f"nodes that are {status}")


@checks("node: by name as in the list, nothing for an unknown name")
def node(cluster):
    listed = cluster.get_node_info_list().items[0]
    expect_equal(cluster.get_node_info(listed.name).serialize(), listed.serialize(), listed.name)
    expect_equal(cluster.get_node_info("nobody"), None, "a node that is not there")


@checks("node health: unknown nodes are not found")
def node_health(cluster):
    name = cluster.get_node_info_list().items[0].name
    health = cluster.get_node_health(name)
    expect_fields(health, {"name": name, "aggregated_health_state": "Ok"}, "health of a node")
    expect(len(health.health_events) >= 1, "the system has reported nothing about the node")
    for event in health.health_events:
        expect(event.source_id.startswith("System."), f"an event of {event.source_id}")
    cluster.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", 404, "get_node_health", "nobody")


@checks("cluster health: all children, none when they are filtered out")
def cluster_health(cluster):
    health = cluster.get_cluster_health()
    expect_equal(health.aggregated_health_state, "Ok", "health of the cluster")
    names = {node.name for node in cluster.get_node_info_list().items}
    expect_equal({node.name for node in health.node_health_states}, names, "nodes in the health of the cluster")
    expect("fabric:/Shop" in {each.name for each in health.application_health_states}, "the application is missing")
    counts = {
        item.entity_kind: item.health_state_count.ok_count for item in health.health_statistics.health_state_count_list
    }
    expect_equal(counts["Node"], 5, "healthy nodes in the statistics")
    bare = cluster.get_cluster_health(
        nodes_health_state_filter=1, applications_health_state_filter=1, exclude_health_statistics=True
    )
    expect_equal(bare.node_health_states, [], "nodes when there should be none")
    expect_equal(bare.application_health_states, [], "applications when there should be none")
    expect_equal(bare.health_statistics, None, "statistics when there should be none")


@checks("deactivation: a node is emptied, says why, and comes back")
def deactivation(cluster):
    name = cluster.get_node_info_list().items[-1].name
    cluster.disable_node(name, deactivation_intent="RemoveData")
    cluster.settle()
    gone = cluster.get_node_info(name)
    expect_equal(gone.node_status, "Disabled", name)
    reason = gone.node_deactivation_info
    expect_fields(
        reason,
        {"node_deactivation_intent": "RemoveData", "node_deactivation_status": "Completed"},
        "deactivation",
    )
    expect_equal(len(reason.node_deactivation_task), 1, "tasks that keep the node away")
    disabled = cluster.get_node_info_list(node_status_filter="disabled").items
    expect_equal([each.name for each in disabled], [name], "disabled nodes")
    web = cluster.get_partition_info_list("Shop~Web").items[0].partition_information.id
    for replica in cluster.get_replica_info_list(web).items:
        expect(replica.node_name != name or replica.replica_status != "Ready", f"{name} still runs an instance")
    cluster.enable_node(name)
    cluster.settle()
    expect_equal(cluster.get_node_info(name).node_status, "Up", f"{name} after it was enabled")
    cluster.refused("FABRIC_E_NODE_NOT_FOUND", 404, "disable_node", "nobody", deactivation_intent="Pause")
    cluster.refused("FABRIC_E_NODE_NOT_FOUND", 404, "enable_node", "nobody")


@checks("restart: a node comes back as another instance, with its persisted replicas")
def restart(cluster):
    partition = cluster.get_partition_info_list("Shop~Cart").items[0].partition_information.id
    hosts = {each.node_name: each.replica_id for each in cluster.get_replica_info_list(partition).items}
    name, replica = sorted(hosts.items())[0]
    before = cluster.get_node_info(name)
    cluster.restart_node(name, node_instance_id=before.instance_id)
    cluster.settle()
    after = cluster.get_node_info(name)
    expect_equal(after.node_status, "Up", name)
    expect(after.instance_id != before.instance_id, "the instance is the same after the restart")
    found = cluster.get_replica_info(partition, replica)
    expect_fields(found, {"replica_status": "Ready", "node_name": name}, "persisted replica")
    code = "FABRIC_E_INSTANCE_ID_MISMATCH"
    cluster.refused(code, 409, "restart_node", name, node_instance_id=before.instance_id)
    cluster.refused("FABRIC_E_NODE_NOT_FOUND", 404, "restart_node", "nobody")
