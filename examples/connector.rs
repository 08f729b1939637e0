//! cargo run --package examples --example connector
//!
//! Connections to destinations in a program's own way: to a Unix socket, which the host of the address names. Pools,
//! limits, health checks and retries stay those of the proxy.

use async_trait::async_trait;
use examples::{Failure, Started, get, start_service, wait_unless_once};
use proxy_runtime::Proxy;
use proxy_runtime::upstream::{ConnectTarget, Connected, DestinationConnector};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};

struct UnixSockets(std::path::PathBuf);

#[async_trait]
impl DestinationConnector for UnixSockets {
    async fn connect(
        &self,
        target: &ConnectTarget<'_>,
    ) -> Result<Connected, Box<dyn std::error::Error + Send + Sync>> {
        let name = format!("{}.sock", target.address.host());
        let stream = UnixStream::connect(self.0.join(name)).await?;
        // The socket has no TLS, which would negotiate the version.
        Ok(match target.may_use_http1 {
            true => Connected::http1(stream),
            false => Connected::http2(stream),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = std::env::temp_dir().join(format!("connector-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    // A service that listens at a Unix socket: here one that leads to a service with a port.
    let service = start_service("orders").await?;
    let port = service
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let listener = UnixListener::bind(directory.join("orders.sock"))?;
    let listening = tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let port = port.clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(port).await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    let config = r#"{
        "Routes": { "all": { "ClusterId": "orders", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "orders": {
            "HttpClient": { "Connector": "unix" },
            "Destinations": { "1": { "Address": "http://orders/" } }
        } }
    }"#;
    let builder = Proxy::builder().connector("unix", UnixSockets(directory.clone()));
    let started = Started::new(builder, config)?;
    let answer = get(started.address, "/").await?;
    assert!(answer.text.contains("orders"), "{}", answer.text);
    println!(
        "served by way of {}",
        directory.join("orders.sock").display()
    );
    wait_unless_once().await?;
    started.stop().await;
    listening.abort();
    std::fs::remove_dir_all(directory)?;
    Ok(())
}
