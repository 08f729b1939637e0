//! Limits that three gateways share by a real Redis, which goes away and returns.

use std::net::SocketAddr;

use testkit::origin::Origin;
use testkit::peers::{self, Peer, PeerProcess};
use testkit::time::eventually;

use crate::policies::{Gateway, example};

async fn redis(peer: &Peer, port: u16) -> PeerProcess {
    let mut command = peer.command();
    let port = port.to_string();
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
    let mut process = peers::spawn(command);
    process.wait_for_output("Ready to accept connections").await;
    process
}

/// The number of `times` requests with this key that pass, each at the next gateway.
async fn passed(gateways: &[Gateway], key: &str, times: usize) -> usize {
    let key = format!("X-Key: {key}");
    let mut passed = 0;
    for number in 0..times {
        let gateway = &gateways[number % gateways.len()];
        let (status, head) = gateway.send("GET /api/orders", &[&key]).await;
        assert!(matches!(status, 200 | 429), "{head}");
        passed += usize::from(status == 200);
    }
    passed
}

#[tokio::test]
async fn three_gateways_share_a_limit_and_their_parts_while_redis_is_away() {
    let Some(peer) = peers::find("redis-server") else {
        return;
    };
    let port = peers::free_port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut server = redis(&peer, port).await;
    let origin = Origin::named("api");
    let text = example("\"Shared\"")
        .replace("redis://10.0.0.9:6379", &format!("redis://{address}"))
        // A busy machine takes its time.
        .replace(r#""Replicas": 3"#, r#""Replicas": 3, "Timeout": "1s""#)
        .replace(r#""PermitLimit": 300"#, r#""PermitLimit": 9"#)
        .replace(r#""Window": "1m""#, r#""Window": "1h""#)
        .replace(
            r#"{ "By": "Address" }"#,
            r#"{ "By": "Header", "Name": "X-Key" }"#,
        );
    let mut gateways = Vec::new();
    for _ in 0..3 {
        gateways.push(Gateway::start(&text, origin.addr()).await);
    }
    assert_eq!(passed(&gateways, "a", 30).await, 9);
    let (status, head) = gateways[0].send("GET /api/orders", &["X-Key: a"]).await;
    let head = head.to_ascii_lowercase();
    assert_eq!(status, 429);
    assert!(head.contains("\r\nratelimit: \"api\";r=0;t="), "{head}");
    assert!(
        head.contains("\r\nratelimit-policy: \"api\";q=9;w=3600\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nretry-after: "), "{head}");

    server.kill().await;
    // Each has its share, also for those who had nothing left.
    assert_eq!(passed(&gateways, "a", 30).await, 9);
    let counts = gateways[0].metrics().await;
    let alone = r#"kind="RateLimiter",policy="api",outcome="alone""#;
    assert!(counts.contains(alone), "{counts}");
    let rejected = r#"cause="over_share",side="proxy"}"#;
    eventually("rejections have their cause", async || {
        gateways[0].metrics().await.contains(rejected)
    })
    .await;
    let url = format!("redis://{address}/");
    let explain = "explain?url=http://localhost/api/orders&header=X-Key:%20a";
    for gateway in &gateways {
        let overview = gateway.told("overview").await;
        let sentence = format!("Granting shares of limits: api (Redis {url}: ");
        assert!(overview.contains(&sentence), "{overview}");
        let concern =
            r#""kind":"policy","id":"api","state":"degraded","cause":"over_share","side":"proxy""#;
        assert!(overview.contains(concern), "{overview}");
        let problems = gateway.told("problems").await;
        assert!(problems.contains("/Policies/RateLimiter/api"), "{problems}");
        let explained = gateway.told(explain).await;
        let limit = format!(
            "shared by 3 gateways through {url}; at present this gateway grants its share, 3 requests"
        );
        assert!(explained.contains(&limit), "{explained}");
        assert_eq!(gateway.logged("the service of a policy fails"), 1);
    }

    let _server = redis(&peer, port).await;
    for number in 0..gateways.len() {
        eventually("Redis is used again", async || {
            // Alone, a gateway lets three pass.
            let gateway = &gateways[number..=number];
            passed(gateway, &fastrand::u64(..).to_string(), 4).await == 4
        })
        .await;
    }
    assert_eq!(passed(&gateways, "b", 30).await, 9);
    for gateway in &gateways {
        let overview = gateway.told("overview").await;
        assert!(!overview.contains("Granting shares"), "{overview}");
        let explained = gateway.told(explain).await;
        let limit = format!("shared by 3 gateways through {url}\"");
        assert!(explained.contains(&limit), "{explained}");
        assert_eq!(gateway.logged("the service of a policy answers again"), 1);
    }
}
