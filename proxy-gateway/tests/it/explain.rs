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
