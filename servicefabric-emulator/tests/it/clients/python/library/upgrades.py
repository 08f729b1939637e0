"""Rolling upgrades of an application. These come last: they change what the others look at."""

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields
from . import checks
from .replicas import partitions


def to(version, mode="UnmonitoredAuto", wait=None, **parameters):
    """An upgrade of the shop, which waits so many seconds after each domain."""
    given = [models.ApplicationParameter(key=key, value=value) for key, value in parameters.items()]
    policy = wait and models.MonitoringPolicyDescription(
        failure_action="Rollback",
        health_check_wait_duration_in_milliseconds=f"PT0H0M{wait}S",
        health_check_stable_duration_in_milliseconds="PT0H0M0S",
    )
    return models.ApplicationUpgradeDescription(
        name="fabric:/Shop",
        target_application_type_version=version,
        parameters=given,
        upgrade_kind="Rolling",
        rolling_upgrade_mode=mode,
        force_restart=False,
        upgrade_replica_set_check_timeout_in_seconds=60,
        monitoring_policy=policy,
    )


@checks("upgrade: what cannot be is refused")
def refused(cluster):
    start = "start_application_upgrade"
    cluster.refused("FABRIC_E_APPLICATION_NOT_FOUND", 404, start, "Nowhere", to("2.0.0"))
    cluster.refused("FABRIC_E_APPLICATION_TYPE_NOT_FOUND", 404, start, "Shop", to("9.9.9"))
    cluster.refused("FABRIC_E_APPLICATION_NOT_UPGRADING", 400, "rollback_application_upgrade", "Shop")


@checks("upgrade: domain by domain, to the new version with the new parameters")
def rolling(cluster):
    cluster.start_application_upgrade("Shop", to("2.0.0", mode="Monitored", wait=30, Host="new.example"))
    cluster.refused("FABRIC_E_APPLICATION_UPGRADE_IN_PROGRESS", 409, "start_application_upgrade", "Shop", to("2.0.0"))
    progress = cluster.get_application_upgrade("Shop")
    expect_fields(
        progress,
        {"name": "fabric:/Shop", "type_name": "ShopType", "target_application_type_version": "2.0.0"},
        "progress",
    )
    expect_equal(cluster.get_application_info("Shop").status, "Upgrading", "status of the application")
    domains = {node.upgrade_domain for node in cluster.get_node_info_list().items}
    expect_equal({each.name for each in progress.upgrade_domains}, domains, "domains")
    for number in range(len(domains)):
        progress = cluster.get_application_upgrade("Shop")
        expect_equal(progress.upgrade_state, "RollingForwardInProgress", f"state in domain {number}")
        states = [each.state for each in progress.upgrade_domains]
        expect_equal(states.count("Completed"), number, "domains that are done")
        cluster.advance(31)
    done = cluster.get_application_upgrade("Shop")
    expect_equal(done.upgrade_state, "RollingForwardCompleted", "state")
    expect_equal({each.state for each in done.upgrade_domains}, {"Completed"}, "states of the domains")
    cluster.settle()
    shop = cluster.get_application_info("Shop")
    expect_fields(shop, {"type_version": "2.0.0", "status": "Ready"}, "the upgraded application")
    expect_equal({each.key: each.value for each in shop.parameters}, {"Host": "new.example"}, "parameters")
    for replica in cluster.get_replica_info_list(partitions(cluster, "Shop~Web")[0]).items:
        packages = cluster.get_deployed_service_package_info_list_by_name(replica.node_name, "Shop", "WebPkg")
        expect_equal([each.version for each in packages], ["2.0.0"], f"package on {replica.node_name}")


@checks("upgrade: by hand, one domain after the other, and back")
def manual(cluster):
    cluster.start_application_upgrade("Shop", to("1.0.0", mode="UnmonitoredManual"))
    cluster.settle()
    waiting = cluster.get_application_upgrade("Shop")
    expect_equal(waiting.upgrade_state, "RollingForwardPending", "state after the first domain")
    expect(waiting.next_upgrade_domain, "no next domain")
    states = [each.state for each in waiting.upgrade_domains]
    expect_equal(states.count("Completed"), 1, "domains that are done")
    cluster.resume_application_upgrade("Shop", waiting.next_upgrade_domain)
    cluster.settle()
    states = [each.state for each in cluster.get_application_upgrade("Shop").upgrade_domains]
    expect_equal(states.count("Completed"), 2, "domains that are done")
    cluster.rollback_application_upgrade("Shop")
    for _ in range(60):
        if cluster.get_application_upgrade("Shop").upgrade_state == "RollingBackCompleted":
            break
        cluster.settle()
    expect_equal(cluster.get_application_upgrade("Shop").upgrade_state, "RollingBackCompleted", "state at the end")
    cluster.settle()
    expect_fields(cluster.get_application_info("Shop"), {"type_version": "2.0.0", "status": "Ready"}, "fabric:/Shop")
