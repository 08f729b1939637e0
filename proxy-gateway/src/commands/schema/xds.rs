//! The section `XdsDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_xds::Section` reads.
pub(super) fn section() -> Value {
    let node = object(
        "The identity of this proxy.",
        &json!({
            "Id": text("Its own name. Unset: `proxy`."),
            "Cluster": text("The fleet that it belongs to. Unset: none."),
            "Metadata": json!({ "type": "object", "additionalProperties": { "type": "string" }, "description": "Further data for the control plane." }),
        }),
    );
    let tls = object(
        "TLS with `https` control planes.",
        &json!({
            "CaFile": text("PEM file with the authorities that vouch for control planes. Required for `https`."),
            "ClientCertificateFile": text("PEM file with the certificate presented to control planes."),
            "ClientKeyFile": text("PEM file with its key."),
            "ServerName": text("The name that certificates of control planes must have. Unset: the host of the address."),
        }),
    );
    object(
        "Takes routes and clusters from control planes, as Envoys do.",
        &json!({
            "Servers": texts("Control planes, `http://host:port` or `https://host:port`. The first one that a gateway uses depends on its `Node.Id`; if it is lost, the next one is used. Unset: `http://127.0.0.1:1701`."),
            "Mode": word("The variant of the protocol: delta, or state of the world (SotW).", &["Delta", "StateOfTheWorld"]),
            "Node": node,
            "Tls": tls,
            "RouteConfigs": texts("Route configurations that are requested even if no listener names them. Unset: `main`."),
            "Listeners": switch("Whether listeners are requested, to find route configurations.", true),
            "ConnectTimeout": text("Time limit of connecting. Unset: 5s."),
            "AnswerTimeout": text("Time limit of the first response of a control plane. Unset: 30s."),
            "FetchTimeout": text("The wait for the rest of a change, such as the endpoints of a new cluster. Unset: 15s."),
            "Settle": text("The quiet time before a change is applied. Unset: 20ms."),
            "MaxMessageSize": json!({ "type": "integer", "minimum": 65536, "maximum": 1_073_741_824, "description": "The largest response in bytes. Unset: 67108864." }),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before a control plane has responded.", false),
            "Persist": text("File that keeps the last known good configuration. Unset: none."),
        }),
    )
}
