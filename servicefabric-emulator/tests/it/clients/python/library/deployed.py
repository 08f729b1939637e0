"""What runs on a node."""

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import checks
from .replicas import identity, partitions


def host_of_web(cluster):
    """A node with an instance of the web service, and that instance."""
    partition = partitions(cluster, "Shop~Web")[0]
    instance = cluster.get_replica_info_list(partition).items[0]
    return instance.node_name, partition, instance


def web_code(cluster, node):
    """The code package of the web service on a node."""
    found = cluster.get_deployed_code_package_info_list(node, "Shop", service_manifest_name="WebPkg")
    return the_one(found, "Code", lambda each: each.name == "Code")


@checks("deployed applications: in pages, with health when it is asked for")
def applications(cluster):
    node, _, _ = host_of_web(cluster)
    together = [each.name for each in cluster.get_deployed_application_info_list(node).items]
    expect("fabric:/Shop" in together, f"{node} runs {together}")
    paged, _ = cluster.pages("get_deployed_application_info_list", node, max_results=1)
    expect_equal([each.name for each in paged], together, "names in pages")
    healthy = cluster.get_deployed_application_info_list(node, include_health_state=True).items
    shop = the_one(healthy, "Shop", lambda each: each.id == "Shop")
    expect_fields(
        shop,
        {
            "name": "fabric:/Shop",
            "type_name": "ShopType",
            "type_version": "1.0.0",
            "status": "Active",
            "health_state": "Ok",
        },
        "Shop",
    )
    for field in ("work_directory", "log_directory", "temp_directory"):
        expect(getattr(shop, field), f"no {field}")
    expect_equal(cluster.get_deployed_application_info(node, "Shop").name, "fabric:/Shop", "by id")
    expect_equal(cluster.get_deployed_application_info(node, "Nowhere"), None, "an application that is not there")
    cluster.refused("FABRIC_E_NODE_NOT_FOUND", 404, "get_deployed_application_info_list", "nobody")


@checks("deployed packages and types: by list and by name")
def packages(cluster):
    node, _, _ = host_of_web(cluster)
    found = cluster.get_deployed_service_package_info_list(node, "Shop")
    web = the_one(found, "WebPkg", lambda each: each.name == "WebPkg")
    expect_fields(web, {"status": "Active", "service_package_activation_id": "", "version": "1.0.0"}, "WebPkg")
    named = cluster.get_deployed_service_package_info_list_by_name(node, "Shop", "WebPkg")
    expect_equal([each.serialize() for each in named], [web.serialize()], "by name")
    types = cluster.get_deployed_service_type_info_list(node, "Shop")
    registered = the_one(types, "WebType", lambda each: each.service_type_name == "WebType")
    expect_fields(
        registered,
        {"service_manifest_name": "WebPkg", "code_package_name": "Code", "status": "Registered"},
        "WebType",
    )
    named = cluster.get_deployed_service_type_info_by_name(node, "Shop", "WebType")
    expect_equal([each.serialize() for each in named], [registered.serialize()], "by name")


@checks("deployed code: a process that runs, and the same one again once it is restarted")
def code(cluster):
    node, _, _ = host_of_web(cluster)
    before = web_code(cluster, node)
    expect_fields(before, {"status": "Active", "host_type": "ExeHost", "version": "1.0.0"}, "Code")
    entry = before.main_entry_point
    expect_equal(entry.status, "Started", "main entry point")
    expect(entry.entry_point_location, "no program")
    expect(int(entry.process_id) > 0, f"process {entry.process_id}")
    statistics = entry.code_package_entry_point_statistics
    expect_equal(statistics.activation_failure_count, "0", "failed activations")
    expect(statistics.last_successful_activation_time is not None, "no time of the activation")
    description = models.RestartDeployedCodePackageDescription(
        service_manifest_name="WebPkg", code_package_name="Code", code_package_instance_id=entry.instance_id
    )
    cluster.restart_deployed_code_package(node, "Shop", description)
    cluster.settle()
    again = web_code(cluster, node).main_entry_point
    expect_equal(again.status, "Started", "main entry point after the restart")
    expect(again.process_id != entry.process_id, "the process is the same after the restart")
    counts = int(again.code_package_entry_point_statistics.activation_count)
    expect_equal(counts, int(statistics.activation_count) + 1, "activations")
    for replica in cluster.get_replica_info_list(partitions(cluster, "Shop~Web")[0]).items:
        expect_equal(replica.replica_status, "Ready", f"the instance on {replica.node_name}")
    description.code_package_name = "NoCode"
    cluster.refused("FABRIC_E_CODE_PACKAGE_NOT_FOUND", 404, "restart_deployed_code_package", node, "Shop", description)


@checks("deployed replicas: both kinds, as the partition has them")
def replicas(cluster):
    node, partition, instance = host_of_web(cluster)
    found = cluster.get_deployed_service_replica_info_list(node, "Shop", partition_id=partition)
    web = the_one(found, "instance of Web", lambda each: True)
    expect(isinstance(web, models.DeployedStatelessServiceInstanceInfo), f"{type(web).__name__} of a stateless service")
    expect_fields(
        web,
        {
            "service_name": "fabric:/Shop/Web",
            "service_type_name": "WebType",
            "service_manifest_name": "WebPkg",
            "code_package_name": "Code",
            "partition_id": partition,
            "replica_status": "Ready",
            "instance_id": instance.instance_id,
            "address": instance.address,
        },
        "deployed instance",
    )
    expect_equal(web.host_process_id, web_code(cluster, node).main_entry_point.process_id, "process")

    cart = partitions(cluster, "Shop~Cart")[0]
    replica = cluster.get_replica_info_list(cart).items[0]
    found = cluster.get_deployed_service_replica_info_list(replica.node_name, "Shop", service_manifest_name="CartPkg")
    mine = the_one(found, "replica of Cart", lambda each: each.partition_id == cart)
    expect(isinstance(mine, models.DeployedStatefulServiceReplicaInfo), f"{type(mine).__name__} of a stateful service")
    expect_fields(mine, {"replica_id": identity(replica), "replica_role": replica.replica_role}, "deployed replica")
    expect(not cluster.get_deployed_service_replica_info_list(node, "Nowhere"), "replicas of nothing")


@checks("deployed health: the application and its packages on a node")
def health(cluster):
    node, _, _ = host_of_web(cluster)
    shop = cluster.get_deployed_application_health(node, "Shop")
    expect_fields(shop, {"name": "fabric:/Shop", "node_name": node, "aggregated_health_state": "Ok"}, "Shop")
    packages = {each.service_manifest_name for each in shop.deployed_service_package_health_states}
    expect("WebPkg" in packages, f"packages in the health: {packages}")
    web = cluster.get_deployed_service_package_health(node, "Shop", "WebPkg")
    expect_fields(
        web,
        {
            "application_name": "fabric:/Shop",
            "service_manifest_name": "WebPkg",
            "node_name": node,
            "aggregated_health_state": "Ok",
        },
        "WebPkg",
    )
    hosting = [each for each in web.health_events if each.source_id == "System.Hosting"]
    properties = {each.property for each in hosting}
    expect({"Activation", "ServiceTypeRegistration:WebType"} <= properties, f"events of hosting: {properties}")
