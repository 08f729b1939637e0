//! A destination that is away, as an operator sees it.

use std::net::SocketAddr;

use serde_json::Value;
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::peers::free_port;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, start};
use crate::faults::{READY, get};

fn config(destination: SocketAddr) -> String {
    format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "shop", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "shop": {{ "Destinations": {{ "s1": {{ "Address": "http://{destination}/" }} }} }} }}
            }}
        }}"#
    )
}

/// The lines of a level in which the log has these words.
fn lines<'l>(log: &'l str, level: &str, words: &str) -> Vec<&'l str> {
    let is_it = |line: &&str| line.contains(level) && line.contains(words);
    log.lines().filter(is_it).collect()
}

/// The log has the level that it has without a setting.
#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_fails_and_works_again_is_one_warning_and_one_line() {
    // No other test takes it while the destination is away.
    let destination = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let first = Origin::builder().bind(destination).start_named("first");
    let file = ConfigFile::new(&config(destination));
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let status = async || {
        let mut client = Connection::http1(proxy).await.expect("it listens");
        client.get("/").await.expect("it answers").status.as_u16()
    };
    let sentence = async || {
        let overview: Value =
            serde_json::from_str(&get(admin, "/api/v1/overview").await).expect("it is JSON");
        overview["sentence"].as_str().unwrap_or_default().to_owned()
    };
    for _ in 0..5 {
        assert_eq!(status().await, 200);
    }
    assert!(sentence().await.contains("All is well"));
    assert_eq!(
        lines(&process.output(), "WARN", "requests fail"),
        <[&str; 0]>::default()
    );

    first.stop().await;
    for _ in 0..5 {
        assert_eq!(status().await, 502);
    }
    process.wait_for_output("requests fail").await;
    // More of the same is no news.
    for _ in 0..5 {
        assert_eq!(status().await, 502);
    }
    // A request counts when its response has ended, and for some seconds.
    eventually("the sentence names cluster, share and cause", async || {
        assert_eq!(status().await, 502);
        let told = sentence().await;
        let parts = ["own: shop (", " requests failed: connection refused)"];
        parts.iter().all(|part| told.contains(part))
    })
    .await;

    let _back = Origin::builder().bind(destination).start_named("back");
    eventually("requests are answered", async || status().await == 200).await;
    // One more response than those of the second in which the last request failed.
    eventually("that is told", async || {
        assert_eq!(status().await, 200);
        process.output().contains("requests work again")
    })
    .await;
    process.terminate();
    let (_, log) = process.wait_with_output().await;
    let failing = lines(&log, "WARN", "requests fail");
    let working = lines(&log, "INFO", "requests work again");
    assert_eq!((failing.len(), working.len()), (1, 1), "{log}");
    for line in [failing[0], working[0]] {
        for part in ["shop", "s1", "connection_refused"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    let (_, failed) = working[0].split_once("failed=").unwrap();
    let failed = failed.split_whitespace().next().unwrap();
    assert!(
        failed.parse::<u64>().unwrap() >= 11,
        "all of them: {failed}"
    );
}
