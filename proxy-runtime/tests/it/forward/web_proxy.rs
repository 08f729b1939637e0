//! Forward proxies between the proxy and destinations.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_runtime::Proxy;
use proxy_runtime::health::Health;
use proxy_runtime::upstream::UpstreamOptions;
use serde_json::{Value, json};
use testkit::body;
use testkit::client::{Message, websocket};
use testkit::faults::RefusingPort;
use testkit::origin::{Echo, Origin};
use testkit::time::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::changed;
use crate::forward::front::{Front, config_with, h2c};

/// A forward proxy that opens tunnels, all of them to one origin, whatever their name.
struct Tunnels {
    address: SocketAddr,
    /// The heads that it got.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Tunnels {
    async fn to(origin: SocketAddr) -> Self {
        Self::answering(origin, b"HTTP/1.1 200 Connection established\r\n\r\n").await
    }

    async fn answering(origin: SocketAddr, answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(near.read_u8().await?);
                    }
                    seen.lock().push(String::from_utf8(head).unwrap());
                    near.write_all(answer).await?;
                    let mut far = TcpStream::connect(origin).await?;
                    copy_bidirectional(&mut near, &mut far).await
                });
            }
        });
        Self { address, heads }
    }

    fn url(&self) -> String {
        format!("http://user:pass@{}/", self.address)
    }
}

fn through(proxy: &str) -> Value {
    json!({ "HttpClient": { "WebProxy": { "Address": proxy } } })
}

fn front(destination: &str, cluster: &Value) -> Front {
    Front::start(&config_with(&[destination], cluster))
}

/// The name of the destination is for the forward proxy to look up: it exists nowhere.
#[tokio::test]
async fn http_destinations_are_asked_for_in_absolute_form() {
    let proxy = Origin::echo();
    let url = format!("http://user:pass@{}/", proxy.addr());
    let front = front("http://d.invalid:81/base", &through(&url));
    let mut client = front.http1().await;
    for i in 0..2 {
        let request = client.request("POST", &format!("/a?{i}"));
        let request = request.header("proxy-authorization", "the client's");
        let answer = client
            .send(request.body(body::full("content")).unwrap())
            .await
            .unwrap();
        let echo: Echo = answer.json();
        assert_eq!(echo.uri, format!("http://d.invalid:81/base/a?{i}"));
        assert_eq!(echo.header("host"), ["d.invalid:81"]);
        assert_eq!(echo.header("proxy-authorization"), ["Basic dXNlcjpwYXNz"]);
        assert_eq!(echo.body_text.as_deref(), Some("content"));
    }
    let mut client = front.http2().await;
    let echo: Echo = client.get("/b").await.unwrap().json();
    assert_eq!(
        (echo.uri.as_str(), echo.version.as_str()),
        ("http://d.invalid:81/base/b", "HTTP/1.1")
    );
    assert_eq!(proxy.traffic().counts().accepted, 1, "connections are kept");
}

#[tokio::test]
async fn some_destinations_are_reached_directly() {
    let (proxy, origin) = (Origin::echo(), Origin::echo());
    let local = format!("http://localhost:{}", origin.addr().port());
    for (settings, is_direct) in [
        (json!({}), false),
        (json!({ "BypassOnLocal": true }), true),
        (json!({ "BypassList": ["*.internal", "local*"] }), true),
        (json!({ "BypassList": ["*.internal"] }), false),
    ] {
        let mut web_proxy = settings;
        web_proxy["Address"] = json!(proxy.url());
        let front = front(&local, &json!({ "HttpClient": { "WebProxy": web_proxy } }));
        let echo: Echo = front.http1().await.get("/a").await.unwrap().json();
        assert_eq!(
            echo.uri,
            if is_direct {
                "/a".to_owned()
            } else {
                format!("{local}/a")
            }
        );
    }
}

/// A destination that speaks HTTP/2 is not spoken to by the forward proxy's version.
#[tokio::test]
async fn http2_goes_through_a_tunnel() {
    let origin = Origin::echo();
    let proxy = Tunnels::to(origin.addr()).await;
    let mut cluster = h2c();
    cluster["HttpClient"] = through(&proxy.url())["HttpClient"].clone();
    let front = front("http://d.invalid/", &cluster);
    for _ in 0..2 {
        let echo: Echo = front.http1().await.get("/a").await.unwrap().json();
        assert_eq!(
            (echo.path_and_query(), echo.version.as_str()),
            ("/a", "HTTP/2.0")
        );
    }
    let heads = proxy.heads.lock().clone();
    assert_eq!(
        heads,
        ["CONNECT d.invalid:80 HTTP/1.1\r\nhost: d.invalid:80\r\n\
             proxy-authorization: Basic dXNlcjpwYXNz\r\n\r\n"]
    );
}

#[tokio::test]
async fn a_proxy_that_rejects_or_is_away_is_an_error_that_names_it() {
    let origin = Origin::echo();
    let refusing = RefusingPort::new();
    let away = format!("http://user:secret@{}/", refusing.addr());
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/", silent.local_addr().unwrap());
    let denies = Tunnels::answering(origin.addr(), b"HTTP/1.1 407 Who\r\n\r\n").await;
    for (proxy, reason) in [
        (away.as_str(), "cannot be connected to"),
        (&denies.url(), "407"),
        (&silent, ""),
    ] {
        let mut cluster = h2c();
        cluster["HttpClient"] = through(proxy)["HttpClient"].clone();
        let config = config_with(&["http://d.invalid/"], &cluster);
        let options = changed(|options: &mut UpstreamOptions| {
            options.connect_timeout = std::time::Duration::from_millis(300);
        });
        let builder = Proxy::builder().upstream(options);
        let front = Front::build(&config, Origin::builder(), builder);
        let answer = front.http1().await.get("/").await.unwrap();
        assert!(
            [502, 504].contains(&answer.status.as_u16()),
            "{}",
            answer.status
        );
        if !reason.is_empty() {
            let failure = front.destination(0).failing.map(|failing| failing.detail);
            let failure = failure.unwrap_or_default();
            assert!(failure.contains(reason), "{failure}");
            assert!(
                failure.contains("the forward proxy 127.0.0.1:"),
                "{failure}"
            );
            assert!(
                !failure.contains("secret") && !failure.contains("pass"),
                "{failure}"
            );
        }
    }
    assert_eq!(origin.traffic().requests(), 0);
}

#[tokio::test]
async fn probes_and_websockets_take_the_same_way() {
    let origin = Origin::builder().start_upgrade_echo();
    // The origin stands for a forward proxy that passes upgrades on.
    let front_of = |cluster: &Value| front("http://d.invalid/", cluster);
    let front = front_of(&through(&origin.url()));
    let mut socket = websocket(front.server.addr(), "/").await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    assert_eq!(
        socket.receive().await.unwrap(),
        Some(Message::text("hello"))
    );

    let proxy = Origin::echo();
    let mut cluster = through(&proxy.url());
    cluster["HealthCheck"] = json!({ "Active": { "Enabled": true, "Interval": "50ms" } });
    let probed = front_of(&cluster);
    eventually("it is healthy", || async {
        probed.destination(0).health == Health::Healthy
    })
    .await;
}

#[cfg(feature = "tls")]
mod secure {
    use proxy_runtime::upstream::TlsClient;
    use testkit::certs::{self, Alpn, CertificateAuthority};

    use super::*;

    /// The forward proxy sees a name and ciphertext only.
    #[tokio::test]
    async fn https_destinations_are_reached_through_tunnels() {
        let ca = CertificateAuthority::new("test");
        let clients = CertificateAuthority::new("clients");
        let files = clients.issue_client("one").write_pem();
        for (alpn, version) in [(Alpn::Http1, "HTTP/1.1"), (Alpn::Http2, "HTTP/2.0")] {
            let identity = ca.issue(&["d.invalid"]);
            let config = identity.server_config_requiring(&clients, alpn);
            let origin = Origin::builder().tls(config).start_echo();
            let proxy = Tunnels::to(origin.addr()).await;
            let mut cluster = through(&proxy.url());
            cluster["HttpClient"]["ClientCertificate"] =
                json!({ "Path": files.certificate(), "KeyPath": files.key() });
            let roots = (*ca.roots()).clone();
            let client = TlsClient::with_roots(certs::provider(), roots).unwrap();
            let options = changed(|options: &mut UpstreamOptions| options.tls = Some(client));
            let config = config_with(&["https://d.invalid/"], &cluster);
            let builder = Proxy::builder().upstream(options);
            let front = Front::build(&config, Origin::builder(), builder);
            for _ in 0..2 {
                let echo: Echo = front.http1().await.get("/secret").await.unwrap().json();
                assert_eq!(
                    (echo.path_and_query(), echo.version.as_str()),
                    ("/secret", version)
                );
                assert_eq!(echo.server_name.as_deref(), Some("d.invalid"));
                assert!(echo.header("proxy-authorization").is_empty());
            }
            let heads = proxy.heads.lock().clone();
            assert_eq!(heads.len(), 1);
            assert!(
                heads[0].starts_with("CONNECT d.invalid:443 HTTP/1.1\r\n"),
                "{heads:?}"
            );
        }
    }
}
