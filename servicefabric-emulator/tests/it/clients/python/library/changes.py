"""Applications and services come and go."""

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields
from . import checks
from .replicas import partitions


def application(name, type_name="ShopType", version="1.0.0", **parameters):
    """An application to be created."""
    given = [models.ApplicationParameter(key=key, value=value) for key, value in parameters.items()]
    return models.ApplicationDescription(name=name, type_name=type_name, type_version=version, parameter_list=given)


def stateless(name, scheme, count=1, service_type="WebType"):
    """A stateless service to be created."""
    return models.StatelessServiceDescription(
        application_name=name.rsplit("/", 1)[0],
        service_name=name,
        service_type_name=service_type,
        partition_description=scheme,
        instance_count=count,
        instance_close_delay_duration_seconds=0,
        instance_restart_wait_duration_seconds=0,
    )


def stateful(name, scheme):
    """A stateful service to be created."""
    return models.StatefulServiceDescription(
        application_name="fabric:/Branch",
        service_name=name,
        service_type_name="CartType",
        partition_description=scheme,
        target_replica_set_size=3,
        min_replica_set_size=2,
        has_persisted_state=True,
        replica_restart_wait_duration_seconds=60,
        quorum_loss_wait_duration_seconds=60,
        stand_by_replica_keep_duration_seconds=60,
        service_placement_time_limit_seconds=60,
        auxiliary_replica_count=0,
    )


SINGLE = models.SingletonPartitionSchemeDescription()


@checks("create: an application with parameters, once")
def create_application(cluster):
    cluster.create_application(application("fabric:/Branch", Host="branch.example"))
    cluster.settle()
    found = cluster.get_application_info("Branch")
    expect_fields(found, {"name": "fabric:/Branch", "type_version": "1.0.0", "status": "Ready"}, "fabric:/Branch")
    expect_equal({each.key: each.value for each in found.parameters}, {"Host": "branch.example"}, "parameters")
    create = "create_application"
    cluster.refused("FABRIC_E_APPLICATION_ALREADY_EXISTS", 409, create, application("fabric:/Branch"))
    code = "FABRIC_E_APPLICATION_TYPE_NOT_FOUND"
    cluster.refused(code, 404, create, application("fabric:/Other", type_name="NoType"))
    cluster.refused(code, 404, create, application("fabric:/Other", version="9"))
    cluster.refused("FABRIC_E_INVALID_NAME_URI", 400, create, application("Other"))


@checks("create: services of both kinds and all three ways of partitioning")
def create_services(cluster):
    named = models.NamedPartitionSchemeDescription(count=2, names=["a", "b"])
    ranges = models.UniformInt64RangePartitionSchemeDescription(count=3, low_key="0", high_key="99")
    cluster.create_service("Branch", stateless("fabric:/Branch/Web", SINGLE, count=-1))
    cluster.create_service("Branch", stateless("fabric:/Branch/Names", named))
    cluster.create_service("Branch", stateful("fabric:/Branch/Cart", ranges))
    cluster.settle()
    names = [each.name for each in cluster.get_service_info_list("Branch").items]
    expect_equal(names, ["fabric:/Branch/Cart", "fabric:/Branch/Names", "fabric:/Branch/Web"], "services")
    everywhere = cluster.get_replica_info_list(partitions(cluster, "Branch~Web")[0]).items
    expect_equal(len({each.node_name for each in everywhere}), 5, "nodes with an instance")
    infos = [each.partition_information for each in cluster.get_partition_info_list("Branch~Cart").items]
    keys = sorted((int(each.low_key), int(each.high_key)) for each in infos)
    expect_equal(len(keys), 3, "ranges")
    expect_equal((keys[0][0], keys[-1][1]), (0, 99), "ends of the ranges")
    for (_, high), (low, _) in zip(keys, keys[1:]):
        expect_equal(low, high + 1, "a range begins behind the one before")
    for low, high in keys:
        expect(33 <= high - low + 1 <= 34, f"{low} to {high} is no third")
    for partition in partitions(cluster, "Branch~Cart"):
        roles = sorted(each.replica_role for each in cluster.get_replica_info_list(partition).items)
        expect_equal(roles, ["ActiveSecondary", "ActiveSecondary", "Primary"], "roles")
    expect_equal(cluster.get_service_description("Branch~Names").partition_description.names, ["a", "b"], "names")


@checks("create: services that cannot be are refused")
def refused_services(cluster):
    create = "create_service"
    cluster.refused("FABRIC_E_SERVICE_ALREADY_EXISTS", 409, create, "Branch", stateless("fabric:/Branch/Web", SINGLE))
    wrong = stateless("fabric:/Branch/Odd", SINGLE, service_type="NoType")
    cluster.refused("FABRIC_E_SERVICE_TYPE_NOT_FOUND", 404, create, "Branch", wrong)
    cluster.refused("FABRIC_E_APPLICATION_NOT_FOUND", 404, create, "Nowhere", stateless("fabric:/Nowhere/Web", SINGLE))
    wrong = stateful("fabric:/Branch/Odd", SINGLE)
    wrong.min_replica_set_size = wrong.target_replica_set_size + 1
    cluster.refused("E_INVALIDARG", 400, create, "Branch", wrong)


@checks("update: a service gets more and fewer instances")
def update(cluster):
    for count in (4, 2):
        wanted = models.StatelessServiceUpdateDescription(flags="1", instance_count=count)
        cluster.update_service("Branch~Web", wanted)
        cluster.settle()
        expect_equal(cluster.get_service_description("Branch~Web").instance_count, count, "instances that are wanted")
        replicas = cluster.get_replica_info_list(partitions(cluster, "Branch~Web")[0]).items
        ready = [each for each in replicas if each.replica_status == "Ready"]
        expect_equal(len(ready), count, "instances that are ready")
    wanted = models.StatelessServiceUpdateDescription(flags="1", instance_count=2)
    cluster.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", 404, "update_service", "Branch~Nothing", wanted)


@checks("delete: a service, then an application with what is left in it")
def delete(cluster):
    partition = partitions(cluster, "Branch~Web")[0]
    cluster.delete_service("Branch~Web")
    cluster.settle()
    expect_equal(cluster.get_service_info("Branch", "Branch~Web"), None, "a deleted service")
    expect_equal(cluster.get_partition_info(partition), None, "its partition")
    cluster.refused("FABRIC_E_SERVICE_DOES_NOT_EXIST", 404, "delete_service", "Branch~Web")
    cluster.delete_application("Branch", force_remove=True)
    cluster.settle()
    expect_equal(cluster.get_application_info("Branch"), None, "a deleted application")
    cluster.refused("FABRIC_E_APPLICATION_NOT_FOUND", 404, "get_service_info_list", "Branch")
    cluster.refused("FABRIC_E_APPLICATION_NOT_FOUND", 404, "delete_application", "Branch")
    cluster.advance(600)
    for node in cluster.get_node_info_list().items:
        found = cluster.get_deployed_application_info(node.name, "Branch")
        expect_equal(found, None, f"what is left of it on {node.name}")


def third(later=False):
    """The version of the shop's type that is in the image store only."""
    return models.ProvisionApplicationTypeDescription(
        async_property=later, application_type_build_path="ShopType/3.0.0"
    )


@checks("types: provisioned at once or later, one in use stays, an unused one goes")
def provision(cluster):
    def versions():
        return [each.version for each in cluster.get_application_type_info_list_by_name("ShopType").items]

    for later in (False, True):
        expect_equal(versions(), ["1.0.0", "2.0.0"], "versions before")
        cluster.provision_application_type(third(later))
        cluster.settle()
        expect_equal(versions(), ["1.0.0", "2.0.0", "3.0.0"], "versions after it was provisioned")
        add = "provision_application_type"
        cluster.refused("FABRIC_E_APPLICATION_TYPE_ALREADY_EXISTS", 409, add, third(later))
        cluster.unprovision_application_type("ShopType", "3.0.0", async_parameter=later)
        cluster.settle()
        expect_equal(versions(), ["1.0.0", "2.0.0"], "versions after it was unprovisioned")
    gone = "unprovision_application_type"
    cluster.refused("FABRIC_E_APPLICATION_TYPE_IN_USE", 409, gone, "MeterType", "3.1")
    cluster.refused("FABRIC_E_APPLICATION_TYPE_NOT_FOUND", 404, gone, "NoType", "1.0.0")
