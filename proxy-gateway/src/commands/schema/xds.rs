//! The section `XdsDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_xds::Section` reads.
pub(super) fn section() -> Value {
    let node = object(
        "Who this proxy is.",
        &json!({
            "Id": text("Its own name. Unset: `proxy`."),
            "Cluster": text("The fleet that it belongs to. Unset: none."),
            "Metadata": json!({ "type": "object", "additionalProperties": { "type": "string" }, "description": "Whatever else the control plane wants to know." }),
        }),
    );
    let tls = object(
        "How `https` control planes are spoken with.",
        &json!({
            "CaFile": text("PEM file with the authorities that vouch for control planes. Required for `https`."),
            "ClientCertificateFile": text("PEM file with the certificate that is shown to control planes."),
            "ClientKeyFile": text("PEM file with its key."),
            "ServerName": text("The name that certificates of control planes must have. Unset: the host of the address."),
        }),
    );
    object(
        "Takes routes and clusters from control planes, as Envoys do.",
        &json!({
            "Servers": texts("Control planes, `http://host:port` or `https://host:port`; where a gateway begins depends on its `Node.Id`, and the next one is asked when one is lost. Unset: `http://127.0.0.1:1701`."),
            "Mode": word("Which variant of the protocol is spoken.", &["Delta", "StateOfTheWorld"]),
            "Node": node,
            "Tls": tls,
            "RouteConfigs": texts("Route configurations that are asked for whether or not a listener names them. Unset: `main`."),
            "Listeners": switch("Whether listeners are asked for, to find route configurations.", true),
            "ConnectTimeout": text("How long connecting may take. Unset: 5s."),
            "AnswerTimeout": text("How long a control plane may take to answer at all. Unset: 30s."),
            "FetchTimeout": text("How long the rest of a change is waited for, such as the endpoints of a new cluster. Unset: 15s."),
            "Settle": text("How long it has to be quiet before a change is taken in. Unset: 20ms."),
            "MaxMessageSize": json!({ "type": "integer", "minimum": 65536, "maximum": 1_073_741_824, "description": "The largest answer in bytes. Unset: 67108864." }),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before a control plane has answered.", false),
            "Persist": text("File that keeps the last known good configuration. Unset: none."),
        }),
    )
}
