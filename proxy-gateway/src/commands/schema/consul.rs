//! The section `ConsulDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_consul::options::Section` reads.
pub(super) fn section() -> Value {
    let tls = object(
        "TLS with an `https` address.",
        &json!({
            "CaFile": text("PEM file with the authorities that vouch for the agent. Unset: those that the system trusts."),
            "ClientCertificateFile": text("PEM file with the certificate presented to the agent."),
            "ClientKeyFile": text("PEM file with its key."),
            "ServerName": text("The name that the agent's certificate must have. Unset: the host of the address."),
        }),
    );
    let shrink_guard = object(
        "Keeps instances when many disappear at once: a server that has lost its data and a token that has lost its rights both return empty lists.",
        &json!({
            "Share": { "type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "If more than this share of a datacenter's instances disappears, they are kept until a second poll." },
            "Least": { "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 2, "description": "The minimum number of instances." },
            "Settle": text("The time for which they are kept before the second poll. Unset: 10s."),
        }),
    );
    object(
        "Discovers services by their tags and metadata in the catalog of Consul.",
        &json!({
            "Address": text("The agent: `host:port` or a URL. Unset: `http://127.0.0.1:8500`."),
            "Token": text("ACL token. Unset: none."),
            "TokenFile": text("File with that token; read again when it changes."),
            "Namespace": text("Namespace, in Consul Enterprise."),
            "Partition": text("Admin partition, in Consul Enterprise."),
            "Tls": tls,
            "ConnectTimeout": text("Time limit of connecting. Unset: 5s."),
            "RequestTimeout": text("Time limit of a response that does not wait for changes. Unset: 10s."),
            "MaxConnections": json!({ "type": "integer", "minimum": 2, "maximum": 10_000, "default": 32, "description": "The most connections to the agent, which allows 200 for each address by default." }),
            "Datacenter": text("The datacenter of this proxy. Unset: the agent's."),
            "Datacenters": texts("Other datacenters whose instances are destinations as well, or `*` for all. Unset: none."),
            "Consistency": word("The consistency mode of reads.", &["Default", "Stale", "Consistent", "Cached"]),
            "Wait": text("The time for which a query waits for changes. Unset: 30s."),
            "Patience": text("The time for which the first result waits for datacenters other than the own one. Unset: 3s."),
            "RereadInterval": text("Maximum time between two reads of a service. Unset: 90s."),
            "ShrinkGuard": shrink_guard,
            "LabelPrefix": text("The prefix of labels in tags, with the dot. Unset: `proxy.`."),
            "EnabledByDefault": switch("Whether services without the label `enable` are served.", false),
            "TraefikTags": switch("Whether Traefik's common tags are read, for services without labels of this project.", true),
            "TraefikEntryPoints": texts("The entry points of Traefik that this proxy replaces; routers of others are ignored. Unset: `web` and `websecure`."),
            "IncludeWarning": switch("Whether instances with a check in state `warning` get requests.", false),
            "WanAddresses": switch("Whether instances in other datacenters are reached at their address `wan`.", true),
            "Priorities": json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 }, "description": "Tiers by datacenter: the lowest with an available instance gets all requests. Unset: the own one 0, others 1." }),
            "DefaultsKey": text("Key whose value, a JSON object, has default labels of services. Unset: none."),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before Consul has responded.", false),
            "Persist": text("File that keeps the last known good configuration, for a start while Consul is unavailable."),
        }),
    )
}
