"""Parts of a real cluster that are not there: each command ends with the error that the cluster sends, not with one of
the program itself."""

import os
import tempfile

from . import checks, NOBODY

TIMES = {"start_time_utc": "2026-01-01T00:00:00Z", "end_time_utc": "2026-01-02T00:00:00Z"}
NODE = {"node_name": "_Node_0"}
CONTAINER = {**NODE, "application_id": "Shop", "service_manifest_name": "m", "code_package_name": "c"}
PARTITION = {"partition_id": NOBODY}
FAULT = {"service_id": "Shop~Web", "operation_id": NOBODY, **PARTITION}
REPAIR = {"task_id": "task"}

# Commands of a part that the emulator names as not there. `compose` takes a file.
NOT_IMPLEMENTED = [
    ("chaos events", {}),
    ("chaos get", {}),
    ("chaos schedule get", {}),
    ("chaos schedule set", {}),
    ("chaos start", {}),
    ("chaos stop", {}),
    ("cluster operation-cancel", {"operation_id": NOBODY}),
    ("cluster operation-list", {}),
    ("compose list", {}),
    ("compose remove", {"deployment_name": "d"}),
    ("compose status", {"deployment_name": "d"}),
    ("compose upgrade-rollback", {"deployment_name": "d"}),
    ("compose upgrade-status", {"deployment_name": "d"}),
    ("events all-applications-list", TIMES),
    ("events all-nodes-list", TIMES),
    ("events all-partitions-list", TIMES),
    ("events all-services-list", TIMES),
    ("events application-list", {"application_id": "Shop", **TIMES}),
    ("events cluster-list", TIMES),
    ("events node-list", {**NODE, **TIMES}),
    ("events partition-all-replicas-list", {**PARTITION, **TIMES}),
    ("events partition-list", {**PARTITION, **TIMES}),
    ("events partition-replica-list", {**PARTITION, "replica_id": "1", **TIMES}),
    ("events service-list", {"service_id": "Shop~Web", **TIMES}),
    (
        "node transition",
        {
            **NODE,
            "operation_id": NOBODY,
            "node_transition_type": "Stop",
            "node_instance_id": "1",
            "stop_duration_in_seconds": "10",
        },
    ),
    ("node transition-status", {**NODE, "operation_id": NOBODY}),
    ("partition data-loss", {**FAULT, "data_loss_mode": "PartialDataLoss"}),
    ("partition data-loss-status", FAULT),
    ("partition quorum-loss", {**FAULT, "quorum_loss_mode": "QuorumReplicas", "quorum_loss_duration": "10"}),
    ("partition quorum-loss-status", FAULT),
    ("partition restart", {**FAULT, "restart_partition_mode": "AllReplicasOrInstances"}),
    ("partition restart-status", FAULT),
]

# Commands whose paths the emulator does not know, as a gateway answers what it does not know.
UNKNOWN = [
    ("application load", {"application_id": "Shop"}),
    ("cluster recover-system", {}),
    ("cluster unprovision", {"code_version": "1"}),
    ("cluster upgrade", {"code_version": "1"}),
    ("cluster upgrade-resume", {"upgrade_domain": "UD0"}),
    ("cluster upgrade-rollback", {}),
    ("cluster upgrade-status", {}),
    ("cluster upgrade-update", {}),
    ("container invoke-api", {**CONTAINER, "code_package_instance_id": "1", "container_api_uri_path": "/x"}),
    ("container logs", {**CONTAINER, "code_package_instance_id": "1"}),
    (
        "node add-configuration-parameter-overrides",
        {
            **NODE,
            "config_parameter_override_list": [{"SectionName": "a", "ParameterName": "b", "ParameterValue": "c"}],
        },
    ),
    ("node add-node-tags", {**NODE, "tags": ["a"]}),
    ("node get-configuration-overrides", NODE),
    ("node load", NODE),
    ("node remove-configuration-overrides", NODE),
    ("node remove-node-tags", {**NODE, "tags": ["a"]}),
    ("node remove-state", NODE),
    ("partition get-loaded-partition-info-list", {"metric_name": "m"}),
    ("partition load", PARTITION),
    ("partition load-reset", PARTITION),
    ("partition recover", PARTITION),
    ("partition recover-all", {}),
    ("replica deployed", {**NODE, **PARTITION, "replica_id": "1"}),
    ("rpm approve-force", REPAIR),
    ("rpm delete", REPAIR),
    ("rpm list", {}),
    ("sa-cluster config", {"configuration_api_version": "1"}),
    ("sa-cluster config-upgrade", {"cluster_config": {}}),
    ("sa-cluster upgrade-status", {}),
    ("service get-container-logs", CONTAINER),
    ("service recover", {"service_id": "Shop~Web"}),
]


def all_refused(sfctl, code, commands):
    """Runs all, and raises once with those that end otherwise."""
    wrong = []
    for command, options in commands:
        try:
            sfctl.refused(code, command, **options)
        except AssertionError as error:
            wrong.append(str(error))
    if wrong:
        raise AssertionError("\n".join(wrong))


@checks("what is not there: Chaos, faults, compose, events")
def not_implemented(sfctl):
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "compose.yml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("version: '3'\n")
        compose = {"deployment_name": "d", "file_path": path}
        with_files = [("compose create", compose), ("compose upgrade", compose)]
        all_refused(sfctl, "E_NOTIMPL", NOT_IMPLEMENTED + with_files)


@checks("what is not there: loads, repairs, containers, tags, upgrades of the cluster")
def unknown(sfctl):
    all_refused(sfctl, "E_INVALIDARG", UNKNOWN)
