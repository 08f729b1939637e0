//! Session affinity on every way through the proxy: clients of both versions of HTTP, as bytes and over `http`
//! types, with and without layers.

use std::sync::Arc;

use http::{Response, StatusCode};
use proxy_runtime::health::Health;
use proxy_runtime::layer::RouteService;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{ClusterId, DestinationId, Snapshot};
use proxy_runtime::server::ServerHandle;
use proxy_runtime::{Proxy, ProxyBuilder};
use serde_json::{Value, json};
use testkit::body;
use testkit::client::{Answer, Connection};
use testkit::faults::RefusingPort;
use testkit::origin::{NamedOrigin, Origin};
use tower_layer::layer_fn;

use crate::server::support::connections;
use crate::server::ways::{as_bytes, over_types};

pub(crate) const NAME: &str = "Aff";

/// A way through the proxy.
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) proxy: Proxy,
    client: Connection,
    is_layered: bool,
    _server: ServerHandle,
}

fn builder() -> ProxyBuilder {
    Proxy::builder()
        .layer("pass", layer_fn(|rest: RouteService| rest))
        .random_seed(7)
}

/// The compiled configuration, for a route with a layer if it `is_layered`.
fn compiled(config: &Value, is_layered: bool) -> Arc<Snapshot> {
    let mut config = config.clone();
    if is_layered {
        config["Routes"]["r"]["Layers"] = json!(["pass"]);
    }
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let compiled = Snapshot::compile(config, &builder().compile_options());
    Arc::new(compiled.unwrap().0)
}

pub(crate) async fn ways(config: &Value) -> Vec<Way> {
    let mut ways = Vec::new();
    for is_layered in [false, true] {
        for (lane, serve) in [
            ("bytes", as_bytes as fn(&Proxy) -> ServerHandle),
            ("types", over_types),
        ] {
            for version in 0..connections_of_this_build() {
                let snapshot = compiled(config, is_layered);
                let (proxy, driver) = builder().snapshot(snapshot).build().unwrap();
                tokio::spawn(driver);
                let server = serve(&proxy);
                let client = connections(server.local_addrs()[0]).await.remove(version);
                ways.push(Way {
                    name: format!("{lane}, {:?}, layered: {is_layered}", client.protocol()),
                    proxy,
                    client,
                    is_layered,
                    _server: server,
                });
            }
        }
    }
    ways
}

const fn connections_of_this_build() -> usize {
    if cfg!(feature = "http2") { 2 } else { 1 }
}

impl Way {
    pub(crate) fn publish(&self, config: &Value) {
        self.proxy
            .publish(compiled(config, self.is_layered))
            .unwrap();
    }

    fn set_health(&self, destination: &str, health: Health) {
        let (cluster, destination) = (ClusterId::from("c"), DestinationId::from(destination));
        assert!(self.proxy.set_health(&cluster, &destination, health));
    }

    pub(crate) async fn ask(&mut self, key: Option<&Key>) -> Answer {
        let mut request = self.client.request("GET", "/");
        if let Some(key) = key {
            request = match key {
                Key::Cookie(cookie) => request.header("cookie", format!("a=b; {cookie}")),
                Key::Header(value) => request.header(NAME, value),
            };
        }
        let request = request.body(body::empty()).unwrap();
        self.client.send(request).await.unwrap()
    }

    /// Asks without a key until this destination answers. Returns the key that it gives.
    pub(crate) async fn settle(&mut self, destination: &str) -> Key {
        for _ in 0..200 {
            let answer = self.ask(None).await;
            let key = Key::of(&answer).unwrap_or_else(|| panic!("{}: no key", self.name));
            if answer.text().trim() == destination {
                return key;
            }
        }
        panic!("{}: {destination} never answers", self.name);
    }

    /// Asks with a key, and asserts which destination answers, and whether the client gets another key.
    pub(crate) async fn expect(
        &mut self,
        key: &Key,
        destination: &str,
        is_moved: bool,
        case: &str,
    ) -> Option<Key> {
        let answer = self.ask(Some(key)).await;
        let got = (answer.status.as_u16(), answer.text().trim().to_owned());
        assert_eq!(got, (200, destination.to_owned()), "{}: {case}", self.name);
        let new = Key::of(&answer);
        assert_eq!(new.is_some(), is_moved, "{}: {case}", self.name);
        new
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    Cookie(String),
    Header(String),
}

impl Key {
    /// The key that a response gives, which is one at most.
    fn of(answer: &Answer) -> Option<Self> {
        let mut headers = answer.headers.get_all(NAME).iter();
        if let Some(value) = headers.next() {
            assert!(headers.next().is_none());
            return Some(Self::Header(value.to_str().unwrap().to_owned()));
        }
        let cookies = answer.headers.get_all("set-cookie").iter();
        let cookies = cookies.map(|line| line.to_str().unwrap());
        let mut ours = cookies.filter(|line| line.starts_with(NAME));
        let first = ours.next()?;
        assert!(ours.next().is_none());
        Some(Self::Cookie(first.split(';').next()?.to_owned()))
    }
}

/// A configuration with one cluster, `c`, whose destinations have the names of these.
fn config(destinations: &[(&str, &str)], affinity: &Value, cluster: &Value) -> Value {
    let named = destinations
        .iter()
        .map(|(name, url)| ((*name).to_owned(), json!({ "Address": url })));
    let named: serde_json::Map<_, _> = named.collect();
    let mut settings = json!({ "Enabled": true, "AffinityKeyName": NAME });
    settings
        .as_object_mut()
        .unwrap()
        .extend(affinity.as_object().unwrap().clone());
    let mut cluster = cluster.clone();
    cluster["SessionAffinity"] = settings;
    cluster["Destinations"] = Value::Object(named);
    json!({
        "Routes": { "r": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": cluster },
    })
}

fn origins() -> [NamedOrigin; 3] {
    ["a", "b", "c"].map(Origin::named)
}

fn urls(origins: &[NamedOrigin]) -> Vec<(&str, String)> {
    origins
        .iter()
        .map(|origin| (origin.name(), origin.url()))
        .collect()
}

fn borrowed<'a>(urls: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    urls.iter().map(|(name, url)| (*name, &**url)).collect()
}

fn policies() -> Vec<&'static str> {
    let mut policies = vec!["HashCookie", "ArrCookie"];
    if cfg!(feature = "affinity-keys") {
        policies.extend(["Cookie", "CustomHeader"]);
    }
    policies
}

#[tokio::test]
async fn clients_stay_where_they_are_and_move_when_it_is_gone() {
    let origins = origins();
    let all = urls(&origins);
    let all = borrowed(&all);
    for policy in policies() {
        let affinity = json!({ "Policy": policy });
        for mut way in ways(&config(&all, &affinity, &json!({}))).await {
            let (at_a, at_b) = (way.settle("a").await, way.settle("b").await);
            assert_ne!(at_a, at_b);
            for _ in 0..5 {
                way.expect(&at_a, "a", false, policy).await;
                way.expect(&at_b, "b", false, policy).await;
            }
            way.set_health("a", Health::Unhealthy);
            let answer = way.ask(Some(&at_a)).await;
            assert_ne!(answer.text().trim(), "a", "{}", way.name);
            let moved = Key::of(&answer).unwrap();
            way.expect(&moved, answer.text().trim(), false, policy)
                .await;
            way.expect(&at_b, "b", false, "another one is unhealthy")
                .await;
            way.set_health("a", Health::Unknown);
            way.expect(&at_a, "a", false, "it is well again").await;
            // A scale-in moves the clients of what is gone.
            way.publish(&config(&all[1..], &affinity, &json!({})));
            let answer = way.ask(Some(&at_a)).await;
            assert_ne!(answer.text().trim(), "a", "{}", way.name);
            assert!(Key::of(&answer).is_some(), "{}", way.name);
            way.expect(&at_b, "b", false, "another one is gone").await;
        }
    }
}

#[tokio::test]
async fn clients_of_what_is_gone_get_503_where_that_is_wanted() {
    let origins = origins();
    let all = urls(&origins);
    let all = borrowed(&all);
    let affinity = json!({ "FailurePolicy": "Return503Error" });
    for mut way in ways(&config(&all, &affinity, &json!({}))).await {
        let at_a = way.settle("a").await;
        way.publish(&config(&all[1..], &affinity, &json!({})));
        let answer = way.ask(Some(&at_a)).await;
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            way.name
        );
        assert_eq!(Key::of(&answer), None, "{}", way.name);
        assert_eq!(way.ask(None).await.status, StatusCode::OK);
    }
}

/// A request that was not sent may go to another destination, unless the failure policy forbids it.
#[tokio::test]
async fn a_retry_moves_the_client_where_it_may() {
    let closed = RefusingPort::new();
    let b = Origin::named("b");
    let dead = closed.url();
    let both = [("a", &*dead), ("b", &b.url())];
    let first = json!({ "LoadBalancingPolicy": "FirstAlphabetical" });
    // XXH64 of `A`, as the unit tests have it of others.
    for mut way in ways(&config(&both, &json!({}), &first)).await {
        let answer = way.ask(None).await;
        assert_eq!(answer.text().trim(), "b", "{}", way.name);
        let at_b = Key::of(&answer).unwrap();
        way.expect(&at_b, "b", false, "the key is of the second one")
            .await;
    }
    let affinity = json!({ "FailurePolicy": "Return503Error" });
    let alive = Origin::named("a");
    let well = [("a", &*alive.url()), ("b", &*b.url())];
    for (affinity, is_bound) in [(json!({}), false), (affinity, true)] {
        for mut way in ways(&config(&well, &affinity, &first)).await {
            let at_a = way.settle("a").await;
            way.publish(&config(&both, &affinity, &first));
            if is_bound {
                let answer = way.ask(Some(&at_a)).await;
                assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{}", way.name);
                assert_eq!(Key::of(&answer), None, "{}", way.name);
                // A client without a key goes where it can.
                assert_eq!(way.ask(None).await.text().trim(), "b", "{}", way.name);
            } else {
                let moved = way.expect(&at_a, "b", true, "it cannot be reached").await;
                way.expect(&moved.unwrap(), "b", false, "it has moved")
                    .await;
            }
        }
    }
}

/// The key comes behind the changes of the route, and beside the cookies of the destination.
#[tokio::test]
async fn nothing_that_the_route_changes_takes_the_key_away() {
    let origin = Origin::start(|_| async {
        let response = Response::builder().header("set-cookie", "own=1");
        response.body(body::full("a")).unwrap()
    });
    let url = origin.url();
    for (transforms, expected) in [
        (json!([]), 2),
        (json!([{ "ResponseHeaderRemove": "Set-Cookie" }]), 1),
        (json!([{ "ResponseHeadersCopy": "false" }]), 1),
        (
            json!([{ "ResponseHeader": "Set-Cookie", "Set": "x=1", "When": "Always" }]),
            2,
        ),
        (json!([{ "ResponseHeader": "X-A", "Append": "1" }]), 2),
    ] {
        let mut config = config(&[("a", &url)], &json!({}), &json!({}));
        config["Routes"]["r"]["Transforms"] = transforms.clone();
        for mut way in ways(&config).await {
            let answer = way.ask(None).await;
            let cookies = answer.headers.get_all("set-cookie").iter().count();
            assert_eq!(cookies, expected, "{}: {transforms}", way.name);
            let last = answer.headers.get_all("set-cookie").iter().next_back();
            let last = last.unwrap().to_str().unwrap();
            assert!(
                last.starts_with("Aff=") && last.ends_with("; path=/; httponly"),
                "{last}"
            );
        }
    }
}

#[tokio::test]
async fn clients_stay_on_their_side_of_a_canary() {
    let (stable, canary) = (Origin::named("stable"), Origin::named("canary"));
    let config = |weights: [u32; 2]| {
        let cluster = |origin: &NamedOrigin| {
            json!({
                "SessionAffinity": { "Enabled": true, "AffinityKeyName": NAME },
                "Destinations": { "d": { "Address": origin.url() } },
            })
        };
        json!({
            "Routes": { "r": { "Match": { "Path": "/{**rest}" }, "WeightedClusters": [
                { "ClusterId": "stable", "Weight": weights[0] },
                { "ClusterId": "canary", "Weight": weights[1] },
            ] } },
            "Clusters": { "stable": cluster(&stable), "canary": cluster(&canary) },
        })
    };
    for mut way in ways(&config([1, 1])).await {
        let sides = [way.settle("stable").await, way.settle("canary").await];
        for weights in [[1, 1], [1, 99], [0, 1], [1, 0]] {
            way.publish(&config(weights));
            for _ in 0..5 {
                way.expect(&sides[0], "stable", false, "the weights change")
                    .await;
                way.expect(&sides[1], "canary", false, "the weights change")
                    .await;
            }
        }
        let mut gone = config([1, 0]);
        gone["Routes"]["r"]["WeightedClusters"]
            .as_array_mut()
            .unwrap()
            .pop();
        way.publish(&gone);
        way.expect(&sides[1], "stable", true, "its side is gone")
            .await;
    }
}

/// Failed requests make a destination unhealthy, on every way.
#[tokio::test]
async fn a_destination_that_fails_is_left_out() {
    let closed = RefusingPort::new();
    let dead = closed.url();
    let b = Origin::named("b");
    let check = json!({
        "LoadBalancingPolicy": "FirstAlphabetical",
        "HealthCheck": { "Passive": { "Enabled": true } },
    });
    let both = config(
        &[("a", &dead), ("b", &b.url())],
        &json!({ "Enabled": false }),
        &check,
    );
    for mut way in ways(&both).await {
        for _ in 0..10 {
            assert_eq!(way.ask(None).await.text().trim(), "b", "{}", way.name);
        }
        let destinations = way.proxy.clusters()[0].destinations.clone();
        let requests = destinations[0].requests;
        assert_eq!(requests, 10, "{}", way.name);
        assert_eq!(
            destinations[0].why.as_deref(),
            Some("unhealthy by its passive check"),
            "{}",
            way.name
        );
        assert_eq!(destinations[0].health, Health::Unhealthy);
        assert_eq!(destinations[1].health, Health::Healthy);
        assert_eq!(way.ask(None).await.text().trim(), "b");
        assert_eq!(way.proxy.clusters()[0].destinations[0].requests, requests);
    }
    // K25
    let strict = json!({
        "HealthCheck": { "AvailableDestinationsPolicy": "HealthyAndUnknown", "Passive": { "Enabled": true } },
    });
    let alone = config(&[("a", &dead)], &json!({ "Enabled": false }), &strict);
    for mut way in ways(&alone).await {
        for _ in 0..10 {
            assert_eq!(
                way.ask(None).await.status,
                StatusCode::BAD_GATEWAY,
                "{}",
                way.name
            );
        }
        assert_eq!(
            way.ask(None).await.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            way.name
        );
    }
}
