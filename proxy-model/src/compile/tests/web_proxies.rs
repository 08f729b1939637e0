//! Forward proxies.

use serde_json::{Value, json};

use super::{accepted, rejected, warned};

fn through(proxy: Value, destination: &str) -> Value {
    json!({ "Clusters": { "c": {
        "HttpClient": { "WebProxy": proxy },
        "Destinations": { "d": { "Address": destination } },
    } } })
}

#[test]
fn an_address_may_have_a_user_and_a_password() {
    for (address, shown, credentials) in [
        ("http://proxy.example:3128/", "proxy.example:3128", None),
        ("http://proxy", "proxy:80", None),
        ("http://[::1]:3128", "[::1]:3128", None),
        ("http://u:p%40s@10.0.0.1:1/", "10.0.0.1:1", Some("u:p@s")),
        ("http://u@proxy/", "proxy:80", Some("u:")),
    ] {
        let snapshot = accepted(through(json!({ "Address": address }), "http://d.example/"));
        let cluster = &snapshot.clusters()[0];
        let proxy = cluster
            .upstream()
            .web_proxy(cluster.destinations()[0].address())
            .unwrap();
        assert_eq!(proxy.to_string(), shown);
        assert_eq!(proxy.credentials(), credentials, "{address}");
        assert!(!format!("{proxy:?}").contains("p@s"));
    }
}

#[test]
fn addresses_that_are_no_http_proxies_are_rejected() {
    for address in [
        "proxy:3128",
        "https://proxy/",
        "socks5://proxy:1080",
        "ftp://proxy/",
        "http://proxy:0/",
        "http://a%3Ab:c@proxy/",
        "http://a:c%0D%0A@proxy/",
    ] {
        let pointer = "/Clusters/c/HttpClient/WebProxy/Address";
        let config = through(json!({ "Address": address }), "http://d.example/");
        rejected(config, "invalid_address", pointer);
    }
    let pointer = "/Clusters/c/HttpClient/WebProxy/Address";
    warned(
        through(json!({ "BypassOnLocal": true }), "http://d/"),
        "no_effect",
        pointer,
    );
    for pattern in ["*", "", "a*b", "a/b", "**"] {
        let proxy = json!({ "Address": "http://proxy/", "BypassList": ["ok.example", pattern] });
        let pointer = "/Clusters/c/HttpClient/WebProxy/BypassList/1";
        rejected(through(proxy, "http://d.example/"), "invalid_host", pointer);
    }
}

#[test]
fn some_destinations_are_reached_directly() {
    let list = ["*.internal", "10.0.*", "One.Example", "*mid*"];
    for (destination, local, listed) in [
        ("http://127.0.0.1/", true, false),
        ("http://[::1]/", true, false),
        ("http://localhost/", true, false),
        ("http://build/", true, false),
        ("http://d.example/", false, false),
        ("http://10.0.0.7/", false, true),
        ("http://10.1.0.7/", false, false),
        ("https://A.Internal/", false, true),
        ("http://internal.example/", false, false),
        ("http://one.example:81/", false, true),
        ("http://x.one.example/", false, false),
        ("http://a-mid-b.example/", false, true),
    ] {
        let is_direct = |proxy: Value| {
            let snapshot = accepted(through(proxy, destination));
            let cluster = &snapshot.clusters()[0];
            let address = cluster.destinations()[0].address();
            cluster.upstream().web_proxy(address).is_none()
        };
        let proxy = |local: bool, list: &[&str]| {
            json!({
                "Address": "http://proxy.example/", "BypassOnLocal": local, "BypassList": list,
            })
        };
        assert_eq!(is_direct(proxy(true, &[])), local, "{destination}");
        assert_eq!(is_direct(proxy(false, &list)), listed, "{destination}");
        assert!(!is_direct(proxy(false, &[])), "{destination}");
    }
}
