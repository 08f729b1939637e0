//! A name server that is lost and returns. The last addresses of names serve meanwhile.

use std::net::SocketAddr;
use std::time::Instant;

use http::Response;
use serde_json::json;
use testkit::dns::{DnsAnswer, NameServer};
use testkit::origin::Origin;
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, start};
use crate::faults::{READY, Requests, get};

/// Seconds for which an address is known.
const TIME_TO_LIVE: u32 = 1;

async fn is_stale(admin: SocketAddr) -> bool {
    get(admin, "/api/v1/problems")
        .await
        .contains("its last addresses are used")
}

/// The destination closes each connection, so that each request needs the address.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_server_that_is_lost_and_returns_fails_no_request() {
    for fault in [DnsAnswer::Silence, DnsAnswer::Fails] {
        let what = format!("{fault:?}");
        let server = NameServer::start().await;
        let origin = Origin::builder().start(move |_| async move {
            let response = Response::builder().header("connection", "close");
            response.body("there".to_owned()).expect("it is valid")
        });
        let there = || DnsAnswer::Addresses(vec![origin.addr().ip()], TIME_TO_LIVE);
        server.set("web.example", there());
        let config = json!({
            "Listeners": { "web": { "Address": "127.0.0.1:0" } },
            "Admin": { "Address": "127.0.0.1:0" },
            "Server": { "Resolver": { "Servers": [server.address().to_string()] } },
            "ReverseProxy": {
                "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
                "Clusters": { "c": { "Destinations": {
                    "d": { "Address": format!("http://web.example:{}/", origin.addr().port()) },
                } } },
            },
        });
        let file = ConfigFile::new(&config.to_string());
        let process = start(&["run", "--config", &file.argument()], READY).await;
        let proxy = address_after(&process.output(), "listening on http://");
        let admin = address_after(&process.output(), "admin page on http://");
        let requests = Requests::start(proxy).await;
        server.set("web.example", fault);
        eventually(format!("{what}: the name does not resolve"), async || {
            is_stale(admin).await
        })
        .await;
        requests.go_on(&what).await;
        assert!(
            is_stale(admin).await,
            "{what}: the fault lasted as long as the requests"
        );
        server.set("web.example", there());
        let begin = Instant::now();
        eventually(format!("{what}: the name resolves"), async || {
            !is_stale(admin).await
        })
        .await;
        println!("{what}: known again after {:?}", begin.elapsed());
        requests.go_on("the name server is back").await;
        requests.end().await;
    }
}
