//! The section `SerfDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_serf::options::Section` reads.
pub(super) fn section() -> Value {
    let hold_down = object(
        "What happens after a reconnect, when an agent that has just started may not know the members yet.",
        &json!({
            "Share": { "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1, "description": "What share of the instances must be missing at once for them to be kept." },
            "Settle": text("How long they are kept. Unset: 10s."),
            "Recheck": text("How often the agent is asked meanwhile. Unset: 1s."),
        }),
    );
    let health_check = object(
        "How destinations are probed.",
        &json!({
            "Enabled": switch("Whether they are.", true),
            "Interval": text("From probe to probe. Unset: 2s."),
            "Timeout": text("How long an answer may take. Unset: 1s."),
            "Path": text("What is asked for, where no tag says it. Unset: `/health`."),
        }),
    );
    object(
        "Discovers services by the tags of the members of a Serf cluster.",
        &json!({
            "Agents": texts("RPC addresses of agents; the next one is asked when one does not answer. Unset: `127.0.0.1:7373`."),
            "AuthKey": text("What the agents have as `rpc_auth`."),
            "AuthKeyFile": text("File with that key."),
            "ReconcileInterval": text("How often the members are read when no event says that something changed. Unset: 30s."),
            "Debounce": text("How long it must be quiet after an event before the members are read. Unset: 100ms."),
            "DebounceMax": text("The longest wait after the first event. Unset: 1s."),
            "ConnectTimeout": text("How long connecting may take, and each step of the handshake. Unset: 2s."),
            "RequestTimeout": text("How long an answer may take. Unset: 5s."),
            "MaxFrameSize": json!({ "type": "integer", "minimum": 65536, "maximum": 1_073_741_824, "description": "The largest answer in bytes. Unset: 67108864." }),
            "HoldDown": hold_down,
            "PrefilterMembers": switch("Whether the agent sends only members with the tag `service`. For clusters of thousands of nodes of which few serve.", false),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before an agent has answered.", false),
            "Persist": text("File that keeps the last known good configuration, for a start while no agent answers."),
            "AllowedServices": texts("Names of the services that are served; others are left out. Unset: all."),
            "AllowedNetworks": texts("Networks that destinations may be in, such as `10.0.0.0/8`. Unset: all."),
            "KeepEmptyServices": switch("Whether a service whose members have all failed or left keeps its route, which then answers 503 instead of 404.", false),
            "LegacyBackend": switch("Whether all requests get 503 instead of 404 as long as no member has the tag `service`.", true),
            "LoadBalancingPolicy": json!({ "type": "string", "default": "RoundRobin", "description": "How a destination is picked." }),
            "HealthCheck": health_check,
            "WeightStrategy": word("Whether the tag `weight` is the destination's weight or how often it is listed.", &["Weighted", "Duplicate"]),
            "VersionHeader": text("Name of a header by which requests choose the tag `version` of the destination. Unset: none."),
            "RegionHeader": text("The same for the tag `region`."),
            "InformationalTags": switch("Whether `version` and `region` are metadata of destinations.", true),
        }),
    )
}
