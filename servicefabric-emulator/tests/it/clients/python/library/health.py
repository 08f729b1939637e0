"""Health reports and what becomes of them."""

from datetime import timedelta

from azure.servicefabric import models

from conformance.checks import expect, expect_equal, expect_fields, the_one
from . import checks
from .replicas import NOBODY, identity, partitions

SOURCE = "Watchdog"


def report(prop, state="Warning", **more):
    """A report of the tests' watchdog."""
    return models.HealthInformation(source_id=SOURCE, property=prop, health_state=state, **more)


def event_of(health, prop):
    """The event of the tests' watchdog for a property, or `None`."""
    found = [each for each in health.health_events if (each.source_id, each.property) == (SOURCE, prop)]
    expect(len(found) <= 1, f"{len(found)} events of one source for {prop}")
    return found[0] if found else None


def entities(cluster):
    """Every kind of entity that health is kept for: its name, how to report about it and how to ask for its health."""
    web = partitions(cluster, "Shop~Web")[0]
    instance = cluster.get_replica_info_list(web).items[0]
    cart = partitions(cluster, "Shop~Cart")[0]
    replica = cluster.get_replica_info_list(cart).items[0]
    node = instance.node_name
    return [
        ("cluster", (), {}),
        ("node", (node,), {}),
        ("application", ("Shop",), {}),
        ("service", ("Shop~Web",), {}),
        ("partition", (web,), {}),
        ("replica", (web, identity(instance)), {"service_kind": "Stateless"}),
        ("replica", (cart, identity(replica)), {"service_kind": "Stateful"}),
        ("deployed_application", (node, "Shop"), {}),
        ("deployed_service_package", (node, "Shop", "WebPkg"), {}),
    ]


@checks("reports: about every kind of entity, at once, with all fields")
def every_kind(cluster):
    for kind, path, more in entities(cluster):
        what = f"{kind} {path}"
        told = report(
            "EveryKind",
            description="something is odd",
            time_to_live_in_milli_seconds=timedelta(minutes=5),
            remove_when_expired=True,
            sequence_number="11",
        )
        getattr(cluster, f"report_{kind}_health")(*path, told, immediate=True, **more)
        health = getattr(cluster, f"get_{kind}_health")(*path)
        expect_equal(health.aggregated_health_state, "Warning", what)
        event = event_of(health, "EveryKind")
        expect(event is not None, f"{what}: the event is missing")
        expect_fields(
            event,
            {
                "health_state": "Warning",
                "description": "something is odd",
                "time_to_live_in_milli_seconds": timedelta(minutes=5),
                "remove_when_expired": True,
                "sequence_number": "11",
                "is_expired": False,
            },
            what,
        )
        expect(event.last_warning_transition_at is not None, f"{what}: no time of the transition")
        expect(event.source_utc_timestamp <= event.last_modified_utc_timestamp, f"{what}: times are out of order")
        causes = [each.health_evaluation for each in health.unhealthy_evaluations]
        cause = the_one(causes, "causes by event", lambda each: each.kind == "Event")
        expect_equal(cause.unhealthy_event.property, "EveryKind", f"{what}: cause")
        expect(SOURCE in cause.description and "EveryKind" in cause.description, f"{what}: {cause.description}")
    cluster.advance(301)
    for kind, path, _ in entities(cluster):
        health = getattr(cluster, f"get_{kind}_health")(*path)
        expect_equal(event_of(health, "EveryKind"), None, f"{kind} {path} after the event expired")
        expect_equal(health.aggregated_health_state, "Ok", f"{kind} {path} after the event expired")


@checks("reports: kept back for the batch interval unless they are immediate")
def batches(cluster):
    cluster.report_service_health("Shop~Web", report("Batch"))
    expect_equal(event_of(cluster.get_service_health("Shop~Web"), "Batch"), None, "before the interval is over")
    cluster.advance(30)
    expect(event_of(cluster.get_service_health("Shop~Web"), "Batch") is not None, "not sent after the interval")
    cluster.report_service_health("Shop~Web", report("Batch", "Ok"), immediate=True)
    expect_equal(event_of(cluster.get_service_health("Shop~Web"), "Batch").health_state, "Ok", "state at once")


@checks("reports: what expires before it is sent is never seen")
def expired_in_batch(cluster):
    told = report("Short", time_to_live_in_milli_seconds=timedelta(seconds=15), remove_when_expired=True)
    cluster.report_service_health("Shop~Web", told)
    cluster.advance(30)
    expect_equal(event_of(cluster.get_service_health("Shop~Web"), "Short"), None, "an event that had expired")


@checks("reports: about what is not there are taken and vanish")
def nobody(cluster):
    about = "Nobody"
    cluster.report_node_health("nobody", report(about), immediate=True)
    cluster.report_application_health("Nowhere", report(about), immediate=True)
    cluster.report_service_health("Shop~Nothing", report(about), immediate=True)
    cluster.report_partition_health(NOBODY, report(about), immediate=True)
    cluster.report_replica_health(NOBODY, "1", report(about), service_kind="Stateful", immediate=True)
    code = "FABRIC_E_HEALTH_ENTITY_NOT_FOUND"
    cluster.refused(code, 404, "get_node_health", "nobody")
    cluster.refused(code, 404, "get_application_health", "Nowhere")
    cluster.refused(code, 404, "get_service_health", "Shop~Nothing")
    cluster.refused(code, 404, "get_partition_health", NOBODY)
    cluster.refused(code, 404, "get_replica_health", NOBODY, "1")
    cluster.refused(code, 404, "get_deployed_application_health", "nobody", "Shop")


@checks("reports: ill-formed ones are refused")
def refused(cluster):
    def told(source=SOURCE, prop="Refused", state="Warning"):
        return models.HealthInformation(source_id=source, property=prop, health_state=state)

    for wrong in (
        told(source=""),
        told(source="System.Watchdog"),
        told(source="system.watchdog"),
        told(prop=""),
        told(state="Invalid"),
        told(state="Unknown"),
        told(state="Purple"),
    ):
        cluster.refused("E_INVALIDARG", 400, "report_service_health", "Shop~Web", wrong, immediate=True)
    expect_equal(event_of(cluster.get_service_health("Shop~Web"), "Refused"), None, "a refused report")


@checks("reports: an older sequence number is stale, a newer one replaces")
def sequence(cluster):
    cluster.report_service_health("Shop~Web", report("Order", sequence_number="100"), immediate=True)
    cluster.refused(
        "FABRIC_E_HEALTH_STALE_REPORT",
        409,
        "report_service_health",
        "Shop~Web",
        report("Order", "Ok", sequence_number="99"),
        immediate=True,
    )
    event = event_of(cluster.get_service_health("Shop~Web"), "Order")
    expect_fields(event, {"health_state": "Warning", "sequence_number": "100"}, "after a stale report")
    cluster.report_service_health("Shop~Web", report("Order", "Ok", sequence_number="101"), immediate=True)
    event = event_of(cluster.get_service_health("Shop~Web"), "Order")
    expect_fields(event, {"health_state": "Ok", "sequence_number": "101"}, "after a newer report")


@checks("expiry: an event is removed, or turns into an error until it is renewed")
def expiry(cluster):
    minute = timedelta(minutes=1)
    removed = report("Removed", time_to_live_in_milli_seconds=minute, remove_when_expired=True)
    kept = report("Kept", "Ok", time_to_live_in_milli_seconds=minute, remove_when_expired=False)
    cluster.report_service_health("Shop~Web", removed, immediate=True)
    cluster.report_service_health("Shop~Web", kept, immediate=True)
    cluster.advance(59)
    health = cluster.get_service_health("Shop~Web")
    expect(event_of(health, "Removed") is not None, "the event is gone too early")
    expect_equal(event_of(health, "Kept").is_expired, False, "expired too early")
    cluster.advance(2)
    health = cluster.get_service_health("Shop~Web")
    expect_equal(event_of(health, "Removed"), None, "an event that was to be removed")
    expect_equal(event_of(health, "Kept").is_expired, True, "expired")
    expect_equal(health.aggregated_health_state, "Error", "health with an expired event")
    renewed = report("Kept", "Ok", time_to_live_in_milli_seconds=timedelta(seconds=5), remove_when_expired=True)
    cluster.report_service_health("Shop~Web", renewed, immediate=True)
    expect_equal(cluster.get_service_health("Shop~Web").aggregated_health_state, "Ok", "health when it is renewed")
    cluster.advance(6)


@checks("aggregation: a child in error makes its parents unhealthy, with the way to it")
def aggregation(cluster):
    partition = partitions(cluster, "Shop~Cart")[0]
    replica = cluster.get_replica_info_list(partition).items[0].replica_id
    told = report("Broken", "Error", time_to_live_in_milli_seconds=timedelta(minutes=1), remove_when_expired=True)
    cluster.report_replica_health(partition, replica, told, service_kind="Stateful", immediate=True)
    states = {
        "partition": cluster.get_partition_health(partition),
        "service": cluster.get_service_health("Shop~Cart"),
        "application": cluster.get_application_health("Shop"),
        "cluster": cluster.get_cluster_health(),
    }
    for what, health in states.items():
        expect_equal(health.aggregated_health_state, "Error", f"health of the {what}")
    unhealthy = [
        each.replica_id for each in states["partition"].replica_health_states if each.aggregated_health_state == "Error"
    ]
    expect_equal(unhealthy, [replica], "unhealthy replicas")

    way, evaluations = [], states["cluster"].unhealthy_evaluations
    while evaluations:
        evaluation = evaluations[0].health_evaluation
        way.append(evaluation.kind)
        evaluations = getattr(evaluation, "unhealthy_evaluations", None)
    expected = [
        "Applications",
        "Application",
        "Services",
        "Service",
        "Partitions",
        "Partition",
        "Replicas",
        "Replica",
        "Event",
    ]
    expect_equal(way, expected, "way from the cluster to the event")
    cluster.advance(61)
    expect_equal(cluster.get_cluster_health().aggregated_health_state, "Ok", "health of the cluster afterwards")


@checks("filters: events and children of the chosen states only")
def filters(cluster):
    brief = {"time_to_live_in_milli_seconds": timedelta(minutes=1), "remove_when_expired": True}
    cluster.report_service_health("Shop~Web", report("Fine", "Ok", **brief), immediate=True)
    cluster.report_service_health("Shop~Web", report("Odd", "Warning", **brief), immediate=True)
    for mask, expected in (
        (0, {"Fine", "Odd"}),
        (1, set()),
        (2, {"Fine"}),
        (4, {"Odd"}),
        (8, set()),
        (65535, {"Fine", "Odd"}),
    ):
        health = cluster.get_service_health("Shop~Web", events_health_state_filter=mask)
        found = {each.property for each in health.health_events if each.source_id == SOURCE} & {"Fine", "Odd"}
        expect_equal(found, expected, f"events with the filter {mask}")
    health = cluster.get_service_health("Shop~Web", partitions_health_state_filter=8, exclude_health_statistics=True)
    expect_equal(health.partition_health_states, [], "partitions in error")
    expect_equal(health.health_statistics, None, "statistics although they are excluded")
    policy = models.ApplicationHealthPolicy(consider_warning_as_error=True)
    strict = cluster.get_service_health_using_policy("Shop~Web", application_health_policy=policy)
    expect_equal(strict.aggregated_health_state, "Error", "when warnings count as errors")
    expect_equal(cluster.get_service_health("Shop~Web").aggregated_health_state, "Warning", "without a policy")
    strict = cluster.get_application_health_using_policy("Shop", application_health_policy=policy)
    expect_equal(strict.aggregated_health_state, "Error", "of the application when warnings count as errors")
    cluster.advance(61)


@checks("chunk: only what the filters ask for, at every level")
def chunk(cluster):
    bare = cluster.get_cluster_health_chunk()
    expect_equal(bare.health_state, "Ok", "health of the cluster")
    for chunks in (bare.node_health_state_chunks, bare.application_health_state_chunks):
        expect(not chunks or not chunks.items, "children although no filter asks for them")
    node = cluster.get_node_info_list().items[0].name
    partition = partitions(cluster, "Shop~Web")[0]
    cluster.report_service_health(
        "Shop~Web",
        report("Chunk", time_to_live_in_milli_seconds=timedelta(minutes=1), remove_when_expired=True),
        immediate=True,
    )
    query = models.ClusterHealthChunkQueryDescription(
        node_filters=[models.NodeHealthStateFilter(node_name_filter=node, health_state_filter=65535)],
        application_filters=[
            models.ApplicationHealthStateFilter(
                application_name_filter="fabric:/Shop",
                health_state_filter=65535,
                service_filters=[
                    models.ServiceHealthStateFilter(
                        health_state_filter=4,
                        partition_filters=[
                            models.PartitionHealthStateFilter(partition_id_filter=partition, health_state_filter=65535)
                        ],
                    )
                ],
            )
        ],
        application_health_policies=models.ApplicationHealthPolicies(application_health_policy_map=[]),
    )
    found = cluster.get_cluster_health_chunk_using_policy_and_advanced_filters(query)
    expect_equal(found.health_state, "Warning", "health of the cluster")
    expect_equal([each.node_name for each in found.node_health_state_chunks.items], [node], "nodes")
    shop = the_one(found.application_health_state_chunks.items, "applications", lambda each: True)
    expect_fields(
        shop,
        {"application_name": "fabric:/Shop", "application_type_name": "ShopType", "health_state": "Warning"},
        "chunk",
    )
    web = the_one(shop.service_health_state_chunks.items, "services in warning", lambda each: True)
    expect_equal(web.service_name, "fabric:/Shop/Web", "service in warning")
    ids = [each.partition_id for each in web.partition_health_state_chunks.items]
    expect_equal(ids, [partition], "partitions")
    cluster.advance(61)


@checks("description: a long one is cut, not refused")
def long_description(cluster):
    told = report(
        "Long",
        description="long " * 2000,
        time_to_live_in_milli_seconds=timedelta(seconds=5),
        remove_when_expired=True,
    )
    cluster.report_service_health("Shop~Web", told, immediate=True)
    kept = event_of(cluster.get_service_health("Shop~Web"), "Long").description
    expect(kept.startswith("long long "), kept[:20])
    expect(len(kept) <= 4096, f"{len(kept)} characters are kept")
    cluster.advance(6)
