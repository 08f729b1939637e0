//! cargo run --package examples --example transform
//!
//! A transform of your own for `Transforms` of routes, checked like the built-in ones, and a hook that
//! adds a filter to routes that name none.

use std::sync::Arc;

use examples::{Failure, Started, get, start_service, wait_unless_once};
use http::HeaderValue;
use proxy_model::compiled::Route;
use proxy_model::config::TransformConfig;
use proxy_runtime::Proxy;
use proxy_runtime::filter::{Filter, FilterContext, Flow, RequestEdit, ResponseEdit};

/// `{ "CacheFor": "60" }` lets clients keep responses for so many seconds.
struct CacheFor(HeaderValue);

impl Filter for CacheFor {
    fn on_request(&self, _: &mut RequestEdit<'_>, _: &FilterContext<'_>) -> Flow {
        Flow::Continue
    }

    fn on_response(&self, head: &mut ResponseEdit<'_>, _: &FilterContext<'_>) {
        // Setting a header fails only for protected ones.
        let _ = head.set("cache-control", self.0.clone());
    }
}

fn cache_for(entry: &TransformConfig) -> Result<Arc<dyn Filter>, String> {
    let written = entry.get("CacheFor").ok_or("write it as `CacheFor`")?;
    let seconds: u32 = written
        .parse()
        .map_err(|_| format!("`{written}` is no number of seconds"))?;
    let value = HeaderValue::try_from(format!("max-age={seconds}")).map_err(|e| e.to_string())?;
    Ok(Arc::new(CacheFor(value)))
}

/// Forbids to keep what is below `/private`, whatever its route says.
fn private(route: &Route) -> Vec<Arc<dyn Filter>> {
    let path = route.config().r#match.path.as_deref().unwrap_or_default();
    let is_private = path.starts_with("/private");
    let no_store =
        || -> Arc<dyn Filter> { Arc::new(CacheFor(HeaderValue::from_static("no-store"))) };
    is_private.then(no_store).into_iter().collect()
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let service = start_service("files").await?;
    let config = |seconds: &str| {
        format!(
            r#"{{
                "Routes": {{
                    "files": {{
                        "ClusterId": "files", "Match": {{ "Path": "/files/{{**rest}}" }},
                        "Transforms": [ {{ "CacheFor": "{seconds}" }} ]
                    }},
                    "private": {{ "ClusterId": "files", "Match": {{ "Path": "/private/{{**rest}}" }} }}
                }},
                "Clusters": {{ "files": {{ "Destinations": {{ "1": {{ "Address": "{service}" }} }} }} }}
            }}"#
        )
    };
    let builder = || {
        Proxy::builder()
            .transform("CacheFor", cache_for)
            .route_hook(private)
    };
    let wrong = Started::new(builder(), &config("soon")).map(drop);
    println!("{}", wrong.err().ok_or("it is wrong")?);
    let started = Started::new(builder(), &config("60"))?;
    for (path, expected) in [("/files/x", "max-age=60"), ("/private/x", "no-store")] {
        let answer = get(started.address, path).await?;
        println!("{path}: {:?}", answer.headers["cache-control"]);
        assert_eq!(answer.headers["cache-control"], expected);
    }
    wait_unless_once().await?;
    started.stop().await;
    Ok(())
}
