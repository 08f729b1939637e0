//! Connectors of a program.

use super::*;

#[test]
fn connectors_of_the_program() {
    let config = |client: Value| {
        let json = cluster(json!({ "HttpClient": client })).to_string();
        ProxyConfig::from_json(&json).unwrap()
    };
    let options = CompileOptions::default().with_connectors(["unix"]);
    let named = Snapshot::compile(config(json!({ "Connector": "UNIX" })), &options);
    let (snapshot, problems) = named.unwrap();
    assert_eq!(snapshot.clusters()[0].upstream().connector(), Some("unix"));
    assert!(problems.is_empty(), "{problems}");
    for none in [json!({}), json!({ "Connector": "" })] {
        let (snapshot, _) = Snapshot::compile(config(none), &options).unwrap();
        assert_eq!(snapshot.clusters()[0].upstream().connector(), None);
    }
    for (settings, unused) in [
        (
            json!({ "Connector": "unix", "SendProxyProtocol": true, "ServerName": "a" }),
            2,
        ),
        (
            json!({ "Connector": "unix", "WebProxy": { "Address": "http://p:1/" } }),
            1,
        ),
    ] {
        let (snapshot, problems) = Snapshot::compile(config(settings), &options).unwrap();
        let told = problems.iter().filter(|p| p.code == "unused_by_connector");
        assert_eq!(told.count(), unused, "{problems}");
        let upstream = snapshot.clusters()[0].upstream();
        assert!(!upstream.sends_proxy_protocol());
        assert!(upstream.web_proxy(&a_destination()).is_none());
    }
    rejected(
        cluster(json!({ "HttpClient": { "Connector": "unix" } })),
        "unknown_connector",
        "/Clusters/c/HttpClient/Connector",
    );
}

/// The address of some destination.
fn a_destination() -> crate::compiled::DestinationAddress {
    let json = cluster(json!({ "Destinations": { "d": { "Address": "http://d/" } } }));
    accepted(json).clusters()[0].destinations()[0]
        .address()
        .clone()
}
