//! `Server.Resolver`: names of destinations from DNS servers.

use std::net::SocketAddr;

use http::Response;
use serde_json::json;
use testkit::client::Connection;
use testkit::dns::{DnsAnswer, NameServer};
use testkit::origin::Origin;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, start};

const READY: &str = "a second Ctrl-C stops at once";

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut client = Connection::http1(address).await.expect("it listens");
    let response = client.get(path).await.expect("it answers");
    (response.status.as_u16(), response.text())
}

/// Starts a server that closes each connection, so that each request resolves the name.
fn closing(address: SocketAddr, name: &'static str) -> Origin {
    Origin::builder().bind(address).start(move |_| async move {
        let response = Response::builder().header("connection", "close");
        response.body(name.to_owned()).expect("it is valid")
    })
}

/// The program queries the configured servers, keeps their answers for the time to live, follows changes, and
/// continues with the last addresses if no server responds.
#[tokio::test]
async fn destinations_are_where_the_name_server_says() {
    let server = NameServer::start().await;
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let blue = closing(loopback, "blue");
    // The same port at another address.
    let other = SocketAddr::from(([127, 0, 0, 2], blue.addr().port()));
    let _green = closing(other, "green");
    let is_at = |origin: SocketAddr| DnsAnswer::Addresses(vec![origin.ip()], 1);
    server.set("web.example", is_at(blue.addr()));
    let config = json!({
        "Listeners": { "web": { "Address": "127.0.0.1:0" } },
        "Admin": { "Address": "127.0.0.1:0" },
        "Server": { "Workers": 1, "Resolver": { "Servers": [server.address().to_string()] } },
        "ReverseProxy": {
            "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "c": { "Destinations": {
                "d": { "Address": format!("http://web.example:{}/", blue.addr().port()) },
            } } },
        },
    });
    let file = ConfigFile::new(&config.to_string());
    let process = start(&["run", "--config", &file.argument()], READY).await;
    assert!(process.output().contains("hosts and DNS"));
    let address = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    assert_eq!(get(address, "/").await, (200, "blue".to_owned()));

    server.set("web.example", is_at(other));
    eventually("the name has moved", async || {
        get(address, "/").await == (200, "green".to_owned())
    })
    .await;

    server.set("web.example", DnsAnswer::Silence);
    eventually("the name does not resolve", async || {
        assert_eq!(get(address, "/").await, (200, "green".to_owned()));
        get(admin, "/api/v1/problems")
            .await
            .1
            .contains("its last addresses are used")
    })
    .await;
    assert_eq!(get(address, "/").await, (200, "green".to_owned()));
    assert!(
        get(admin, "/metrics")
            .await
            .1
            .contains("proxy_names_unresolved 1")
    );
}

/// Each address of a name is a destination, and the last ones stay while the name server fails.
#[tokio::test]
async fn a_name_may_become_several_destinations() {
    let server = NameServer::start().await;
    let origin = Origin::named("one");
    let addresses = ["127.0.0.1", "127.0.0.2"].map(|text| text.parse().unwrap());
    server.set("many.example", DnsAnswer::Addresses(addresses.to_vec(), 1));
    let file = ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "Server": {{
                "Resolver": {{ "Servers": ["{}"] }},
                "DnsDestinationResolver": {{ "AddressFamily": "InterNetwork", "RefreshPeriod": "1s" }}
            }},
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{
                    "d": {{ "Address": "http://many.example:{}/" }} }} }} }}
            }}
        }}"#,
        server.address(),
        origin.addr().port()
    ));
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let admin = address_after(&process.output(), "admin page on http://");
    let destinations = async || {
        let mut client = Connection::http1(admin).await.unwrap();
        client.get("/api/v1/clusters/c").await.unwrap().text()
    };
    let has_both = |shown: &str| shown.contains("d[127.0.0.1]") && shown.contains("d[127.0.0.2]");
    assert!(has_both(&destinations().await), "{}", destinations().await);

    server.set(
        "many.example",
        DnsAnswer::Addresses(addresses[..1].to_vec(), 1),
    );
    eventually("an address is gone", async || {
        !destinations().await.contains("127.0.0.2")
    })
    .await;
    server.set("many.example", DnsAnswer::Fails);
    process
        .wait_for_output("its last addresses continue to serve")
        .await;
    assert!(destinations().await.contains("d[127.0.0.1]"));
    let web = address_after(&process.output(), "listening on http://");
    let mut client = Connection::http1(web).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().text(), "one");
}
