//! The section `SerfDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_serf::options::Section` reads.
pub(super) fn section() -> Value {
    let hold_down = object(
        "Keeps missing members after a reconnect: an agent that has just started may not know all members yet.",
        &json!({
            "Share": { "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1, "description": "The share of the instances that must be missing at once for them to be kept." },
            "Settle": text("How long they are kept. Unset: 10s."),
            "Recheck": text("The interval of polls meanwhile. Unset: 1s."),
        }),
    );
    let health_check = object(
        "Active health checks of destinations.",
        &json!({
            "Enabled": switch("Whether destinations are probed.", true),
            "Interval": text("The interval of probes. Unset: 2s."),
            "Timeout": text("Time limit of a response. Unset: 1s."),
            "Path": text("The path of probes, unless a tag sets it. Unset: `/health`."),
        }),
    );
    object(
        "Discovers services by the tags of the members of a Serf cluster.",
        &json!({
            "Agents": texts("RPC addresses of agents; if one does not respond, the next one is used. Unset: `127.0.0.1:7373`."),
            "AuthKey": text("The agents' `rpc_auth`."),
            "AuthKeyFile": text("File with that key."),
            "ReconcileInterval": text("The interval of polls of the members without an event. Unset: 30s."),
            "Debounce": text("The quiet time after an event before the members are read. Unset: 100ms."),
            "DebounceMax": text("The longest wait after the first event. Unset: 1s."),
            "ConnectTimeout": text("Time limit of connecting, and of each step of the handshake. Unset: 2s."),
            "RequestTimeout": text("Time limit of a response. Unset: 5s."),
            "MaxFrameSize": json!({ "type": "integer", "minimum": 65536, "maximum": 1_073_741_824, "description": "The largest response in bytes. Unset: 67108864." }),
            "HoldDown": hold_down,
            "PrefilterMembers": switch("Whether the agent sends only members with the tag `service`. For clusters of thousands of nodes of which few serve.", false),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before an agent has responded.", false),
            "Persist": text("File that keeps the last known good configuration, for a start while no agent responds."),
            "AllowedServices": texts("Names of the services that are served; others are left out. Unset: all."),
            "AllowedNetworks": texts("Networks that destinations may be in, such as `10.0.0.0/8`. Unset: all."),
            "KeepEmptyServices": switch("Whether a service whose members have all failed or left keeps its route, which then answers 503 instead of 404.", false),
            "LegacyBackend": switch("Whether all requests get 503 instead of 404 as long as no member has the tag `service`.", true),
            "LoadBalancingPolicy": json!({ "type": "string", "default": "RoundRobin", "description": "The load balancing policy." }),
            "HealthCheck": health_check,
            "WeightStrategy": word("Whether the tag `weight` is the destination's weight or how often it is listed.", &["Weighted", "Duplicate"]),
            "VersionHeader": text("Name of a header with which requests select the tag `version` of destinations. Unset: none."),
            "RegionHeader": text("Name of a header with which requests select the tag `region` of destinations. Unset: none."),
            "InformationalTags": switch("Whether `version` and `region` are added to the metadata of destinations.", true),
        }),
    )
}
