//! Lists in pages, and the traps in them.

use std::time::Duration;

use discovery_servicefabric::client::ClientOptions;
use discovery_servicefabric::{CallErrorKind, ClusterCalls};
use serde_json::{Value, json};

use crate::client::support::{Act, Gateway, bare, error, ok, page};

fn services(names: &[&str]) -> Value {
    names
        .iter()
        .map(|name| json!({"Name": name, "TypeName": "WebType"}))
        .collect()
}

#[tokio::test]
async fn pages_are_put_together_and_tokens_go_back_verbatim() {
    let gateway = Gateway::acts([
        page(services(&["a", "b"]), "fabric:/Shop/ü b&c=d+e%20~"),
        page(services(&[]), "2"),
        ok(json!({"Items": services(&["c"]), "ContinuationToken": null, "Extra": [1]})),
    ]);
    let found = gateway.client().services("Shop").await.unwrap();
    let names: Vec<_> = found.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let base = "/Applications/Shop/$/GetServices?api-version=6.0";
    assert_eq!(
        gateway.targets(),
        [
            format!("{base}&timeout=30"),
            format!(
                "{base}&ContinuationToken=fabric:/Shop/%C3%BC%20b%26c%3Dd%2Be%2520~&timeout=30"
            ),
            format!("{base}&ContinuationToken=2&timeout=30"),
        ]
    );
}

#[tokio::test]
async fn an_empty_or_absent_token_ends_the_list() {
    for last in [
        page(services(&["a"]), ""),
        ok(json!({"Items": services(&["a"])})),
        ok(services(&["a"])),
    ] {
        let gateway = Gateway::acts([last]);
        assert_eq!(gateway.client().services("Shop").await.unwrap().len(), 1);
    }
}

/// Returns the error of a list with these pages, and the number of pages requested.
async fn endless(
    options: ClientOptions,
    mut pages: impl FnMut(usize) -> Act + Send + 'static,
) -> (String, usize) {
    let mut count = 0;
    let gateway = Gateway::new(move |_| {
        count += 1;
        pages(count)
    });
    let client = gateway.builder().options(options).build().unwrap();
    let error = client.services("Shop").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Malformed, "{error}");
    (error.to_string(), gateway.seen().len())
}

#[tokio::test]
async fn a_token_that_comes_again_is_an_error() {
    let options = ClientOptions::default();
    let (error, pages) = endless(options.clone(), |_| page(services(&["a"]), "same")).await;
    assert!(error.contains("came again"), "{error}");
    assert_eq!(pages, 2);
    let (error, pages) = endless(options, |n| page(services(&[]), &(n % 3).to_string())).await;
    assert!(error.contains("came again"), "{error}");
    assert_eq!(pages, 4);
}

#[tokio::test]
async fn pages_items_and_bytes_are_bounded() {
    let next = |n: usize| n.to_string();
    let options = ClientOptions::default().with_max_pages(5);
    let (error, pages) = endless(options, move |n| page(services(&[]), &next(n))).await;
    assert!(error.contains("more than 5 pages"), "{error}");
    assert_eq!(pages, 5);

    let options = ClientOptions::default().with_max_items(5);
    let (error, pages) = endless(options, move |n| page(services(&["a", "b"]), &next(n))).await;
    assert!(error.contains("more than 5 items"), "{error}");
    assert_eq!(pages, 3);

    let options = ClientOptions::default().with_max_list_bytes(1_000);
    let large = "x".repeat(400);
    let (error, pages) = endless(options, move |n| page(services(&[&large]), &next(n))).await;
    assert!(error.contains("more than 1000 bytes"), "{error}");
    assert_eq!(pages, 3);

    let token = "t".repeat(5_000);
    let (error, pages) = endless(ClientOptions::default(), move |_| {
        page(services(&[]), &token)
    })
    .await;
    assert!(error.contains("5000 bytes"), "{error}");
    assert_eq!(pages, 1);
}

#[tokio::test]
async fn a_list_that_fits_exactly_is_whole() {
    let options = ClientOptions::default().with_max_pages(2).with_max_items(2);
    let gateway = Gateway::acts([page(services(&["a"]), "1"), page(services(&["b"]), "")]);
    let client = gateway.builder().options(options).build().unwrap();
    assert_eq!(client.services("Shop").await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_failed_page_fails_the_list() {
    let gone = error(404, "FABRIC_E_APPLICATION_NOT_FOUND");
    for (act, kind) in [
        (gone, CallErrorKind::Gone),
        (bare(204), CallErrorKind::Malformed),
        (error(400, "E_INVALIDARG"), CallErrorKind::Rejected),
        (ok(json!({})), CallErrorKind::Malformed),
    ] {
        let gateway = Gateway::acts([page(services(&["a"]), "1"), act]);
        let error = gateway.client().services("Shop").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_is_tried_again_without_those_before_it() {
    let gateway = Gateway::acts([
        page(services(&["a"]), "1"),
        error(503, "FABRIC_E_NOT_READY"),
        page(services(&["b"]), ""),
    ]);
    assert_eq!(gateway.client().services("Shop").await.unwrap().len(), 2);
    let tokens: Vec<_> = gateway
        .seen()
        .iter()
        .map(|seen| seen.argument("ContinuationToken").map(str::to_owned))
        .collect();
    assert_eq!(tokens, [None, Some("1".to_owned()), Some("1".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn all_pages_share_one_budget() {
    // Every page costs a retry of at least 10 s, so that the third one does not come in time.
    let mut requests = 0;
    let gateway = Gateway::new(move |_| {
        requests += 1;
        match requests % 2 {
            1 => crate::client::support::with_header(bare(503), "retry-after", "10"),
            _ => page(services(&["a"]), &requests.to_string()),
        }
    });
    let options = ClientOptions::default().with_budget(Duration::from_secs(25));
    let client = gateway.builder().options(options).build().unwrap();
    let started = tokio::time::Instant::now();
    let error = client.services("Shop").await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Busy);
    assert!(
        started.elapsed() <= Duration::from_secs(25),
        "{:?}",
        started.elapsed()
    );
    let timeouts: Vec<_> = gateway
        .seen()
        .iter()
        .map(|seen| seen.argument("timeout").unwrap().to_owned())
        .collect();
    // What is left less the grace of 5 s.
    assert_eq!(timeouts, ["20", "10", "10", "1", "1"]);
}
