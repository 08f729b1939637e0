//! The path that requests take: tests that compare the two paths must not compare one with itself.

use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::io::AsyncWriteExt;

use super::scene::{local, read_to, serve};
use crate::Proxy;
use crate::fixtures::snapshot;
pub(super) use crate::forward::exchange::lane::take as take_raw;

#[tokio::test]
async fn changes_of_all_kinds_are_made_in_the_raw_lane() {
    local(async {
        for (transforms, is_raw) in [
            (r#"{"ResponseTrailer":"X-T","Set":"1"}"#, true),
            (r#"{"ResponseTrailersCopy":"false"}"#, true),
            (r#"{"HttpMethodChange":"GET","Set":"POST"}"#, true),
            (r#"{"HttpMethodChange":"HEAD","Set":"GET"}"#, true),
            // The response has another shape, which the form of a service can have.
            (r#"{"HttpMethodChange":"GET","Set":"HEAD"}"#, true),
            (r#"{"RequestHeaderRouteValue":"Host","Set":"rest"}"#, true),
        ] {
            let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let snapshot = snapshot(&format!(
                r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"/{{**rest}}"}},"Transforms":[{transforms}]}}}},
                    "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"{}"}}}}}}}}}}"#,
                origin.url()
            ));
            let (proxy, _) = Proxy::builder().snapshot(snapshot).build().unwrap();
            let mut client = serve(proxy.service(), 64 * 1024);
            take_raw();
            let request = b"GET /named.example HTTP/1.1\r\nHost: h\r\n\r\n";
            client.write_all(request).await.unwrap();
            let head = guarded("the answer", read_to(&mut client, "\r\n\r\n")).await;
            assert!(head.starts_with("HTTP/1.1 200"), "{transforms}: {head}");
            assert_eq!(take_raw() > 0, is_raw, "{transforms}");
        }
    })
    .await;
}
