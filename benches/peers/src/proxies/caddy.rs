//! Caddy: `reverse_proxy` with the headers that it adds by default.

use serde_json::json;

use super::Setup;

pub(super) fn configuration(setup: &Setup<'_>) -> String {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let upstreams: Vec<_> = setup
        .origins
        .iter()
        .map(|origin| json!({ "dial": origin.to_string() }))
        .collect();
    let routes = json!([{ "handle": [{
        "handler": "reverse_proxy",
        "upstreams": upstreams,
        "load_balancing": { "selection_policy": { "policy": "random_choose", "choose": 2 } },
        "transport": {
            "protocol": "http",
            "compression": false,
            "keep_alive": { "max_idle_conns": 1024, "max_idle_conns_per_host": 256, "idle_timeout": "300s" },
        },
    }] }]);
    let server = |port: u16, protocols: &[&str]| {
        json!({
            "listen": [address(port)],
            "protocols": protocols,
            "automatic_https": { "disable": true },
            "routes": routes,
        })
    };
    let mut tls = server(setup.ports.tls, &["h1"]);
    tls["tls_connection_policies"] = json!([{ "alpn": ["http/1.1"], "protocol_min": "tls1.3" }]);
    let configuration = json!({
        "admin": { "disabled": true, "config": { "persist": false } },
        "logging": { "logs": { "default": { "level": "ERROR" } } },
        "apps": {
            "http": { "servers": {
                "http": server(setup.ports.http, &["h1"]),
                "h2c": server(setup.ports.h2c, &["h1", "h2c"]),
                "tls": tls,
            } },
            "tls": { "certificates": { "load_files": [{
                "certificate": setup.certificate.chain,
                "key": setup.certificate.key,
            }] } },
        },
    });
    format!("{configuration:#}\n")
}
