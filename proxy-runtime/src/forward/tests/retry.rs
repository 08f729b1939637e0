//! A connection that broke before it took a byte.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use proxy_model::compiled::ClusterIndex;
use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tower_service::Service;

use crate::fixtures::snapshot;
use crate::upstream::{Protocols, Resetting, Wanted};
use crate::{Proxy, ProxyService};

/// A proxy for one destination, to which there may be one connection. It is idle, has carried a request, and breaks as it is
/// written to.
async fn with_a_broken_connection(url: &str, takes: usize) -> ProxyService {
    let snapshot = snapshot(&format!(
        r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}}}}}},
            "Clusters":{{"c":{{"HttpClient":{{"MaxConnectionsPerServer":1}},
                "Destinations":{{"d":{{"Address":"{url}"}}}}}}}}}}"#
    ));
    let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
    let service = proxy.service();
    let generation = service.shared().load_full();
    let state = generation.cluster(ClusterIndex(0));
    let wanted = Wanted {
        destination: &state.destinations()[0],
        upstream: generation.snapshot().clusters()[0].upstream(),
        client: state.client(),
        protocols: Protocols::Http1,
        fresh: false,
    };
    let mut lease = service.pool().acquire(wanted).await.unwrap();
    let connection = lease.raw().unwrap();
    assert!(!connection.is_reused());
    connection.io.replace(Resetting::after(takes, false));
    lease.give_back();
    service
}

async fn post(service: &mut ProxyService) -> (u16, Bytes) {
    let request = Request::post("http://h/").body(Full::new(Bytes::from("content")));
    let response = service.call(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let content = response.into_body().collect().await.unwrap().to_bytes();
    (status, content)
}

/// The place of the broken connection is needed for the new one.
#[tokio::test]
async fn a_request_that_has_not_left_is_sent_over_a_new_connection() {
    let origin = RawOrigin::script(|mut connection| async move {
        let Ok((_, content)) = connection.read_whole_request().await else {
            return Ok(());
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            content.len()
        );
        connection
            .write_all([head.as_bytes(), &content].concat())
            .await
    });
    let mut service = with_a_broken_connection(&origin.url(), 0).await;
    let answer = guarded("the second try", post(&mut service)).await;
    assert_eq!(answer, (200, Bytes::from("content")));
    assert_eq!(origin.traffic().requests(), 1);
}

#[tokio::test]
async fn a_request_of_which_a_byte_has_left_is_not_sent_again() {
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut service = with_a_broken_connection(&origin.url(), 1).await;
    let (status, _) = guarded("the answer", post(&mut service)).await;
    assert_eq!(status, 502);
    assert_eq!(origin.traffic().requests(), 0);
}
