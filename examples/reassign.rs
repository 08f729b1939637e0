//! cargo run --package examples --example reassign
//!
//! A layer that assigns another cluster to some requests: those of beta testers go to the beta, on
//! the same route.

use std::task::{Context, Poll};

use examples::{Failure, Started, send_request, start_service, wait_unless_once};
use http::Request;
use proxy_model::ClusterId;
use proxy_runtime::Proxy;
use proxy_runtime::forward::RouteContext;
use proxy_runtime::layer::{ProxyRequestBody, RouteFuture, RouteService};
use tower::Service;
use tower::layer::layer_fn;

#[derive(Clone)]
struct BetaTesters(RouteService);

impl Service<Request<ProxyRequestBody>> for BetaTesters {
    type Response = <RouteService as Service<Request<ProxyRequestBody>>>::Response;
    type Error = <RouteService as Service<Request<ProxyRequestBody>>>::Error;
    type Future = RouteFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<ProxyRequestBody>>::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, mut request: Request<ProxyRequestBody>) -> RouteFuture {
        if request.headers().contains_key("x-beta")
            && let Some(context) = request.extensions_mut().get_mut::<RouteContext>()
        {
            // False if there is no such cluster now: then the route's own serves.
            context.assign_cluster(&ClusterId::from("beta"));
        }
        self.0.call(request)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (stable, beta) = (start_service("stable").await?, start_service("beta").await?);
    let config = format!(
        r#"{{
            "Routes": {{ "shop": {{
                "ClusterId": "stable", "Match": {{ "Path": "/{{**rest}}" }}, "Layers": ["BetaTesters"]
            }} }},
            "Clusters": {{
                "stable": {{ "Destinations": {{ "1": {{ "Address": "{stable}" }} }} }},
                "beta": {{ "Destinations": {{ "1": {{ "Address": "{beta}" }} }} }}
            }}
        }}"#
    );
    let builder = Proxy::builder().layer("BetaTesters", layer_fn(BetaTesters));
    let started = Started::new(builder, &config)?;
    let address = started.address;
    println!("curl http://{address}/x              # stable");
    println!("curl -H 'x-beta: 1' http://{address}/x   # beta");
    let others = send_request(address, Request::get("/x")).await?;
    let testers = send_request(address, Request::get("/x").header("x-beta", "1")).await?;
    print!("{}{}", others.text, testers.text);
    assert!(others.text.starts_with("stable") && testers.text.starts_with("beta"));
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
