//! Certificates and names of clusters.

use std::path::Path;

use serde_json::{Value, json};

use super::{accepted, rejected, warned};

fn secure(client: Value) -> Value {
    json!({ "Clusters": { "c": {
        "HttpClient": client,
        "Destinations": { "d": { "Address": "https://10.0.0.7/" } },
    } } })
}

#[test]
fn certificates_are_files_and_the_key_may_be_in_the_same() {
    for (certificate, key) in [
        (json!({ "Path": "a.pem" }), "a.pem"),
        (json!({ "Path": "a.pem", "KeyPath": "a.key" }), "a.key"),
    ] {
        let client = json!({
            "ClientCertificate": certificate, "CaFile": "ca.pem", "ServerName": "Orders.Example",
        });
        let snapshot = accepted(secure(client));
        let upstream = snapshot.clusters()[0].upstream();
        let files = upstream.tls_files().unwrap();
        let expected = (Path::new("a.pem"), Path::new(key));
        assert_eq!(files.client_certificate(), Some(expected));
        assert_eq!(files.authorities(), Some(Path::new("ca.pem")));
        assert_eq!(upstream.server_name(), Some("orders.example"));
    }
    let snapshot = accepted(secure(json!({ "ServerName": "bücher.example" })));
    let upstream = snapshot.clusters()[0].upstream();
    assert!(upstream.tls_files().is_none());
    assert_eq!(upstream.server_name(), Some("xn--bcher-kva.example"));
}

#[test]
fn what_cannot_be_meant_is_rejected() {
    for (client, code, below) in [
        (
            json!({ "ClientCertificate": { "KeyPath": "a.key" } }),
            "missing_file",
            "ClientCertificate/Path",
        ),
        (
            json!({ "ClientCertificate": { "Path": "a.pem", "KeyPath": "" } }),
            "missing_file",
            "ClientCertificate/KeyPath",
        ),
        (json!({ "CaFile": "" }), "missing_file", "CaFile"),
        (
            json!({ "ServerName": "https://a" }),
            "invalid_server_name",
            "ServerName",
        ),
        (
            json!({ "ServerName": "a.example:443" }),
            "invalid_server_name",
            "ServerName",
        ),
        (
            json!({ "ServerName": "*.example" }),
            "invalid_server_name",
            "ServerName",
        ),
        (
            json!({ "CaFile": "ca.pem", "DangerousAcceptAnyServerCertificate": true }),
            "conflicting_trust",
            "DangerousAcceptAnyServerCertificate",
        ),
    ] {
        let pointer = format!("/Clusters/c/HttpClient/{below}");
        rejected(secure(client), code, &pointer);
    }
}

#[test]
fn settings_that_no_connection_uses_are_named() {
    for (key, value) in [
        ("ClientCertificate", json!({ "Path": "a.pem" })),
        ("CaFile", json!("ca.pem")),
        ("ServerName", json!("a.example")),
    ] {
        let config = json!({ "Clusters": { "c": {
            "HttpClient": { key: value },
            "Destinations": { "d": { "Address": "http://10.0.0.7/" } },
        } } });
        let pointer = format!("/Clusters/c/HttpClient/{key}");
        warned(config, "no_effect", &pointer);
    }
}
