//! Requests that ask for another protocol.

use super::*;
use crate::stream::OnUpgrade;

/// Behind the head, what follows would be the body and the tunnel's first bytes at once.
#[tokio::test(start_paused = true)]
async fn a_request_with_a_body_cannot_become_a_tunnel_however_it_comes() {
    local(async {
        let handler = Handler::new(|request| async move {
            let asks = request.extensions().get::<OnUpgrade>().is_some();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            text(&format!("{asks} {}", body.len()))
        });
        let mut client = Bench::new(Limits::default()).client(handler);
        let head = "POST / HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: foo\r\n";
        for (body, expected) in [
            (["content-length: 5\r\n\r\nhello", ""], "false 5"),
            (["content-length: 5\r\n\r\n", "hello"], "false 5"),
            (
                ["transfer-encoding: chunked\r\n\r\n0\r\n\r\n", ""],
                "false 0",
            ),
            (["content-length: 0\r\n\r\n", ""], "true 0"),
        ] {
            client.send(head).await;
            for part in body {
                client.send(part).await;
                tokio::time::sleep(secs(1)).await;
            }
            let response = client.read_response().await;
            assert!(response.ends_with(expected), "{body:?}: {response}");
        }
    })
    .await;
}
