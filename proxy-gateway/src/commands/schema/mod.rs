//! `schema`: the JSON Schema of the whole configuration.

mod consul;
mod serf;
mod server;
mod service_fabric;
mod xds;

use program_kit::Failure;
use serde_json::{Value, json};

use super::print_json;

pub(crate) fn schema() -> Result<(), Failure> {
    print_json(&document_schema())
}

/// Returns the schema of routes and clusters from the model, with the sections of this program.
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
            "Policies": policies(),
            "Listeners": listeners(),
            "Admin": object("The admin page and API.", &json!({
                "Address": address("The address to listen on. Unset: 127.0.0.1:9901."),
                "Enabled": { "type": "boolean", "default": true },
                "Hosts": texts("Host names that requests may have, beside IP addresses and `localhost`."),
                "Token": text("The token that requests need except those for `/healthz` and `/readyz`: at least 16 characters. Prefer `TokenFile`."),
                "TokenFile": text("File with such tokens, one on each line. Changes take effect within 5 seconds."),
                "Tls": object("Serves the admin page and API with TLS.", &json!({
                    "Certificates": certificates(),
                    "ClientCertificateMode": client_mode(),
                    "ClientCaFile": client_ca(),
                    "MinVersion": min_version(),
                })),
            })),
            "Telemetry": telemetry(),
            "Server": server::section(),
            "ServiceFabricDiscovery": service_fabric::section(),
            "SerfDiscovery": serf::section(),
            "ConsulDiscovery": consul::section(),
            "XdsDiscovery": xds::section(),
        },
        "$defs": definitions,
    })
}

/// Returns the schema of the policies, with those that discovered services may name.
fn policies() -> Value {
    let mut section = proxy_policies::schema();
    let of_source = || {
        object(
            "The policies that the services of this section may name, by kind. Unset: none.",
            &json!({
                "Authorization": texts("Names of authorization policies, and `Anonymous`."),
                "Cors": texts("Names of CORS policies, and `Default`."),
                "RateLimiter": texts("Names of rate limiter policies, and `Disable`."),
                "Timeout": texts("Names of timeout policies."),
            }),
        )
    };
    section["properties"]["Discovered"] = object(
        "The policies that discovered services may name. Takes effect with the next start.",
        &json!({
            "ServiceFabricDiscovery": of_source(),
            "SerfDiscovery": of_source(),
            "ConsulDiscovery": of_source(),
            "XdsDiscovery": of_source(),
        }),
    );
    section
}

fn certificates() -> Value {
    let certificate = object(
        "A certificate chain and its key, presented for the names in the certificate.",
        &json!({
            "CertificateFile": { "type": "string", "description": "PEM file with the chain, the leaf first." },
            "KeyFile": { "type": "string", "description": "PEM file with the private key." },
        }),
    );
    json!({ "type": "array", "minItems": 1, "items": certificate })
}

fn listeners() -> Value {
    let tls = object(
        "Serves TLS.",
        &json!({
            "Certificates": certificates(),
            "ClientCertificateMode": client_mode(),
            "ClientCaFile": client_ca(),
            "MinVersion": min_version(),
            "Sni": {
                "description": "Different rules for clients that send one of these names (SNI): `admin.example`, or `*.example` for all names below. Unset keys have the values of `Tls`.",
                "type": "object",
                "additionalProperties": object("The rules for one name.", &json!({
                    "ClientCertificateMode": client_mode(),
                    "ClientCaFile": client_ca(),
                    "MinVersion": min_version(),
                })),
            },
        }),
    );
    let listener = object(
        "One address.",
        &json!({
            "Address": address("IP address and port: `0.0.0.0:80`, `[::]:443`, `localhost:8080`."),
            "Tls": tls,
            "StrictPaths": switch("Whether paths must have one meaning for every program: doubled slashes become one, and a path with `;`, `%2F` or `%5C` gets 400.", false),
            "TrustedProxies": object(
                "The proxies that are trusted to report the client. Policies, logs, balancing and forwarded headers use the client that they report.",
                &json!({
                    "Networks": networks("The networks of the proxies."),
                    "Header": word("The header with the client.", &["X-Forwarded-For", "Forwarded"]),
                }),
            ),
            "ProxyProtocol": object(
                "The PROXY protocol, versions 1 and 2: each connection begins with a header that names the client. Others are closed.",
                &json!({
                    "From": networks("The networks of the load balancers."),
                    "Timeout": { "type": "string", "description": "Time limit of the header, at most 1 minute. Unset: 5s." },
                }),
            ),
            "TrustedSenders": switch("Whether clients are proxies whose `X-Real-IP`, `True-Client-IP`, `X-Forwarded-Client-Cert`, `X-Forwarded-Port` and the like are forwarded.", false),
        }),
    );
    json!({
        "description": "The listeners of the proxy, by name. Unset: 127.0.0.1:8080.",
        "type": "object",
        "additionalProperties": listener,
    })
}

fn networks(description: &str) -> Value {
    json!({ "type": "array", "minItems": 1, "items": { "type": "string" }, "description": description })
}

fn client_mode() -> Value {
    word(
        "Client certificates: none, optional, or required.",
        &["NoCertificate", "AllowCertificate", "RequireCertificate"],
    )
}

fn client_ca() -> Value {
    text("PEM file with the authorities that certify clients.")
}

fn min_version() -> Value {
    word("The minimum version of TLS.", &["Tls12", "Tls13"])
}

fn telemetry() -> Value {
    let format = json!({ "enum": ["text", "json"], "default": "text" });
    object(
        "Logs and the access log.",
        &json!({
            "LogFilter": { "type": "string", "description": "Such as `info,proxy::health=debug`. Unset: the environment variable `RUST_LOG`, else `info`." },
            "LogFormat": format,
            "AccessLog": object("One line per request. Unset: off.", &json!({
                "Enabled": { "type": "boolean", "default": true },
                "Format": format,
                "Template": { "type": "string", "description": "Lines of your own instead of a `Format`: `{remote} \"{method} {path}\" {status}`." },
                "Sample": { "type": "number", "minimum": 0, "maximum": 1, "default": 1, "description": "The share of requests that is logged. Failures are always logged." },
                "File": { "type": "string", "description": "The file to append to, reopened on SIGUSR1. Unset: standard output." },
            })),
            "LiveRequests": object("Keeps the latest requests in memory for the admin page. Unset: off.", &json!({
                "Enabled": { "type": "boolean", "default": true },
                "PerSecond": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 10, "description": "How many requests of a second are kept, and as many failed ones beside them." },
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

/// Returns the schema of a text that is one of these words. Default: the first.
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
