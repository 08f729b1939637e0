//! The time that a request waits for a connection.

use std::time::Duration;

use testkit::raw::RawOrigin;
use tokio::io::{AsyncWriteExt, duplex};
use tokio::time::{Instant, pause, sleep};

use super::scene::{ACTIVITY_TIMEOUT, connected, local, read_to, serve};

/// A destination cannot be silent before it is asked.
#[tokio::test]
async fn is_not_counted_as_the_destinations_silence() {
    local(async {
        let origin = RawOrigin::script(|mut connection| async move { connection.hold().await });
        let (mut destination, transport) = duplex(64 * 1024);
        let (service, lease) = connected(&origin.url(), transport).await;
        // From here on all is in memory.
        pause();
        let mut client = serve(service, 64 * 1024);
        let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        client.write_all(request).await.unwrap();
        sleep(Duration::from_secs(ACTIVITY_TIMEOUT + 2)).await;
        lease.give_back();
        read_to(&mut destination, "\r\n\r\n").await;
        sleep(Duration::from_secs(ACTIVITY_TIMEOUT - 1)).await;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        destination.write_all(answer).await.unwrap();
        let head = read_to(&mut client, "\r\n\r\nok").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");

        // What counts is the silence after that.
        let asked = Instant::now();
        client.write_all(request).await.unwrap();
        read_to(&mut destination, "\r\n\r\n").await;
        let head = read_to(&mut client, "\r\n\r\n").await;
        assert!(
            head.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"),
            "{head}"
        );
        let waited = asked.elapsed().as_secs();
        assert!(
            (ACTIVITY_TIMEOUT..=ACTIVITY_TIMEOUT + 1).contains(&waited),
            "{waited} s"
        );
    })
    .await;
}
