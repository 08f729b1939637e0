"""`sfctl cluster`, `sfctl node`."""

import json
import xml.etree.ElementTree as ElementTree

from conformance.checks import expect, expect_equal, expect_fields
from . import checks, event_of, items, node_names


@checks("cluster select, cluster show-connection, settings telemetry set-telemetry")
def select(sfctl):
    expect_equal(sfctl.alone("cluster", "select", "--endpoint", sfctl.endpoint), (0, "", ""), "what a selection says")
    expect_equal(sfctl("cluster show-connection"), sfctl.endpoint, "what is selected")
    code, output, errors = sfctl.run("settings", "telemetry", "set-telemetry", "--off")
    expect_equal((code, output.strip()), (0, "Telemetry has been turned off"), f"turning telemetry off ({errors})")
    code, output, errors = sfctl.alone("application", "list")
    expect_equal((code, errors), (0, ""), "how the program itself ends")
    expect_equal(json.loads(output), sfctl("application list"), "what the program itself prints")


@checks("cluster health, cluster report-health")
def health(sfctl):
    found = sfctl("cluster health")
    expect_equal(found["aggregatedHealthState"], "Ok", "health of the cluster")
    expect_equal(len(found["nodeHealthStates"]), 5, "nodes")
    expect("fabric:/Shop" in [each["name"] for each in found["applicationHealthStates"]], "the application is missing")
    sfctl(
        "cluster report-health",
        source_id="Operator",
        health_property="Maintenance",
        health_state="Warning",
        description="tonight",
        ttl="PT1M",
        remove_when_expired=True,
        immediate=True,
    )
    found = sfctl("cluster health", nodes_health_state_filter="1", applications_health_state_filter="1")
    expect_equal(found["aggregatedHealthState"], "Warning", "health of the cluster after a warning")
    expect_equal(found["nodeHealthStates"], [], "nodes that are filtered out")
    event = event_of(found, "Operator", "Maintenance")
    expect_fields(event, {"healthState": "Warning", "description": "tonight", "isExpired": False}, "event")
    expect_equal(event["timeToLiveInMilliSeconds"], "0:01:00", "time to live")
    sfctl.advance(61)
    expect_equal(event_of(sfctl("cluster health"), "Operator", "Maintenance"), None, "an expired event")


@checks("cluster manifest, cluster code-versions, cluster config-versions")
def manifest(sfctl):
    root = ElementTree.fromstring(sfctl("cluster manifest")["manifest"])
    expect_equal(root.tag.split("}")[-1], "ClusterManifest", "root element")
    node = items(sfctl("node list"))[0]
    codes = [each["codeVersion"] for each in sfctl("cluster code-versions")]
    expect(node["codeVersion"] in codes, f"{node['codeVersion']} is not among {codes}")
    configurations = [each["configVersion"] for each in sfctl("cluster config-versions")]
    expect(node["configVersion"] in configurations, f"{node['configVersion']} is not among {configurations}")


@checks("node list, node info")
def nodes(sfctl):
    found = items(sfctl("node list"))
    expect_equal(len(found), 5, "nodes")
    for node in found:
        expect_fields(node, {"nodeStatus": "Up", "healthState": "Ok", "isStopped": False}, node["name"])
        expect_equal(sfctl("node info", node_name=node["name"]) if node is found[0] else node, node, node["name"])
    expect_equal(items(sfctl("node list", node_status_filter="down")), [], "nodes that are down")
    expect_equal(len(items(sfctl("node list", max_results="5"))), 5, "nodes on one page")
    expect_equal(sfctl("node info", node_name="nobody"), None, "a node that is not there")


@checks("node health, node report-health")
def node_health(sfctl):
    name = node_names(sfctl)[1]
    expect_fields(sfctl("node health", node_name=name), {"name": name, "aggregatedHealthState": "Ok"}, "health")
    report = {"source_id": "Operator", "health_property": "Disk", "ttl": "PT1M", "remove_when_expired": "true"}
    sfctl("node report-health", node_name=name, health_state="Error", immediate=True, **report)
    found = sfctl("node health", node_name=name)
    expect_equal(found["aggregatedHealthState"], "Error", "health after an error")
    cause = found["unhealthyEvaluations"][0]["healthEvaluation"]
    expect_fields(cause, {"kind": "Event", "aggregatedHealthState": "Error"}, "cause")
    expect_equal(cause["unhealthyEvent"]["property"], "Disk", "property of the cause")
    sfctl.advance(61)
    expect_equal(sfctl("node health", node_name=name)["aggregatedHealthState"], "Ok", "health after it expired")
    sfctl.refused("FABRIC_E_HEALTH_ENTITY_NOT_FOUND", "node health", node_name="nobody")
    sfctl("node report-health", node_name="nobody", health_state="Error", immediate=True, **report)
    sfctl.refused(
        "E_INVALIDARG",
        "node report-health",
        node_name=name,
        source_id="System.Disk",
        health_property="Disk",
        health_state="Ok",
    )


@checks("node disable, node enable")
def deactivation(sfctl):
    name = node_names(sfctl)[-1]
    sfctl("node disable", node_name=name, deactivation_intent="Restart")
    sfctl.settle()
    found = sfctl("node info", node_name=name)
    expect_equal(found["nodeStatus"], "Disabled", name)
    expect_fields(
        found["nodeDeactivationInfo"],
        {"nodeDeactivationIntent": "Restart", "nodeDeactivationStatus": "Completed"},
        "deactivation",
    )
    expect_equal(
        [each["name"] for each in items(sfctl("node list", node_status_filter="disabled"))], [name], "disabled nodes"
    )
    sfctl("node enable", node_name=name)
    sfctl.settle()
    expect_equal(sfctl("node info", node_name=name)["nodeStatus"], "Up", f"{name} once it is enabled")
    sfctl.refused("FABRIC_E_NODE_NOT_FOUND", "node disable", node_name="nobody", deactivation_intent="Pause")
    sfctl.refused("FABRIC_E_NODE_NOT_FOUND", "node enable", node_name="nobody")


@checks("node restart")
def restart(sfctl):
    before = items(sfctl("node list"))[2]
    sfctl("node restart", node_name=before["name"])
    sfctl.settle()
    after = sfctl("node info", node_name=before["name"])
    expect_equal(after["nodeStatus"], "Up", before["name"])
    expect(after["instanceId"] != before["instanceId"], "the instance is the same after the restart")
    sfctl("node restart", node_name=before["name"], node_instance_id=after["instanceId"])
    sfctl.settle()
    stale = {"node_name": before["name"], "node_instance_id": before["instanceId"]}
    sfctl.refused("FABRIC_E_INSTANCE_ID_MISMATCH", "node restart", **stale)
    sfctl.refused("FABRIC_E_NODE_NOT_FOUND", "node restart", node_name="nobody")
