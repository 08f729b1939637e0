//! cargo run --package examples --example token
//!
//! A transform that waits: it exchanges the client's key for a token of another service, and tells in a trailer whose
//! key it was.

use std::sync::Arc;

use examples::{Failure, Started, send_request, start_service, wait_unless_once};
use http::{HeaderValue, Request, StatusCode};
use proxy_model::config::TransformConfig;
use proxy_runtime::Proxy;
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit, ResponseEdit};

/// Asks for the token of a key. A program of yours calls a service here.
async fn token_of(key: String) -> Result<HeaderValue, Failure> {
    tokio::task::yield_now().await;
    match key.as_str() {
        "ann" => Ok(HeaderValue::from_static("Bearer 7f3a")),
        _ => Err(format!("no token for `{key}`").into()),
    }
}

/// `{ "Token": "x-api-key" }` forwards a token in place of the key in this header.
struct Token(String);

impl Filter for Token {
    fn on_request(&self, head: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        let name = self.0.clone();
        let key = head.header(&name).unwrap_or_default();
        let token = token_of(String::from_utf8_lossy(key).into_owned());
        Flow::wait(async move {
            let token = token.await?;
            Ok(move |head: &mut RequestEdit<'_>| {
                // Both fail only for protected headers.
                let _ = head.set("authorization", token);
                let _ = head.remove(&name);
                Flow::Continue
            })
        })
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        head.change_trailers(|trailers| {
            trailers.insert("x-checked", HeaderValue::from_static("by token"));
        });
    }
}

fn token(entry: &TransformConfig) -> Result<Arc<dyn Filter>, String> {
    let header = entry.get("Token").ok_or("write it as `Token`")?;
    Ok(Arc::new(Token(header.clone())))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let service = start_service("orders").await?;
    let config = format!(
        r#"{{
            "Routes": {{ "orders": {{
                "ClusterId": "orders", "Match": {{ "Path": "/{{**rest}}" }},
                "Transforms": [ {{ "Token": "x-api-key" }} ]
            }} }},
            "Clusters": {{ "orders": {{ "Destinations": {{ "1": {{ "Address": "{service}" }} }} }} }}
        }}"#
    );
    let started = Started::new(Proxy::builder().transform("Token", token), &config)?;
    for (key, expected) in [
        ("ann", StatusCode::OK),
        ("eve", StatusCode::INTERNAL_SERVER_ERROR),
    ] {
        let request = Request::get("/orders/17").header("x-api-key", key);
        let answer = send_request(started.address, request).await?;
        println!("{key}: {} {}", answer.status, answer.text.trim());
        assert_eq!(answer.status, expected);
    }
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
