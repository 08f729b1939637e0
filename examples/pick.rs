//! cargo run --package examples --example pick
//!
//! A pick without a request: the proxy balances, and the program redirects clients to the destination,
//! which then sends large files by itself.

use examples::{Failure, Started, start_service, wait_unless_once};
use http::Request;
use proxy_runtime::Proxy;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (a, b) = (start_service("a").await?, start_service("b").await?);
    let config = format!(
        r#"{{
            "Routes": {{ "files": {{ "ClusterId": "files", "Match": {{ "Path": "/files/{{**rest}}" }} }} }},
            "Clusters": {{ "files": {{
                "LoadBalancingPolicy": "LeastRequests",
                "Destinations": {{ "a": {{ "Address": "{a}" }}, "b": {{ "Address": "{b}" }} }}
            }} }}
        }}"#
    );
    let started = Started::new(Proxy::builder(), &config)?;
    let (request, ()) = Request::get("/files/17").body(())?.into_parts();
    // It counts as a request in flight while it is held: for as long as the program knows of a download.
    let pick = || {
        started
            .proxy
            .pick(&request)
            .map_err(|status| format!("nowhere: {status}"))
    };
    let (first, second) = (pick()?, pick()?);
    for picked in [&first, &second] {
        println!("Location: {}files/17", picked.destination().address());
    }
    assert_eq!(first.destination().id().as_str(), "a");
    assert_eq!(
        second.destination().id().as_str(),
        "b",
        "`a` has one already"
    );
    let (unknown, ()) = Request::get("/other").body(())?.into_parts();
    println!("/other: {:?}", started.proxy.pick(&unknown).err());
    drop((first, second));
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
