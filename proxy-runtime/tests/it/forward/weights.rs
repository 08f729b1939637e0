//! Shares of weighted destinations, counted at the origins.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::origin::{NamedOrigin, Origin};

use crate::forward::front::{Front, config_with};

/// A stable version and its canary, with round robin.
struct Pair {
    stable: NamedOrigin,
    canary: NamedOrigin,
}

impl Pair {
    fn start() -> Self {
        Self {
            stable: Origin::named("stable"),
            canary: Origin::named("canary"),
        }
    }

    /// A configuration with these weights; `null` is none.
    fn weighted(&self, stable: &Value, canary: &Value) -> Value {
        config_with(
            &[],
            &json!({
                "LoadBalancingPolicy": "RoundRobin",
                "Destinations": {
                    "stable": { "Address": self.stable.url(), "Weight": stable },
                    "canary": { "Address": self.canary.url(), "Weight": canary },
                },
            }),
        )
    }

    fn served(&self) -> (u64, u64) {
        (self.stable.served(), self.canary.served())
    }

    /// Number of requests served by each of the two, of `count` sequential ones.
    async fn shares(&self, client: &mut Connection, count: u64) -> (u64, u64) {
        let before = self.served();
        for _ in 0..count {
            assert_eq!(client.get("/").await.unwrap().status, 200);
        }
        let after = self.served();
        (after.0 - before.0, after.1 - before.1)
    }
}

#[tokio::test]
async fn a_canary_of_weight_one_beside_ten_gets_one_of_eleven() {
    let pair = Pair::start();
    let front = Front::start(&pair.weighted(&json!(10), &json!(1)));
    let mut client = front.http1().await;
    // The share is even: of any eleven consecutive requests, one is the canary's.
    for _ in 0..100 {
        assert_eq!(pair.shares(&mut client, 11).await, (10, 1));
    }
    assert_eq!(pair.served(), (1_000, 100));
    front.settled().await;
    for destination in &front.proxy.clusters()[0].destinations {
        let expected = if destination.id == *"canary" {
            100
        } else {
            1_000
        };
        assert_eq!(destination.requests, expected, "{}", destination.id);
    }
}

#[tokio::test]
async fn shares_are_exact_when_clients_ask_at_once() {
    let pair = Pair::start();
    let front = Front::start(&pair.weighted(&json!(10), &json!(1)));
    let clients = (0..11).map(async |i| {
        let mut client = match i % 2 {
            0 => front.http1().await,
            _ => front.http2().await,
        };
        for _ in 0..100 {
            assert_eq!(client.get("/").await.unwrap().status, 200);
        }
    });
    join_all(clients).await;
    assert_eq!(pair.served(), (1_000, 100));
}

#[tokio::test]
async fn shares_follow_weights_from_the_next_request_on() {
    let pair = Pair::start();
    let front = Front::start(&pair.weighted(&json!(10), &json!(1)));
    let mut client = front.http1().await;
    // If one has weight 0, any number of requests fits: the next turns through all weights may
    // begin in the middle.
    for (stable, canary, expected) in [
        (json!(10), json!(1), (1_000, 100)),
        (json!(3), json!(1), (300, 100)),
        (json!(5), json!(0), (103, 0)),
        (json!(1), json!(1), (51, 51)),
        (Value::Null, json!(4), (21, 84)),
        (json!(0), json!(7), (0, 97)),
        (json!(1_000_000), json!(0), (13, 0)),
        (json!(20), json!(2), (1_000, 100)),
    ] {
        front.reload(&pair.weighted(&stable, &canary));
        let shares = pair.shares(&mut client, expected.0 + expected.1).await;
        assert_eq!(shares, expected, "{stable}:{canary}");
    }
    // The weights have changed, and the destinations have not: their connections are still the
    // first ones.
    front.settled().await;
    for destination in &front.proxy.clusters()[0].destinations {
        assert_eq!(destination.connects, 1, "{}", destination.id);
    }
}

#[tokio::test]
async fn weights_that_are_all_zero_are_equal() {
    let pair = Pair::start();
    let front = Front::start(&pair.weighted(&json!(0), &json!(0)));
    let mut client = front.http1().await;
    assert_eq!(pair.shares(&mut client, 200).await, (100, 100));
    // A destination that gets a weight has everything, and then half of it.
    front.reload(&pair.weighted(&json!(0), &json!(1)));
    assert_eq!(pair.shares(&mut client, 50).await, (0, 50));
    front.reload(&pair.weighted(&json!(0), &json!(0)));
    assert_eq!(pair.shares(&mut client, 200).await, (100, 100));
}
