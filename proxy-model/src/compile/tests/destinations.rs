use super::*;
use crate::DestinationId;

const PLACE: &str = "/Clusters/c/Destinations/d";

#[test]
fn addresses() {
    for (written, scheme, host, port, authority, path) in [
        ("http://a", Scheme::Http, "a", 80, "a", "/"),
        (
            "HTTPS://A.example.com:443/",
            Scheme::Https,
            "a.example.com",
            443,
            "a.example.com",
            "/",
        ),
        (
            "http://10.0.0.7:8080/base",
            Scheme::Http,
            "10.0.0.7",
            8080,
            "10.0.0.7:8080",
            "/base",
        ),
        (
            "https://[2001:DB8::1]:8443/a b/",
            Scheme::Https,
            "2001:db8::1",
            8443,
            "[2001:db8::1]:8443",
            "/a%20b/",
        ),
        (
            "http://ünicode/%2F",
            Scheme::Http,
            "xn--nicode-2ya",
            80,
            "xn--nicode-2ya",
            "/%2F",
        ),
        (
            "http://my_service/",
            Scheme::Http,
            "my_service",
            80,
            "my_service",
            "/",
        ),
    ] {
        // A space in a URL is rejected; here it represents characters that the parser encodes by itself.
        let written = written.replace("/a b/", "/a%20b/");
        let snapshot = accepted(destination(json!({ "Address": written })));
        let address = snapshot.clusters()[0].destinations()[0].address();
        assert_eq!(
            (address.scheme(), address.host(), address.port()),
            (scheme, host, port),
            "{written}"
        );
        assert_eq!(
            (address.authority().to_str().unwrap(), address.path()),
            (authority, path),
            "{written}"
        );
    }
}

#[test]
fn base_paths_have_no_slash_at_the_end() {
    for (written, expected) in [
        ("http://a", ""),
        ("http://a/", ""),
        ("http://a/b", "/b"),
        ("http://a/b/", "/b"),
        ("http://a/b//", "/b/"),
    ] {
        let snapshot = accepted(destination(json!({ "Address": written })));
        let address = snapshot.clusters()[0].destinations()[0].address();
        assert_eq!(address.base_path(), expected, "{written}");
    }
}

#[test]
fn bad_addresses() {
    // D28
    for address in [Value::Null, json!("")] {
        rejected(
            destination(json!({ "Address": address })),
            "missing_address",
            &format!("{PLACE}/Address"),
        );
    }
    // YARP finds these out when the first request fails.
    for address in [
        "a",
        "10.0.0.7:8080",
        "/a",
        "ftp://a/",
        "http:a",
        "http:///a",
        "http://a\\b",
        "http://",
        "http://:80/",
        "http://a:99999/",
        "http://a:0/",
        "http://user:hunter2@a/",
        "http://user@a/",
        "http://a/?x=1",
        "http://a/?",
        "http://a/#x",
        "http://a b/",
        "http://a/b c",
        "http://a/\n",
        " http://a/",
        "http://[::1/",
        "http://a<b/",
        "http://{a}/",
        "http://a\"b\"/",
    ] {
        let value = destination(json!({ "Address": address }));
        let problems = compile(value.clone())
            .err()
            .unwrap_or_else(|| panic!("accepted {address}"));
        assert!(!problems.to_string().contains("hunter2"), "{problems}");
        rejected(value, "invalid_address", &format!("{PLACE}/Address"));
        let health = destination(json!({ "Address": "http://a", "Health": address }));
        rejected(health, "invalid_address", &format!("{PLACE}/Health"));
    }
    let problems = compile(destination(json!({ "Address": "10.0.0.7:8080" }))).unwrap_err();
    let suggestion = problems.iter().next().unwrap().suggestion.clone();
    assert_eq!(suggestion.as_deref(), Some("write `http://10.0.0.7:8080`"));
}

#[test]
fn probes_go_to_health_or_to_the_address() {
    let snapshot = accepted(destination(
        json!({ "Address": "http://a:1/x", "Health": "http://b:2/y" }),
    ));
    assert_eq!(
        snapshot.clusters()[0].destinations()[0]
            .health_address()
            .to_string(),
        "http://b:2/y"
    );
    for health in [Value::Null, json!("")] {
        let snapshot = accepted(destination(
            json!({ "Address": "http://a:1/x", "Health": health }),
        ));
        let destination = &snapshot.clusters()[0].destinations()[0];
        assert_eq!(destination.health_address(), destination.address());
    }
}

/// A cluster that probes `/cluster`, with destination `d` of these keys.
fn probed(active: bool, more: Value) -> Value {
    let mut destination = json!({ "Address": "http://a/base/" });
    let keys = destination.as_object_mut().unwrap();
    keys.extend(more.as_object().unwrap().clone());
    cluster(json!({
        "HealthCheck": { "Active": { "Enabled": active, "Path": "/cluster", "Query": "?q=1" } },
        "Destinations": { "d": destination, "other": { "Address": "http://b" } },
    }))
}

#[test]
fn probes_ask_for_the_destinations_path_or_for_the_clusters() {
    for (written, own, asked) in [
        (Value::Null, None, "/cluster"),
        (json!(""), None, "/cluster"),
        (json!("/"), Some("/"), "/"),
        (json!("/healthz"), Some("/healthz"), "/healthz"),
        (
            json!("/a b/ü%2F"),
            Some("/a%20b/%C3%BC%2F"),
            "/a%20b/%C3%BC%2F",
        ),
    ] {
        let snapshot = accepted(probed(true, json!({ "HealthPath": written })));
        let cluster = &snapshot.clusters()[0];
        let check = cluster.active_check().unwrap();
        let [d, other] = cluster.destinations() else {
            panic!("two destinations were written")
        };
        assert_eq!(
            (d.health_path(), check.path_at(d)),
            (own, asked),
            "{written}"
        );
        assert_eq!(
            (check.path_at(other), check.path()),
            ("/cluster", "/cluster")
        );
        assert_eq!(check.query(), "?q=1", "the query is the cluster's");
    }
}

#[test]
fn paths_of_probes_have_the_rules_of_the_clusters() {
    let place = format!("{PLACE}/HealthPath");
    // As `Health`, whether or not probes are on: to switch them on breaks nothing then.
    for active in [true, false] {
        for path in ["healthz", "http://a/healthz", " /healthz", "?a"] {
            let value = probed(active, json!({ "HealthPath": path }));
            rejected(value.clone(), "invalid_probe_path", &place);
            let problems = compile(value).unwrap_err();
            let suggestion = problems.iter().next().unwrap().suggestion.clone();
            assert_eq!(suggestion, Some(format!("write `/{path}`")));
        }
        let value = probed(active, json!({ "HealthPath": "/a?b c" }));
        let snapshot = warned(value, "query_in_path", &place);
        let destination = &snapshot.clusters()[0].destinations()[0];
        assert_eq!(destination.health_path(), Some("/a%3Fb%20c"));
    }
}

#[test]
fn hosts_to_send() {
    for (written, expected) in [
        ("d1-host", Some("d1-host")),
        ("a.example.com:8080", Some("a.example.com:8080")),
        ("[::1]:80", Some("[::1]:80")),
        ("ünicode:443", Some("xn--nicode-2ya:443")),
        ("", None),
    ] {
        let snapshot = accepted(destination(
            json!({ "Address": "http://a", "Host": written }),
        ));
        let host = snapshot.clusters()[0].destinations()[0].host().cloned();
        assert_eq!(host.as_ref().map(|host| host.to_str().unwrap()), expected);
    }
    for host in [
        "a b",
        "a/b",
        "http://a",
        "u@a",
        "a:x",
        "a:99999",
        "a:",
        ":80",
        "a\r\nX: y",
        "::1",
        "ü@b",
        "a?b",
    ] {
        let value = destination(json!({ "Address": "http://a", "Host": host }));
        rejected(value, "invalid_host", &format!("{PLACE}/Host"));
    }
}

#[test]
fn weights_and_priorities() {
    let snapshot = accepted(destination(json!({ "Address": "http://a", "Zone": "z" })));
    let d = &snapshot.clusters()[0].destinations()[0];
    assert_eq!((d.weight(), d.priority(), d.zone()), (1, 0, Some("z")));
    let most = json!({ "Address": "http://a", "Weight": 1_000_000, "Priority": 127 });
    accepted(destination(most));
    for (key, value) in [("Weight", 1_000_001), ("Priority", 128)] {
        let value = destination(json!({ "Address": "http://a", key: value }));
        rejected(value, "out_of_range", &format!("{PLACE}/{key}"));
    }
    let idle = destination(json!({ "Address": "http://a", "Weight": 0 }));
    warned(idle, "no_weight", "/Clusters/c/Destinations");
}

#[test]
fn destinations_are_found_by_id() {
    let snapshot = accepted(cluster(json!({ "Destinations": {
        "0": { "Address": "http://b" }, "A/1": { "Address": "http://a" },
    } })));
    let cluster = &snapshot.clusters()[0];
    let (index, destination) = cluster.destination(&DestinationId::new("a/1")).unwrap();
    assert_eq!((index.0, destination.id().as_str()), (1, "A/1"));
    assert_eq!(destination.config().address, "http://a");
    assert!(cluster.destination(&DestinationId::new("c")).is_none());
    let bad = super::cluster(json!({ "Destinations": { "": { "Address": "http://b" } } }));
    rejected(bad, "missing_destination_id", "/Clusters/c/Destinations/");
    let bad = super::cluster(json!({ "Destinations": { "A/1": { "Address": "b" } } }));
    rejected(
        bad,
        "invalid_address",
        "/Clusters/c/Destinations/A~11/Address",
    );
}

#[test]
fn suggested_addresses_are_addresses() {
    for (address, suggestion) in [
        ("http:/a", Some("write `http://a`")),
        ("HTTPS:a/b", Some("write `https://a/b`")),
        ("https:/10.0.0.1:80", Some("write `https://10.0.0.1:80`")),
        ("a:80", Some("write `http://a:80`")),
        ("http:80", Some("write `http://http:80`")),
        ("http:", None),
        ("ftp:/a", None),
        ("ftp://a", None),
        ("/a", None),
    ] {
        let problems = compile(destination(json!({ "Address": address }))).unwrap_err();
        let found = problems.iter().next().unwrap().suggestion.as_deref();
        assert_eq!(found, suggestion, "{address}");
        if let Some(suggestion) = suggestion {
            let written = suggestion.split('`').nth(1).unwrap();
            accepted(destination(json!({ "Address": written })));
        }
    }
}

#[test]
fn variables_in_addresses_are_told_from_schemes() {
    for address in [
        "${BACKEND}",
        "http://${BACKEND}/",
        "$BACKEND",
        "%BACKEND%",
        "{{ backend }}",
    ] {
        let problems = compile(destination(json!({ "Address": address }))).unwrap_err();
        let told = problems.to_string();
        let name = "ReverseProxy__Clusters__c__Destinations__d__Address";
        assert!(told.contains(name), "{told}");
    }
}
