//! Connections to destinations that begin with a header of the PROXY protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::ServerHandle;
use serde_json::{Value, json};
use testkit::origin::Origin;
use testkit::time::{eventually, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::server::support::connections;
use crate::server::ways::{as_bytes, over_types};
use crate::server::websocket::{self, Upstream};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A destination that reads the header of each connection, and sends what follows to an origin.
struct Announced {
    address: SocketAddr,
    /// The addresses that each connection was announced for; `None` for one of the proxy's own.
    clients: Arc<Mutex<Vec<Client>>>,
}

/// The address of a client and the one that it connected to; `None` for the proxy itself.
type Client = Option<(SocketAddr, SocketAddr)>;

impl Announced {
    async fn before(origin: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clients = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&clients);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let client = read_header(&mut near).await?;
                    seen.lock().push(client);
                    let mut far = TcpStream::connect(origin).await?;
                    copy_bidirectional(&mut near, &mut far).await
                });
            }
        });
        Self { address, clients }
    }

    fn take(&self) -> Vec<Client> {
        std::mem::take(&mut *self.clients.lock())
    }
}

/// Reads a header of version 2 as the protocol describes it.
async fn read_header(stream: &mut TcpStream) -> std::io::Result<Client> {
    let mut fixed = [0; 16];
    stream.read_exact(&mut fixed).await?;
    assert_eq!(&fixed[..12], SIGNATURE);
    let mut rest = vec![0; usize::from(u16::from_be_bytes([fixed[14], fixed[15]]))];
    stream.read_exact(&mut rest).await?;
    Ok(match fixed[12] {
        0x20 => None,
        0x21 => {
            assert_eq!((fixed[13], rest.len()), (0x11, 12), "TCP over IPv4");
            let address = |at: usize, port: usize| {
                let ip = <[u8; 4]>::try_from(&rest[at..at + 4]).unwrap();
                let port = u16::from_be_bytes([rest[port], rest[port + 1]]);
                SocketAddr::from((ip, port))
            };
            Some((address(0, 8), address(4, 10)))
        }
        other => panic!("the command {other}"),
    })
}

fn proxy(url: &str, cluster: &Value) -> Proxy {
    let mut cluster = cluster.clone();
    cluster["HttpClient"]["SendProxyProtocol"] = json!(true);
    cluster["Destinations"] = json!({ "d1": { "Address": url } });
    let config = json!({
        "Routes": { "r1": { "ClusterId": "c1", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c1": cluster },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    tokio::spawn(driver);
    proxy
}

/// The header names one client, so no other request may use the connection.
#[tokio::test]
async fn each_request_has_a_connection_that_names_its_client() {
    let origin = Origin::echo();
    let destination = Announced::before(origin.addr()).await;
    let url = format!("http://{}/", destination.address);
    // A limit of connections has the requests wait for places, not for connections of others.
    for cluster in [
        json!({}),
        json!({ "HttpClient": { "MaxConnectionsPerServer": 1 } }),
    ] {
        let proxy = proxy(&url, &cluster);
        for serve in [as_bytes as fn(&Proxy) -> ServerHandle, over_types] {
            let server = serve(&proxy);
            let address = server.local_addrs()[0];
            let mut clients = connections(address).await;
            clients.extend(connections(address).await);
            for _ in 0..3 {
                for client in &mut clients {
                    let answer = guarded("a response", client.get("/x")).await.unwrap();
                    assert_eq!(answer.status, 200);
                    let expected = Some((client.local_addr(), address));
                    assert_eq!(destination.take(), [expected], "{:?}", client.protocol());
                }
            }
            // At the same time.
            let expected: Vec<_> = clients
                .iter()
                .map(|c| Some((c.local_addr(), address)))
                .collect();
            let asked = clients.iter_mut().map(|client| client.get("/x"));
            let answers = futures_util::future::join_all(asked).await;
            assert!(answers.iter().all(|a| a.as_ref().unwrap().status == 200));
            let mut seen = destination.take();
            seen.sort_unstable();
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(seen, expected);
        }
    }
}

#[tokio::test]
async fn a_tunnel_is_announced_too() {
    let origin = websocket::origin(Upstream::Http1, |_| {});
    let destination = Announced::before(origin.addr()).await;
    let server = as_bytes(&proxy(
        &format!("http://{}/", destination.address),
        &json!({}),
    ));
    let address = server.local_addrs()[0];
    for mut client in connections(address).await {
        let expected = Some((client.local_addr(), address));
        let (_, mut tunnel) = guarded("a tunnel", websocket::open(&mut client))
            .await
            .unwrap();
        tunnel.write_all(b"abc").await.unwrap();
        let mut echoed = [0; 3];
        tunnel.read_exact(&mut echoed).await.unwrap();
        assert_eq!(destination.take(), [expected]);
    }
}

/// A probe has no client.
#[tokio::test]
async fn probes_are_connections_of_the_proxy() {
    let origin = Origin::echo();
    let destination = Announced::before(origin.addr()).await;
    let url = format!("http://{}/", destination.address);
    let probes =
        json!({ "HealthCheck": { "Active": { "Enabled": true, "Interval": "00:00:00.05" } } });
    let proxy = proxy(&url, &probes);
    eventually("a probe has come", async || {
        !destination.clients.lock().is_empty()
    })
    .await;
    eventually("it is healthy", async || {
        let health = &proxy.clusters()[0].destinations[0];
        format!("{health:?}").contains("Healthy")
    })
    .await;
    assert!(destination.take().iter().all(Option::is_none));
}
