//! A connection that was used before and breaks as it is written to.

use testkit::raw::RawOrigin;
use testkit::time::guarded;
use tokio::io::AsyncWriteExt;

use super::scene::{connected, local, read_to, serve};
use crate::upstream::Resetting;

/// TLS takes bytes before it knows whether it can send them: that it failed at the first does not tell that none has left.
#[tokio::test]
async fn a_request_is_sent_again_if_it_is_known_that_nothing_of_it_has_left() {
    let answers = [
        (Resetting::after(0, false), "HTTP/1.1 200 OK\r\n", 1),
        (
            Resetting::after(1, false),
            "HTTP/1.1 502 Bad Gateway\r\n",
            0,
        ),
        (Resetting::after(0, true), "HTTP/1.1 502 Bad Gateway\r\n", 0),
        (
            Resetting::after(0, true).stalling(2),
            "HTTP/1.1 502 Bad Gateway\r\n",
            0,
        ),
        (Resetting::after(1, true), "HTTP/1.1 502 Bad Gateway\r\n", 0),
    ];
    local(async {
        for (number, (transport, answer, sent)) in answers.into_iter().enumerate() {
            let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let (service, lease) = connected(&origin.url(), transport).await;
            lease.give_back();
            let mut client = serve(service, 64 * 1024);
            let request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
            client.write_all(request).await.unwrap();
            let head = guarded("the answer", read_to(&mut client, "\r\n\r\n")).await;
            assert!(head.starts_with(answer), "{number}: {head}");
            assert_eq!(origin.traffic().requests(), sent, "{number}");
        }
    })
    .await;
}
