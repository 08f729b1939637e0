//! cargo run --package examples --example tls_server --features tls
//!
//! A server with TLS. The certificate is created here, for `localhost` and one run; a program reads
//! its own with `Certificate::from_pem_files`, and replaces it in the store when it is renewed.

use std::sync::Arc;
use std::time::Duration;

use examples::{Failure, start_service, wait_unless_once};
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::Proxy;
use proxy_runtime::server::{Certificate, CertificateStore, Listener, Server, TlsServerConfig};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let service = start_service("orders").await?;
    let config = ProxyConfig::from_json(&format!(
        r#"{{
            "Routes": {{ "all": {{ "ClusterId": "orders", "Match": {{ "Path": "/{{**rest}}" }} }} }},
            "Clusters": {{ "orders": {{ "Destinations": {{ "1": {{ "Address": "{service}" }} }} }} }}
        }}"#
    ))?;
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default())?;
    let (proxy, driver) = Proxy::builder().snapshot(Arc::new(snapshot)).build()?;
    tokio::spawn(driver);

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let certificate = Certificate::from_pem(chain.as_bytes(), key.as_bytes(), &provider)?;
    // The server name of the client (SNI) selects one of several certificates.
    let store = CertificateStore::new([certificate])?;
    println!("for: {}", store.certificates()[0].names().join(", "));
    let tls = TlsServerConfig::new(provider, store)?;
    let server = Server::for_proxy(&proxy)
        .with_listener(Listener::https("127.0.0.1:0".parse()?, tls))
        .bind()?;
    let address = server.local_addrs()[0];
    let running = server.start()?;

    let port = address.port();
    println!("curl -k https://localhost:{port}/x   # -k: nobody vouches for this certificate");
    // A client without TLS gets no response.
    assert!(
        examples::send(address, http::Method::GET, "/x")
            .await
            .is_err()
    );
    wait_unless_once().await?;
    running.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
