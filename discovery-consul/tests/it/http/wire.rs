//! Tests of requests and responses, byte by byte.

use std::io::Write;
use std::time::Duration;

use discovery_consul::client::{ConsulClient, ConsulErrorKind, ConsulOptions, Query, Token};
use flate2::Compression;
use flate2::write::GzEncoder;
use testkit::raw::RawOrigin;
use testkit::time::guarded;

fn client(origin: &RawOrigin, options: ConsulOptions) -> ConsulClient {
    ConsulClient::new(options.with_address(origin.addr().to_string())).unwrap()
}

#[tokio::test]
async fn a_request_has_what_an_agent_needs_and_nothing_in_its_line_that_is_secret() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        let answer =
            b"HTTP/1.1 200 OK\r\nx-consul-index: 7\r\nContent-Length: 13\r\n\r\n{\"web\":[\"a\"]}";
        connection.write_all(answer).await?;
        Ok(())
    });
    let token = Token::new("b1gs33cr3t").unwrap();
    let client = client(&origin, ConsulOptions::default().with_token(token));
    let query = Query::new()
        .in_datacenter("sas")
        .blocking(5, Duration::from_secs(2));
    let answer = guarded("an answer", client.services(&query)).await.unwrap();
    assert_eq!((answer.value["web"].len(), answer.meta.index), (1, Some(7)));
    let sent = origin.recording(0).text().to_ascii_lowercase();
    let line = sent.lines().next().unwrap();
    assert_eq!(
        line,
        "get /v1/catalog/services?dc=sas&index=5&wait=2000ms http/1.1"
    );
    assert!(
        sent.contains("\r\nx-consul-token: b1gs33cr3t\r\n"),
        "{sent}"
    );
    assert!(sent.contains("\r\naccept-encoding: gzip\r\n"), "{sent}");
}

#[tokio::test]
async fn answers_are_bounded_whatever_they_announce() {
    for head in ["Content-Length: 1000000000", "Transfer-Encoding: chunked"] {
        let origin = RawOrigin::script(move |mut connection| async move {
            connection.read_request().await?;
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            connection.write_all(head.as_bytes()).await?;
            let chunk = format!("400\r\n{}\r\n", "x".repeat(0x400));
            for _ in 0..1000 {
                connection.write_all(chunk.as_bytes()).await?;
            }
            Ok(())
        });
        let client = client(
            &origin,
            ConsulOptions::default().with_max_body(10_000_usize),
        );
        let error = guarded("an error", client.services(&Query::new()))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ConsulErrorKind::Malformed, "{error}");
        assert!(
            error.to_string().contains("larger than 10000 bytes"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_what_is_no_agent_is_said() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        let answer =
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
        connection.write_all(answer).await?;
        Ok(())
    });
    let error = client(&origin, ConsulOptions::default())
        .services(&Query::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Malformed, "{error}");
    let origin = RawOrigin::script(|mut connection| async move {
        connection.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await?;
        Ok(())
    });
    let error = client(&origin, ConsulOptions::default())
        .services(&Query::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn a_connection_that_is_reset_and_one_that_is_rejected_are_unreachable() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        // So does an agent with too many connections from one address.
        connection.reset();
        Ok(())
    });
    let error = client(&origin, ConsulOptions::default())
        .services(&Query::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Unreachable, "{error}");
    let address = origin.addr().to_string();
    drop(origin);
    let client = ConsulClient::new(ConsulOptions::default().with_address(address)).unwrap();
    let error = guarded("an error", client.services(&Query::new()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn an_answer_that_never_ends_is_given_up_with_its_connection() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            .await?;
        // Until the client goes.
        let _ = connection.read_request().await;
        Ok(())
    });
    let options = ConsulOptions::default().with_request_timeout(Duration::from_millis(300));
    let client = client(&origin, options);
    let error = guarded("an error", client.services(&Query::new()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ConsulErrorKind::TimedOut, "{error}");
    let again = guarded("an error", client.services(&Query::new()))
        .await
        .unwrap_err();
    assert_eq!(again.kind(), ConsulErrorKind::TimedOut);
    // It came over a new connection.
    origin.traffic().wait_for_connections(2).await;
    origin.recording(1).wait_for("GET").await;
}

/// Agents compress responses on request. Unrequested encodings, or more data than expected, are rejected.
#[tokio::test]
async fn answers_may_be_compressed() {
    let answer = |encoding: &'static str, plain: &str| {
        let plain = plain.as_bytes();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        let body = match encoding {
            "identity" => plain.to_vec(),
            _ => encoder.finish().unwrap(),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nx-consul-index: 7\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head.into_bytes(), body].concat()
    };
    let large = format!("{{{}}}", " ".repeat(1_000_000));
    for (answer, expected) in [
        (answer("gzip", r#"{"web": ["a"]}"#), None),
        (answer("GZip", r#"{"web": ["a"]}"#), None),
        (answer("x-gzip", r#"{"web": ["a"]}"#), None),
        (answer("identity", r#"{"web": ["a"]}"#), None),
        (
            answer("br", r#"{"web": ["a"]}"#),
            Some(ConsulErrorKind::Unreachable),
        ),
        (answer("gzip", &large), Some(ConsulErrorKind::Malformed)),
    ] {
        let origin = RawOrigin::script(move |mut connection| {
            let answer = answer.clone();
            async move {
                connection.read_request().await?;
                connection.write_all(&answer).await?;
                Ok(())
            }
        });
        let options = ConsulOptions::default().with_max_body(100_000_usize);
        let client = client(&origin, options);
        let answered = guarded("an answer", client.services(&Query::new())).await;
        assert_eq!(answered.as_ref().err().map(|error| error.kind()), expected);
        if let Ok(answer) = answered {
            assert_eq!(answer.value["web"], ["a"]);
        }
    }
}
