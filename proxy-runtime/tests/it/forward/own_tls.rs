//! Certificates, trust and names of clusters for TLS to their destinations.
#![cfg(feature = "tls")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use proxy_runtime::Proxy;
use proxy_runtime::health::Health;
use proxy_runtime::upstream::{TlsClient, UpstreamOptions};
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};
use testkit::body;
use testkit::certs::{self, Alpn, CertificateAuthority, Identity, PemFiles};
use testkit::client::{Answer, Message, websocket};
use testkit::faults::RefusingPort;
use testkit::origin::{ConnectionInfo, Incoming, Origin};
use testkit::time::eventually;
use tokio::sync::Semaphore;

use crate::changed;
use crate::forward::front::{Front, config_with};

/// The authorities of a test: one certifies servers, one clients, and one is unknown to everybody.
struct World {
    servers: CertificateAuthority,
    clients: CertificateAuthority,
    strangers: CertificateAuthority,
}

impl World {
    fn new() -> Self {
        Self {
            servers: CertificateAuthority::new("servers"),
            clients: CertificateAuthority::new("clients"),
            strangers: CertificateAuthority::new("strangers"),
        }
    }

    /// A server that requires certificates of clients, and responds with the one that it got.
    fn requiring(&self, alpn: Alpn) -> Origin {
        let identity = self.servers.issue(&["localhost"]);
        let config = identity.server_config_requiring(&self.clients, alpn);
        Origin::builder().tls(config).start(show)
    }

    fn options(&self) -> UpstreamOptions {
        trusting(&self.servers)
    }

    fn front(&self, url: &str, cluster: &Value) -> Front {
        let config = config_with(&[url], cluster);
        let builder = Proxy::builder().upstream(self.options());
        Front::build(&config, Origin::builder(), builder)
    }
}

fn trusting(authority: &CertificateAuthority) -> UpstreamOptions {
    let roots = (*authority.roots()).clone();
    let client = TlsClient::with_roots(certs::provider(), roots).unwrap();
    changed(|options: &mut UpstreamOptions| options.tls = Some(client))
}

async fn show(request: Request<Incoming>) -> Response<body::Body> {
    let info = request.extensions().get::<ConnectionInfo>().unwrap();
    let certificate = info.client_certificate.clone();
    let shown = certificate.map(|certificate| certificate.to_vec());
    let mut response = Response::new(body::full(shown.unwrap_or_default()));
    let headers = response.headers_mut();
    headers.insert("x-connection", info.id.into());
    response
}

fn by_name(origin: &Origin) -> String {
    format!("https://localhost:{}", origin.addr().port())
}

fn presenting(files: &PemFiles) -> Value {
    json!({ "HttpClient": { "ClientCertificate": {
        "Path": files.certificate(), "KeyPath": files.key(),
    } } })
}

async fn get(front: &Front) -> Answer {
    front.http1().await.get("/").await.unwrap()
}

/// The certificate that the server got.
async fn shown(front: &Front) -> Result<Vec<u8>, u16> {
    let answer = get(front).await;
    match answer.status.as_u16() {
        200 => Ok(answer.body.to_vec()),
        status => Err(status),
    }
}

fn der(identity: &Identity) -> Vec<u8> {
    let certificate: CertificateDer<'_> = identity.certificate();
    certificate.to_vec()
}

/// Lets the driver look at the files.
async fn files_are_read() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
}

fn replace(files: &PemFiles, by: &Identity) {
    fs::write(files.certificate(), by.certificate_pem()).unwrap();
    fs::write(files.key(), by.key_pem()).unwrap();
}

#[tokio::test]
async fn destinations_get_the_certificate_of_the_cluster() {
    let world = World::new();
    let (one, stranger) = (
        world.clients.issue_client("one"),
        world.strangers.issue_client("one"),
    );
    for alpn in [Alpn::Http1, Alpn::Http2] {
        let origin = world.requiring(alpn);
        let url = by_name(&origin);
        let front = world.front(&url, &presenting(&one.write_pem()));
        for _ in 0..2 {
            assert_eq!(shown(&front).await, Ok(der(&one)), "{alpn:?}");
        }
        assert_eq!(origin.traffic().counts().accepted, 1, "{alpn:?}");
        for rejected in [presenting(&stranger.write_pem()), json!({})] {
            let front = world.front(&url, &rejected);
            assert_eq!(shown(&front).await, Err(502), "{alpn:?} {rejected}");
            front.settled().await;
        }
    }
}

/// Chain and key may be in one file.
#[tokio::test]
async fn a_certificate_may_be_one_file() {
    let world = World::new();
    let one = world.clients.issue_client("one");
    let files = one.write_pem();
    let both = format!("{}{}", one.certificate_pem(), one.key_pem());
    fs::write(files.certificate(), both).unwrap();
    let origin = world.requiring(Alpn::Both);
    let cluster = json!({ "HttpClient": { "ClientCertificate": { "Path": files.certificate() } } });
    let front = world.front(&by_name(&origin), &cluster);
    assert_eq!(shown(&front).await, Ok(der(&one)));
}

#[tokio::test]
async fn authorities_of_the_cluster_take_the_place_of_the_programs() {
    let world = World::new();
    let files = world.clients.issue_client("unused").write_pem();
    let authority = files.add_authority(&world.strangers);
    let trusting = json!({ "HttpClient": { "CaFile": authority } });
    for (issuer, cluster, expected) in [
        (&world.servers, json!({}), 200),
        (&world.strangers, json!({}), 502),
        (&world.strangers, trusting.clone(), 200),
        (&world.servers, trusting.clone(), 502),
    ] {
        let identity = issuer.issue(&["localhost"]);
        let origin = Origin::builder()
            .tls(identity.server_config(Alpn::Both))
            .start_echo();
        let front = world.front(&by_name(&origin), &cluster);
        assert_eq!(get(&front).await.status, expected, "{cluster}");
    }
}

/// One address, and two clusters that ask for it by other names, over HTTP/2.
#[tokio::test]
async fn connections_are_not_shared_between_names() {
    let world = World::new();
    let identity = world.servers.issue(&["a.example", "b.example"]);
    let origin = Origin::builder()
        .tls(identity.server_config(Alpn::Http2))
        .start_echo();
    let url = format!("https://{}", origin.addr());
    let cluster = |name: &str| {
        json!({
            "HttpClient": { "ServerName": name },
            "Destinations": { "d": { "Address": url } },
        })
    };
    let route = |cluster: &str| {
        json!({
            "ClusterId": cluster, "Match": { "Path": format!("/{cluster}") },
        })
    };
    let config = json!({
        "Routes": { "a": route("a"), "b": route("b"), "c": route("c") },
        "Clusters": { "a": cluster("a.example"), "b": cluster("b.example"), "c": cluster("c.example") },
    });
    let builder = Proxy::builder().upstream(world.options());
    let front = Front::build(&config, Origin::builder(), builder);
    let mut client = front.http1().await;
    for name in ["a", "b", "a"] {
        let answer = client.get(&format!("/{name}")).await.unwrap();
        let echo: testkit::origin::Echo = answer.json();
        let expected = format!("{name}.example");
        assert_eq!(echo.server_name, Some(expected));
    }
    assert_eq!(origin.traffic().counts().accepted, 2);
    // The certificate has another name.
    assert_eq!(client.get("/c").await.unwrap().status, 502);
}

#[tokio::test]
async fn what_cannot_be_read_closes_its_cluster_until_it_can() {
    let world = World::new();
    let one = world.clients.issue_client("one");
    let files = one.write_pem();
    fs::remove_file(files.key()).unwrap();
    let origin = world.requiring(Alpn::Both);
    let front = world.front(&by_name(&origin), &presenting(&files));
    assert_eq!(shown(&front).await, Err(502));
    assert_eq!(
        origin.traffic().counts().accepted,
        0,
        "nothing is sent without it"
    );
    let problems = front.proxy.observed_problems();
    let problem = problems.iter().next().expect("it is named");
    assert_eq!(problem.code, "unusable_certificate");
    assert_eq!(problem.pointer, "/Clusters/c/HttpClient");
    assert!(problem.message.contains("key.pem"), "{problem}");
    assert!(
        problem.message.contains("no connection is opened"),
        "{problem}"
    );

    fs::write(files.key(), one.key_pem()).unwrap();
    files_are_read().await;
    eventually("the certificate is used", || async {
        shown(&front).await.is_ok()
    })
    .await;
    assert!(front.proxy.observed_problems().is_empty());
}

/// Connections that were opened with the earlier certificate end their requests and get no others.
#[tokio::test]
async fn a_renewed_certificate_is_used_for_every_new_request() {
    let world = World::new();
    let [first, second] = ["first", "second"].map(|name| world.clients.issue_client(name));
    for (alpn, limit) in [
        (Alpn::Http1, None),
        (Alpn::Http2, None),
        (Alpn::Http1, Some(2)),
    ] {
        let files = first.write_pem();
        let gate = Arc::new(Semaphore::new(0));
        let passed = Arc::clone(&gate);
        let identity = world.servers.issue(&["localhost"]);
        let config = identity.server_config_requiring(&world.clients, alpn);
        let origin = Origin::builder()
            .tls(config)
            .start(move |request: Request<Incoming>| {
                let passed = Arc::clone(&passed);
                async move {
                    if request.uri().path() == "/slow" {
                        passed.acquire().await.unwrap().forget();
                    }
                    show(request).await
                }
            });
        let mut cluster = presenting(&files);
        cluster["HttpClient"]["MaxConnectionsPerServer"] = json!(limit);
        let front = world.front(&by_name(&origin), &cluster);
        assert_eq!(shown(&front).await, Ok(der(&first)));
        let mut client = front.http1().await;
        let slow = tokio::spawn(async move { client.get("/slow").await.unwrap() });
        origin.traffic().wait_for_requests(2).await;

        // The chain comes before its key: for now they do not belong to each other.
        fs::write(files.certificate(), second.certificate_pem()).unwrap();
        files_are_read().await;
        eventually("the mismatch is named", || async {
            let problems = front.proxy.observed_problems();
            problems
                .iter()
                .any(|it| it.message.contains("the earlier ones are used"))
        })
        .await;
        assert_eq!(shown(&front).await, Ok(der(&first)), "{alpn:?}");

        replace(&files, &second);
        let before = front.proxy.overview().generation;
        files_are_read().await;
        eventually("the files are read", || async {
            front.proxy.overview().generation > before
        })
        .await;
        assert_eq!(shown(&front).await, Ok(der(&second)), "{alpn:?}");
        gate.add_permits(1);
        let slow = slow.await.unwrap();
        assert_eq!(
            (slow.status.as_u16(), slow.body.to_vec()),
            (200, der(&first))
        );
        assert_eq!(shown(&front).await, Ok(der(&second)), "{alpn:?}");
        front.settled().await;
        front.connections(0, 1).await;
    }
}

#[tokio::test]
async fn another_certificate_of_a_reload_is_used_at_once() {
    let world = World::new();
    let [first, second] = ["first", "second"].map(|name| world.clients.issue_client(name));
    let (first_files, second_files) = (first.write_pem(), second.write_pem());
    let origin = world.requiring(Alpn::Http2);
    let url = by_name(&origin);
    let front = world.front(&url, &presenting(&first_files));
    assert_eq!(shown(&front).await, Ok(der(&first)));
    front.reload(&config_with(&[&url], &presenting(&second_files)));
    assert_eq!(shown(&front).await, Ok(der(&second)));
    // The same settings keep the connection.
    front.reload(&config_with(&[&url], &presenting(&second_files)));
    assert_eq!(shown(&front).await, Ok(der(&second)));
    assert_eq!(origin.traffic().counts().accepted, 2);
    front.reload(&config_with(&[&url], &json!({})));
    assert_eq!(
        shown(&front).await,
        Err(502),
        "no connection of before is used"
    );
}

#[tokio::test]
async fn retries_and_probes_present_it_too() {
    let world = World::new();
    let one = world.clients.issue_client("one");
    let files = one.write_pem();
    let (refusing, origin) = (RefusingPort::new(), world.requiring(Alpn::Both));
    let rejected = format!("https://localhost:{}", refusing.addr().port());
    let mut cluster = presenting(&files);
    cluster["LoadBalancingPolicy"] = json!("FirstAlphabetical");
    let config = config_with(&[&rejected, &by_name(&origin)], &cluster);
    let builder = Proxy::builder().upstream(world.options());
    let front = Front::build(&config, Origin::builder(), builder);
    assert_eq!(shown(&front).await, Ok(der(&one)));

    cluster["HealthCheck"] = json!({ "Active": { "Enabled": true, "Interval": "50ms" } });
    let probed = world.front(&by_name(&origin), &cluster);
    eventually("it is healthy", || async {
        probed.destination(0).health == Health::Healthy
    })
    .await;
    cluster["HttpClient"] = json!({});
    let probed = world.front(&by_name(&origin), &cluster);
    eventually("it is unhealthy", || async {
        probed.destination(0).health == Health::Unhealthy
    })
    .await;
}

#[tokio::test]
async fn a_websocket_presents_it_too() {
    let world = World::new();
    let files = world.clients.issue_client("one").write_pem();
    let identity = world.servers.issue(&["localhost"]);
    let config = identity.server_config_requiring(&world.clients, Alpn::Both);
    let origin = Origin::builder().tls(config).start_upgrade_echo();
    let front = world.front(&by_name(&origin), &presenting(&files));
    let mut socket = websocket(front.server.addr(), "/").await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    let received = socket.receive().await.unwrap();
    assert_eq!(received, Some(Message::text("hello")));
    let without = world.front(&by_name(&origin), &json!({}));
    assert!(websocket(without.server.addr(), "/").await.is_err());
}

/// A bundle with one certificate that cannot be used is not used in part.
#[tokio::test]
async fn a_bundle_is_whole_or_closes() {
    let world = World::new();
    let identity = world.servers.issue(&["localhost"]);
    let origin = Origin::builder()
        .tls(identity.server_config(Alpn::Both))
        .start_echo();
    let files = identity.write_pem();
    let bundle = files.directory().join("bundle.pem");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let good = world.servers.certificate_pem();
    for (text, expected) in [
        (good.clone(), 200),
        (format!("{good}{broken}"), 502),
        (String::new(), 502),
    ] {
        fs::write(&bundle, &text).unwrap();
        let cluster = json!({ "HttpClient": { "CaFile": Path::new(&bundle) } });
        let front = world.front(&by_name(&origin), &cluster);
        assert_eq!(get(&front).await.status, expected, "{text}");
    }
}
