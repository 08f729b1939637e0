//! The text that `explain` prints.

use serde_json::json;

use crate::common::{ConfigFile, output};

/// The text about a split with session affinity, and about names that are resolved.
#[tokio::test]
async fn explain_says_in_words_what_a_key_and_a_split_decide() {
    let text = |resolver: bool, policy: &str| {
        let cluster = json!({
            "SessionAffinity": { "Enabled": true, "AffinityKeyName": "k", "Policy": policy },
            "Destinations": { "d": { "Address": "http://orders.example/" } },
        });
        json!({
            "ReverseProxy": {
                "Routes": { "r": { "Match": { "Path": "/" }, "WeightedClusters": [
                    { "ClusterId": "old", "Weight": 2 }, { "ClusterId": "new", "Weight": 1 }] } },
                "Clusters": { "old": cluster, "new": cluster },
            },
            "Server": { "DnsDestinationResolver": { "Enabled": resolver } },
        })
    };
    for (resolver, policy, key, expected) in [
        (
            false,
            "HashCookie",
            "",
            "the key is not set: the client gets one",
        ),
        (
            false,
            "Cookie",
            "",
            "the key is not set: the client gets one",
        ),
        (
            false,
            "CustomHeader",
            "",
            "the key is not set: the client gets one",
        ),
        (
            false,
            "Cookie",
            "Cookie: k=abc",
            "the key can be read by the running proxy alone",
        ),
        (
            false,
            "Cookie",
            "Cookie: k=abc",
            "the affinity key may be of another one",
        ),
        (
            false,
            "HashCookie",
            "Cookie: k=00",
            "the key names no destination that is available",
        ),
        (
            true,
            "HashCookie",
            "Cookie: k=00",
            "the key can be read by the running proxy alone",
        ),
        (
            false,
            "HashCookie",
            "",
            "split: old 66.6667 %, new 33.3333 %; old is shown: it has the largest share\n",
        ),
        (false, "HashCookie", "", "Cdn-Loop: proxy-0000000000000000"),
    ] {
        let file = ConfigFile::new(&text(resolver, policy).to_string());
        let path = file.argument();
        let mut arguments = vec!["explain", "--config", &path, "--url", "http://a/"];
        if !key.is_empty() {
            arguments.extend(["--header", key]);
        }
        let said = output(&arguments).await;
        let said = said.expect_success().stdout;
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// Policies that decide alone are part of the explanation; others are named as not asked.
#[tokio::test]
async fn explain_asks_the_policies_that_decide_alone() {
    let config = json!({
        "Policies": {
            "Authorization": {
                "inside": { "Networks": { "Allow": ["10.0.0.0/8"] } },
                "ask": { "ForwardAuth": { "Address": "http://127.0.0.1:1/" } },
            },
        },
        "ReverseProxy": {
            "Routes": {
                "near": { "ClusterId": "c", "AuthorizationPolicy": "inside", "Match": { "Path": "/near" } },
                "asks": { "ClusterId": "c", "AuthorizationPolicy": "ask", "Match": { "Path": "/asks" } },
            },
            "Clusters": { "c": { "Destinations": { "d": { "Address": "http://127.0.0.1:1/" } } } },
        },
    });
    let file = ConfigFile::new(&config.to_string());
    for (url, remote, expected) in [
        (
            "http://a/near",
            "192.0.2.7:1",
            "Route near takes it, and its AuthorizationPolicy inside answers it: 403.",
        ),
        ("http://a/near", "10.0.0.7:1", "Route near takes it."),
        (
            "http://a/asks",
            "10.0.0.7:1",
            "AuthorizationPolicy ask (not asked here: a service, a password or a count decides)",
        ),
    ] {
        let path = file.argument();
        let arguments = [
            "explain",
            "--config",
            &path,
            "--url",
            url,
            "--remote-addr",
            remote,
        ];
        let said = output(&arguments).await;
        let said = said.expect_success().stdout;
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// A host in punycode and one in Unicode are the same, in routes and in the explained URL, with wildcards and ports.
#[tokio::test]
async fn explain_takes_hosts_in_punycode_and_in_unicode() {
    let route = |host: &str| json!({ "ClusterId": "c", "Match": { "Hosts": [host] } });
    let file = ConfigFile::new(
        &json!({ "ReverseProxy": {
            "Routes": {
                "name": route("xn--bcher-kva.example"),
                "port": route("m\u{fc}nchen.example:8443"),
                "below": route("*.xn--bcher-kva.example"),
                "other": route("*"),
            },
            "Clusters": { "c": { "Destinations": { "d": { "Address": "http://a.example/" } } } },
        } })
        .to_string(),
    );
    let path = file.argument();
    for (url, expected) in [
        ("http://b\u{fc}cher.example/", "name"),
        ("http://xn--bcher-kva.example/", "name"),
        ("http://XN--BCHER-KVA.EXAMPLE:81/", "name"),
        ("http://a.b\u{fc}cher.example/", "below"),
        ("http://a.xn--bcher-kva.example/", "below"),
        ("http://xn--mnchen-3ya.example:8443/", "port"),
        ("http://xn--mnchen-3ya.example/", "other"),
        ("http://bucher.example/", "other"),
    ] {
        let explained = output(&["explain", "--config", &path, "--url", url]).await;
        let route = format!("Route {expected} takes it");
        assert!(
            explained.stdout.contains(&route),
            "{url}: {}{}",
            explained.stdout,
            explained.stderr
        );
    }
}
