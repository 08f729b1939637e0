//! Tests of shared limits, with a real Redis and with servers that misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use proxy_model::{Snapshot, TimeSpan};
use testkit::peers::{self, Peer, PeerProcess};
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::super::{Outcome, RateLimiter};
use super::share;
use crate::config::LimiterKind::{FixedWindow, SlidingWindow, TokenBucket};
use crate::config::{LimiterKind, PartitionBy, QueueOrder, RateLimiterConfig, SharedConfig};
use crate::named::Visit;
use crate::tests::{TestHead, route};

fn limiter(kind: LimiterKind, address: SocketAddr, timeout: Duration) -> RateLimiter {
    let config = RateLimiterConfig {
        kind,
        queue_limit: 0,
        queue_order: QueueOrder::OldestFirst,
        partition_by: PartitionBy::Header("x-key".to_owned()),
        max_partitions: 10_000,
        status: 429,
        fields: true,
        shared: Some(SharedConfig {
            address: format!("redis://{address}"),
            username: None,
            password: None,
            database: 0,
            timeout: TimeSpan::new(timeout),
            replicas: 3,
            prefix: "test".to_owned(),
        }),
    };
    RateLimiter::new(&"few".into(), &config).unwrap()
}

/// Long enough for a busy machine.
const PATIENT: Duration = Duration::from_secs(30);

/// Returns true if a request with this key passes.
async fn passes(limiter: &RateLimiter, snapshot: &Snapshot, key: &str) -> bool {
    let mut head = TestHead::new("GET", "/t/x", &[("x-key", key)]);
    let visit = Visit {
        route: &snapshot.routes()[0],
        connection: proxy_runtime::ConnectionInfo::default(),
        now: Instant::now(),
        claims: None,
    };
    match limiter.check(&mut head, &visit) {
        Outcome::Pass(_) => true,
        Outcome::Reject(_) => false,
        Outcome::Wait(_) => panic!("a shared limit has no queue"),
        Outcome::Ask(asking) => {
            let asked = guarded("a decision", asking.wait()).await;
            limiter.end(asked, &mut head, &visit).is_ok()
        }
    }
}

async fn redis(peer: &Peer, port: u16) -> PeerProcess {
    let mut command = peer.command();
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
    ]);
    let mut process = peers::spawn(command);
    process.wait_for_output("Ready to accept connections").await;
    process
}

fn minute() -> TimeSpan {
    TimeSpan::from_secs(60)
}

fn kinds() -> [LimiterKind; 3] {
    [
        FixedWindow {
            permits: 9,
            window: minute(),
        },
        SlidingWindow {
            permits: 9,
            window: minute(),
            segments: 6,
        },
        TokenBucket {
            tokens: 9,
            per_period: 1,
            period: minute(),
        },
    ]
}

#[tokio::test]
async fn gateways_share_what_redis_counts_and_their_parts_while_it_is_away() {
    let Some(peer) = peers::find("redis-server") else {
        return;
    };
    let port = peers::free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let snapshot = route();
    let mut server = redis(&peer, port).await;
    for kind in kinds() {
        let gateways = [(); 3].map(|()| limiter(kind, address, PATIENT));
        let passed = async |key: &str, times: usize| {
            let mut passed = 0;
            for number in 0..times {
                let gateway = &gateways[number % gateways.len()];
                passed += usize::from(passes(gateway, &snapshot, key).await);
            }
            passed
        };
        assert_eq!(passed("a", 30).await, 9, "{kind:?}");
        assert_eq!(
            passed("b", 4).await,
            4,
            "other keys have limits of their own"
        );
        assert_eq!(gateways.iter().map(RateLimiter::alone).sum::<u64>(), 0);

        server.kill().await;
        eventually("each gateway notes it", async || {
            let mut gone = true;
            for gateway in &gateways {
                let before = gateway.alone();
                passes(gateway, &snapshot, "probe").await;
                gone &= gateway.alone() > before;
            }
            gone
        })
        .await;
        // Three of each.
        assert_eq!(passed("c", 30).await, 9, "{kind:?}");

        server = redis(&peer, port).await;
        for (number, gateway) in gateways.iter().enumerate() {
            eventually("it is used again", async || {
                let before = gateway.alone();
                passes(gateway, &snapshot, &format!("probe {number}")).await;
                gateway.alone() == before
            })
            .await;
        }
        assert_eq!(passed("d", 30).await, 9, "{kind:?}");
    }
}

#[tokio::test]
async fn time_gives_permits_back() {
    let Some(peer) = peers::find("redis-server") else {
        return;
    };
    let port = peers::free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let _server = redis(&peer, port).await;
    let snapshot = route();
    let short = TimeSpan::from_millis(200);
    for kind in [
        FixedWindow {
            permits: 1,
            window: short,
        },
        SlidingWindow {
            permits: 1,
            window: short,
            segments: 2,
        },
        TokenBucket {
            tokens: 1,
            per_period: 1,
            period: short,
        },
    ] {
        let limiter = limiter(kind, address, PATIENT);
        assert!(passes(&limiter, &snapshot, "a").await, "{kind:?}");
        eventually("it passes again", async || {
            passes(&limiter, &snapshot, "a").await
        })
        .await;
        assert_eq!(limiter.alone(), 0);
    }
}

#[tokio::test]
async fn a_redis_that_does_not_decide_costs_no_more_than_the_time_limit() {
    let snapshot = route();
    let kind = kinds()[0];
    // It accepts, and says nothing, an error, or something else.
    for reply in [
        "",
        "-NOAUTH Authentication required.\r\n",
        ":1\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(saying(listener, reply));
        let limiter = limiter(kind, address, Duration::from_millis(20));
        let mut passed = 0;
        for _ in 0..10 {
            passed += u32::from(passes(&limiter, &snapshot, "a").await);
        }
        assert_eq!((passed, limiter.alone()), (3, 10), "{reply:?}");
        server.abort();
    }
}

/// Answers whatever comes with this reply.
async fn saying(listener: TcpListener, reply: &'static str) {
    let mut open = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut read = [0; 4096];
        let _ = stream.read(&mut read).await;
        let _ = stream.write_all(reply.as_bytes()).await;
        open.push(stream);
    }
}

#[test]
fn a_share_is_never_nothing() {
    let bucket = |tokens, per_period| TokenBucket {
        tokens,
        per_period,
        period: minute(),
    };
    assert_eq!(share(bucket(10, 1), 3), bucket(3, 1));
    assert_eq!(share(bucket(2, 2), 3), bucket(1, 1));
    assert_eq!(share(bucket(2, 2), 1), bucket(2, 2));
}
