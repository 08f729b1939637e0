//! Requests that wait, for a connection or for their response.

use std::time::Duration;

use proxy_model::compiled::ClusterIndex;
use testkit::raw::RawOrigin;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::{Instant, pause, resume, sleep};

use super::scene::{ACTIVITY_TIMEOUT, connected, local, read_to, serve, serve_disguised};

/// A destination cannot be silent before it is asked.
#[tokio::test]
async fn the_time_for_a_connection_is_not_counted_as_the_destinations_silence() {
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
        lease.release(Instant::now());
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

/// Bytes before the end are the beginning of the next request, and do not hide the end.
#[tokio::test]
async fn a_client_that_leaves_is_noticed_behind_what_it_sent_meanwhile() {
    for serve in [serve, serve_disguised] {
        for waits_for_connection in [true, false] {
            local(async {
                let origin = RawOrigin::script(|mut conn| async move { conn.hold().await });
                let (mut destination, transport) = duplex(64 * 1024);
                let (service, lease) = connected(&origin.url(), transport).await;
                pause();
                let generation = service.shared().load_full();
                let state = generation.cluster(ClusterIndex(0));
                let in_flight = || state.destinations()[0].in_flight();
                let mut client = serve(service.clone(), 64 * 1024);
                let held = match waits_for_connection {
                    true => Some(lease),
                    false => {
                        lease.release(Instant::now());
                        None
                    }
                };
                for part in ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "G", "ET"] {
                    client.write_all(part.as_bytes()).await.unwrap();
                    sleep(Duration::from_secs(1)).await;
                    assert_eq!(in_flight(), 1);
                }
                drop(client);
                sleep(Duration::from_secs(1)).await;
                assert_eq!(in_flight(), 0, "{waits_for_connection}");
                if !waits_for_connection {
                    let mut asked = String::new();
                    destination.read_to_string(&mut asked).await.unwrap();
                    assert!(asked.ends_with("\r\n\r\n"), "{asked}");
                }
                drop(held);
                resume();
            })
            .await;
        }
    }
}
