//! The section `ConsulDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_consul::options::Section` reads.
pub(super) fn section() -> Value {
    let tls = object(
        "How an `https` address is spoken with.",
        &json!({
            "CaFile": text("PEM file with the authorities that vouch for the agent. Unset: those that the system trusts."),
            "ClientCertificateFile": text("PEM file with the certificate that is shown to the agent."),
            "ClientKeyFile": text("PEM file with its key."),
            "ServerName": text("The name that the agent's certificate must have. Unset: the host of the address."),
        }),
    );
    let shrink_guard = object(
        "What happens when much is gone at once: a server that has lost its memory and a token that has lost its rights both answer that there is nothing.",
        &json!({
            "Share": { "type": "number", "minimum": 0, "maximum": 1, "default": 0.5, "description": "When more than this share of a datacenter's instances is gone, they are kept until a second look." },
            "Least": { "type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 2, "description": "How many at least." },
            "Settle": text("How long they are kept before the second look. Unset: 10s."),
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
            "ConnectTimeout": text("How long connecting may take. Unset: 5s."),
            "RequestTimeout": text("How long an answer may take that does not wait for news. Unset: 10s."),
            "MaxConnections": json!({ "type": "integer", "minimum": 2, "maximum": 10_000, "default": 32, "description": "The most connections to the agent, which allows 200 for each address by default." }),
            "Datacenter": text("The datacenter of this proxy. Unset: the agent's."),
            "Datacenters": texts("Other datacenters whose instances are destinations as well, or `*` for all. Unset: none."),
            "Consistency": word("How reads are answered.", &["Default", "Stale", "Consistent", "Cached"]),
            "Wait": text("How long a query waits for news. Unset: 30s."),
            "Patience": text("How long the first answer waits for datacenters other than the own one. Unset: 3s."),
            "RereadInterval": text("How long ago a service was read at most. Unset: 90s."),
            "ShrinkGuard": shrink_guard,
            "LabelPrefix": text("What labels in tags begin with, with the dot. Unset: `proxy.`."),
            "EnabledByDefault": switch("Whether services that do not say `enable` are served.", false),
            "TraefikTags": switch("Whether Traefik's common tags are understood, of services without labels of ours.", true),
            "TraefikEntryPoints": texts("The entry points of Traefik that this proxy stands for; routers for others are left out. Unset: `web` and `websecure`."),
            "IncludeWarning": switch("Whether instances with a check that warns get requests.", false),
            "WanAddresses": switch("Whether instances in other datacenters are reached at their address `wan`.", true),
            "Priorities": json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 }, "description": "Tiers by datacenter: the lowest with an available instance gets all requests. Unset: the own one 0, others 1." }),
            "DefaultsKey": text("Key whose value, a JSON object, has labels for services that do not say otherwise. Unset: none."),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before Consul has answered.", false),
            "Persist": text("File that keeps the last known good configuration, for a start while Consul is away."),
        }),
    )
}
