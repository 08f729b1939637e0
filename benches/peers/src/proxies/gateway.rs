//! The gateway of this project: a thousand routes, with the defaults.

use serde_json::{Map, Value, json};

use super::Setup;
use crate::load::ROUTE;

/// Number of routes. One of them matches the requests.
const ROUTES: usize = 1_000;

/// Renders the section `ReverseProxy` of the configuration, which is all that the service needs.
pub(super) fn reverse_proxy(setup: &Setup<'_>) -> String {
    format!("{:#}\n", section(setup))
}

/// Renders the same section with the layer of `gateway-layered` on each route.
pub(super) fn layered(setup: &Setup<'_>) -> String {
    let mut section = section(setup);
    for route in section["Routes"].as_object_mut().into_iter().flatten() {
        route.1["Layers"] = json!(["Mark"]);
    }
    format!("{section:#}\n")
}

fn section(setup: &Setup<'_>) -> Value {
    let routes: Map<_, _> = (0..ROUTES)
        .map(|number| {
            let route = json!({
                "ClusterId": "origins",
                "Match": { "Path": format!("/r{number}/{{**rest}}") },
                "Transforms": [{ "RequestHeaderOriginalHost": "true" }],
            });
            (format!("r{number}"), route)
        })
        .collect();
    assert!(
        routes.contains_key(&ROUTE[1..]),
        "requests have to take one of the routes"
    );
    let destinations: Map<_, _> = setup
        .origins
        .iter()
        .enumerate()
        .map(|(number, origin)| {
            (
                format!("d{number}"),
                json!({ "Address": format!("http://{origin}/") }),
            )
        })
        .collect();
    let mut cluster = json!({
        "LoadBalancingPolicy": "PowerOfTwoChoices",
        "Destinations": destinations,
    });
    if setup.http2_origins {
        cluster["HttpRequest"] = json!({ "Version": "2", "VersionPolicy": "RequestVersionExact" });
    }
    json!({ "Routes": routes, "Clusters": { "origins": cluster } })
}

/// Renders the configuration as JSON, the format of the product. Metrics and the admin page are on,
/// as by default.
pub(super) fn configuration(setup: &Setup<'_>) -> String {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let configuration: Value = json!({
        "Listeners": {
            "http": { "Address": address(setup.ports.http) },
            "h2c": { "Address": address(setup.ports.h2c) },
            "tls": {
                "Address": address(setup.ports.tls),
                "Tls": { "Certificates": [{
                    "CertificateFile": setup.certificate.chain,
                    "KeyFile": setup.certificate.key,
                }] },
            },
        },
        "Admin": { "Address": address(setup.ports.admin) },
        "Telemetry": { "LogFilter": "warn" },
        "Server": {
            "Workers": setup.workers,
            "DrainTimeout": "1s",
            "Limits": {
                "Connections": setup.most_connections(),
                // Same as for nginx: the end of an HTTP/2 connection would discard a round.
                "RequestsPerConnection": 1_000_000_000,
            },
        },
        "ReverseProxy": section(setup),
    });
    format!("{configuration:#}\n")
}
