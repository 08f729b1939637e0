//! `schema`: the JSON Schema of the whole configuration.

mod consul;
mod serf;
mod service_fabric;
mod xds;

use serde_json::{Value, json};

use super::{Failure, print_json};

pub(crate) fn schema() -> Result<(), Failure> {
    print_json(&document_schema())
}

/// Routes and clusters as the model describes them, beside the sections of this program.
fn document_schema() -> Value {
    let mut section = proxy_model::schema();
    let definitions = section
        .as_object_mut()
        .and_then(|section| {
            section.remove("$schema");
            section.remove("$defs")
        })
        .unwrap_or_else(|| json!({}));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "proxy-gateway",
        "description": "Configuration of proxy-gateway. Keys ignore case; comments and trailing commas are allowed.",
        "type": "object",
                "properties": {
            "ReverseProxy": section,
            "Listeners": listeners(),
            "Admin": object("The admin page and API.", &json!({
                "Address": address("Where it listens. Unset: 127.0.0.1:9901."),
                "Enabled": { "type": "boolean", "default": true },
            })),
            "Telemetry": telemetry(),
            "Server": server(),
            "ServiceFabricDiscovery": service_fabric::section(),
            "SerfDiscovery": serf::section(),
            "ConsulDiscovery": consul::section(),
            "XdsDiscovery": xds::section(),
        },
        "$defs": definitions,
    })
}

fn listeners() -> Value {
    let certificate = object(
        "A certificate chain and its key, shown for the names that are in it.",
        &json!({
            "CertificateFile": { "type": "string", "description": "PEM file with the chain, the leaf first." },
            "KeyFile": { "type": "string", "description": "PEM file with the private key." },
        }),
    );
    let tls = object(
        "Speaks TLS.",
        &json!({
            "Certificates": { "type": "array", "minItems": 1, "items": certificate },
        }),
    );
    let listener = object(
        "One address.",
        &json!({
            "Address": address("IP address and port: `0.0.0.0:80`, `[::]:443`, `localhost:8080`."),
            "Tls": tls,
        }),
    );
    json!({
        "description": "Where the proxy listens, by name. Unset: 127.0.0.1:8080.",
        "type": "object",
        "additionalProperties": listener,
    })
}

fn telemetry() -> Value {
    let format = json!({ "enum": ["text", "json"], "default": "text" });
    object(
        "What the program says about itself.",
        &json!({
            "LogFilter": { "type": "string", "description": "Such as `info,proxy::health=debug`. Unset: `info`." },
            "LogFormat": format,
            "AccessLog": object("One line per request. Unset: off.", &json!({
                "Enabled": { "type": "boolean", "default": true },
                "Format": format,
                "File": { "type": "string", "description": "Unset: standard output." },
            })),
        }),
    )
}

fn server() -> Value {
    let whole =
        |description: &str| json!({ "type": "integer", "minimum": 0, "description": description });
    let time = |description: &str| json!({ "type": "string", "description": description });
    object(
        "How requests are served.",
        &json!({
            "Workers": whole("Threads that serve. Unset: one per core."),
            "ReadinessDelay": time("How long requests are still taken after `/readyz` says that the program stops, so that load balancers can notice. Unset: 0s."),
            "DrainTimeout": time("How long requests in flight may take when the program stops. Unset: 30s."),
            "Zone": { "type": "string", "description": "Where this proxy is: destinations of the same zone are preferred." },
            "Handover": text("The socket file at which a second instance of the program takes the listening sockets over, so that no client is refused; on Linux. Unset: off."),
            "Limits": object("What clients are allowed.", &json!({
                "HeaderBytes": whole("Size of a request's head. Unset: 32768."),
                "HeaderFields": whole("Header fields of a request. Unset: 100."),
                "HeaderTimeout": time("From the first byte to the end of the head. Unset: 10s."),
                "KeepAlive": time("How long a connection may be idle. Unset: 75s."),
                "Connections": whole("Connections at a time. Unset: 40 % of the open files."),
                "BodyBytes": whole("Size of a request's body, where the route does not say. Unset: unlimited."),
            })),
        }),
    )
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn switch(description: &str, default: bool) -> Value {
    json!({ "type": "boolean", "default": default, "description": description })
}

/// One of these words, the first if it is unset.
fn word(description: &str, words: &[&str]) -> Value {
    json!({ "enum": words, "default": words[0], "description": description })
}

fn address(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn object(description: &str, properties: &Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}
