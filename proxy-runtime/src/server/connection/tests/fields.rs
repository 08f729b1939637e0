//! The fields of responses.

use super::*;

/// Answers with these fields and without a body.
async fn head_with(request: &str, code: u16, fields: &'static [(&str, &str)]) -> String {
    let handler = Handler::new(move |_| async move {
        let mut response = status(code);
        for (name, value) in fields {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().append(name, value.parse().unwrap());
        }
        response
    });
    let mut client = Bench::new(Limits::default()).client(handler);
    client
        .send(format!("{request} / HTTP/1.1\r\nhost: t\r\n\r\n"))
        .await;
    let mut response = vec![0; 4096];
    let read = client.stream.read(&mut response).await.unwrap();
    String::from_utf8(response[..read].to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_length_without_a_body_is_one_number_or_none() {
    local(async {
        for (request, status) in [("HEAD", 200), ("GET", 304)] {
            for (fields, expected) in [
                (
                    &[("content-length", "5")][..],
                    &["content-length: 5\r\n"][..],
                ),
                (
                    &[("content-length", "5"), ("content-length", "5")],
                    &["content-length: 5\r\n"],
                ),
                (&[("content-length", "5"), ("content-length", "6")], &[]),
                (&[("content-length", "+5")], &[]),
                (&[("content-length", "5, 5")], &[]),
                (&[("content-length", "many")], &[]),
            ] {
                let head = head_with(request, status, fields).await;
                let said: Vec<_> = head
                    .split_inclusive('\n')
                    .filter(|line| line.starts_with("content-length"))
                    .collect();
                assert_eq!(said, expected, "{request} {fields:?}");
            }
        }
    })
    .await;
}

/// RFC 9110 section 7.6.1: they are about the connection that the service got them over, and not about ours.
#[tokio::test(start_paused = true)]
async fn fields_of_another_connection_are_left_out() {
    local(async {
        let fields = &[
            ("connection", "X-Hop, keep-alive"),
            ("connection", "other"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("x-hop", "1"),
            ("other", "2"),
            ("x-end", "3"),
        ];
        let head = head_with("GET", 200, fields).await;
        assert!(head.contains("\r\nx-end: 3\r\n"), "{head}");
        for name in [
            "connection:",
            "keep-alive:",
            "proxy-connection:",
            "x-hop:",
            "other:",
        ] {
            assert!(!head.contains(&format!("\r\n{name}")), "{name} in {head}");
        }
    })
    .await;
}
