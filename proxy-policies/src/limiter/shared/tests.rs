//! Tests of shared limits, with a real Redis and with servers that misbehave.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use proxy_model::{Snapshot, TimeSpan};
use proxy_runtime::Cause;
use testkit::certs::CertificateAuthority;
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
    let config = config(kind, format!("redis://{address}"), timeout);
    RateLimiter::new(&"few".into(), &config).unwrap()
}

fn config(kind: LimiterKind, address: String, timeout: Duration) -> RateLimiterConfig {
    RateLimiterConfig {
        kind,
        queue_limit: 0,
        queue_order: QueueOrder::OldestFirst,
        partition_by: PartitionBy::Header("x-key".to_owned()),
        max_partitions: 10_000,
        status: 429,
        fields: true,
        shared: Some(SharedConfig {
            address,
            username: None,
            password: None,
            database: 0,
            timeout: TimeSpan::new(timeout),
            replicas: 3,
            prefix: "test".to_owned(),
            ca_file: None,
        }),
    }
}

/// A limiter with TLS that trusts these authorities.
fn secure(address: &str, ca_file: &Path) -> Result<RateLimiter, String> {
    let mut config = config(kinds()[0], format!("rediss://{address}"), PATIENT);
    config.shared.as_mut().unwrap().ca_file = Some(ca_file.to_str().unwrap().to_owned());
    RateLimiter::new(&"few".into(), &config)
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
        // Redis is known to be away.
        Outcome::Reject(answer) => {
            assert_eq!(answer.cause(), Some(Cause::OverShare));
            false
        }
        Outcome::Wait(_) => panic!("a shared limit has no queue"),
        Outcome::Ask(asking) => {
            let asked = guarded("a decision", asking.wait()).await;
            let cause = match asked.decision {
                Some(_) => Cause::OverLimit,
                None => Cause::OverShare,
            };
            let ended = limiter.end(asked, &mut head, &visit);
            ended
                .map_err(|answer| assert_eq!(answer.cause(), Some(cause)))
                .is_ok()
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
        let url = format!("redis://{address}/");
        let shared = format!("shared by 3 gateways through {url}");
        let is_shared = |gateway: &RateLimiter| {
            gateway.failing().is_none() && gateway.describe_now().ends_with(&shared)
        };
        assert!(gateways.iter().all(is_shared), "{kind:?}");

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
        for gateway in &gateways {
            let error = gateway.failing().unwrap();
            assert!(error.starts_with(&format!("Redis {url}: ")), "{error}");
            let limit = gateway.describe_now();
            let share = super::super::fields::describe(share(kind, 3), &gateway.partition_by);
            let expected = format!("{shared}; at present this gateway grants its share, {share}: ");
            assert!(limit.contains(&expected), "{limit}");
        }
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
        assert!(gateways.iter().all(is_shared), "{kind:?}");
        assert_eq!(passed("d", 30).await, 9, "{kind:?}");
    }
}

#[tokio::test]
async fn redis_is_asked_over_tls() {
    let Some(peer) = peers::find("redis-server") else {
        return;
    };
    let (authority, other) = (
        CertificateAuthority::new("redis"),
        CertificateAuthority::new("other"),
    );
    let files = authority.issue(&["localhost"]).write_pem();
    let ca = files.add_authority(&authority);
    let port = peers::free_port();
    let mut command = peer.command();
    command.args(["--port", "0", "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--tls-port", &port.to_string()]);
    command.args(["--tls-auth-clients", "no"]);
    command.arg("--tls-cert-file").arg(files.certificate());
    command.arg("--tls-key-file").arg(files.key());
    command.arg("--tls-ca-cert-file").arg(&ca);
    let mut process = peers::spawn(command);
    process.wait_for_output("Ready to accept connections").await;
    let snapshot = route();
    let address = format!("localhost:{port}");
    let passed = async |limiter: &RateLimiter| {
        let mut passed = 0;
        for _ in 0..30 {
            passed += u32::from(passes(limiter, &snapshot, "a").await);
        }
        passed
    };
    let trusting = secure(&address, &ca).unwrap();
    assert_eq!((passed(&trusting).await, trusting.alone()), (9, 0));
    // The certificate is for another host, and of an unknown authority.
    let stranger = secure(&format!("127.0.0.1:{port}"), &ca).unwrap();
    assert_eq!(passed(&stranger).await, 3);
    let error = stranger.failing().unwrap();
    assert!(error.contains("certificate"), "{error}");
    assert!(secure(&address, Path::new("/gone/ca.pem")).is_err());
    std::fs::write(&ca, other.certificate_pem()).unwrap();
    let distrusting = secure(&address, &ca).unwrap();
    assert_eq!(passed(&distrusting).await, 3);
    let error = distrusting.failing().unwrap();
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_named() {
    const LOADED: &str = "$1\r\nx\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limiter = limiter(kinds()[0], listener.local_addr().unwrap(), PATIENT);
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = [0; 4096];
        for reply in [LOADED, "-MOVED 3999 127.0.0.1:6381\r\n"] {
            let _ = stream.read(&mut read).await.unwrap();
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
        stream
    });
    assert!(passes(&limiter, &route(), "a").await);
    let error = limiter.failing().unwrap();
    let expected = "Redis Cluster is not supported: MOVED 3999";
    assert!(error.contains(expected), "{error}");
    drop(server);
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
        // It promises more than there is memory for.
        "$9223372036854775807\r\n",
        "*9223372036854775807\r\n",
        "*8\r\n*8\r\n*8\r\n",
        "+endless",
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

#[tokio::test]
async fn a_redis_that_sends_without_an_end_is_given_up() {
    const LOADED: &str = "$40\r\n0123456789012345678901234567890123456789\r\n";
    let snapshot = route();
    let (line, text) = (
        "x".repeat(4096),
        format!("$1024\r\n{}\r\n", "x".repeat(1024)),
    );
    for (first, endless) in [
        ("+", &*line),
        ("*8\r\n", "*8\r\n"),
        ("*8\r\n", &*text),
        // Replies without a request.
        (LOADED, LOADED),
        (LOADED, ":1\r\n"),
        (LOADED, &*line),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let limiter = limiter(kinds()[0], listener.local_addr().unwrap(), PATIENT);
        let endless = endless.to_owned();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(first.as_bytes()).await.unwrap();
            while stream.write_all(endless.as_bytes()).await.is_ok() {}
        });
        assert!(passes(&limiter, &snapshot, "a").await);
        guarded("the end of the connection", server).await.unwrap();
        assert_eq!(limiter.alone(), 1);
    }
}

/// The limit is 20 ms, so that the connection lasts.
#[tokio::test]
async fn a_redis_that_is_late_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(saying(listener, "$1\r\nx\r\n"));
    let limiter = limiter(kinds()[0], address, Duration::from_millis(20));
    assert!(limiter.describe_now().contains("which was not asked yet"));
    assert!(passes(&limiter, &route(), "a").await);
    let error = limiter.failing().unwrap();
    assert!(
        error.starts_with(&format!("Redis redis://{address}/: ")),
        "{error}"
    );
    server.abort();
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
