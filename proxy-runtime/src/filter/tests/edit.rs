//! Reads and changes of heads by filters.

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode, Version};

use super::*;
use crate::head::HeaderMutations;
use crate::http1::{RequestInfo, parse_response};

const HEAD: &str = "GET /a/b?c=d HTTP/1.1\r\nHost: shop.example:81\r\nX-Twice: 1\r\nAccept: */*\r\n\
                    x-twice: 2\r\nConnection: x-hop\r\nX-Hop: h\r\n\r\n";

fn values(head: &RequestEdit<'_>, name: &str) -> Vec<String> {
    let values = head.header_values(name);
    values
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect()
}

fn names(head: &RequestEdit<'_>) -> Vec<String> {
    let fields = head.headers();
    fields
        .map(|(name, value)| format!("{}={}", name.to_lowercase(), String::from_utf8_lossy(value)))
        .collect()
}

#[test]
fn a_head_is_seen_as_it_was_received() {
    with_both(HEAD, |head| {
        assert_eq!(head.method(), "GET");
        assert_eq!((head.path(), head.query()), ("/a/b", Some("c=d")));
        assert_eq!(head.authority(), "shop.example:81");
        assert_eq!(head.header("HOST"), Some(&b"shop.example:81"[..]));
        assert_eq!(head.version(), Version::HTTP_11);
        assert_eq!(head.header("X-TWICE"), Some(&b"1"[..]));
        assert_eq!(values(head, "x-Twice"), ["1", "2"]);
        assert_eq!(head.header("none"), None);
        let mut seen = names(head);
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                "accept=*/*",
                "connection=x-hop",
                "x-hop=h",
                "x-twice=1",
                "x-twice=2"
            ]
        );
    });
}

#[test]
fn changes_are_seen_at_once() {
    with_both(HEAD, |head| {
        head.append("X-Twice", "3").unwrap();
        assert_eq!(values(head, "x-twice"), ["1", "2", "3"]);
        head.set("x-twice", "4").unwrap();
        assert_eq!(values(head, "X-Twice"), ["4"]);
        head.append("X-TWICE", 5).unwrap();
        assert_eq!(head.header("x-twice"), Some(&b"4"[..]));
        assert_eq!(values(head, "x-twice"), ["4", "5"]);
        head.remove("x-twice").unwrap();
        assert_eq!(head.header("x-twice"), None);
        head.append("x-twice", "6").unwrap();
        head.set(
            HeaderName::from_static("x-new"),
            HeaderValue::from_static("n"),
        )
        .unwrap();
        assert_eq!(values(head, "x-twice"), ["6"]);
        let mut seen = names(head);
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                "accept=*/*",
                "connection=x-hop",
                "x-hop=h",
                "x-new=n",
                "x-twice=6"
            ]
        );
    });
}

#[test]
fn path_query_and_host_are_changed() {
    with_both(HEAD, |head| {
        head.set_path("/x%2Fy").unwrap();
        assert_eq!((head.path(), head.query()), ("/x%2Fy", Some("c=d")));
        head.set_query(Some("e=f&g")).unwrap();
        assert_eq!(head.query(), Some("e=f&g"));
        head.set_query(None).unwrap();
        assert_eq!(head.query(), None);
        head.set_host("other.example").unwrap();
        assert_eq!(head.authority(), "other.example");
        assert_eq!(head.header("host"), Some(&b"other.example"[..]));
    });
}

#[test]
fn what_cannot_be_sent_is_rejected_and_changes_nothing() {
    with_both(HEAD, |head| {
        for name in [
            "Host",
            "connection",
            "Upgrade",
            "TE",
            "trailer",
            "Expect",
            "Content-Length",
            "transfer-encoding",
            "Keep-Alive",
            "Proxy-Authorization",
        ] {
            assert_eq!(head.set(name, "x"), Err(InvalidEdit::Protected), "{name}");
            assert_eq!(head.append(name, "x"), Err(InvalidEdit::Protected));
            assert_eq!(head.remove(name), Err(InvalidEdit::Protected));
        }
        for name in ["", "a b", "a:b", ":authority", "a\r\nb", "ä"] {
            assert_eq!(head.set(name, "x"), Err(InvalidEdit::Name), "{name:?}");
        }
        for value in ["a\r\nX-Injected: 1", "a\0", "a\nb"] {
            assert_eq!(head.set("x-a", value), Err(InvalidEdit::Value));
        }
        for path in ["", "a", "*", "/a b", "/a?b", "/a#b", "/a\r\n", "http://h/"] {
            assert_eq!(head.set_path(path), Err(InvalidEdit::Path), "{path:?}");
        }
        for query in ["a b", "a#b", "a\r\n"] {
            assert_eq!(head.set_query(Some(query)), Err(InvalidEdit::Query));
        }
        for host in ["", "a b", "a/b", "user@host", "a\r\n", ":80"] {
            assert_eq!(head.set_host(host), Err(InvalidEdit::Host), "{host:?}");
        }
        assert!(head.header("x-a").is_none());
        assert_eq!((head.path(), head.query()), ("/a/b", Some("c=d")));
        assert_eq!(head.authority(), "shop.example:81");
    });
}

#[test]
fn white_space_around_a_value_is_no_part_of_it() {
    with_both(HEAD, |head| {
        head.set("x-a", " \tb c\t ").unwrap();
        assert_eq!(head.header("x-a"), Some(&b"b c"[..]));
    });
}

#[test]
fn nothing_changed_is_nothing_held() {
    let received = Received::new(HEAD);
    let mut edits = HeaderMutations::default();
    let head = received.edit(&mut edits);
    assert!(head.headers().count() == 5 && head.header("accept").is_some());
    assert!(edits.is_empty() && edits.operations().next().is_none());

    received.edit(&mut edits).set("x-a", "b").unwrap();
    received.edit(&mut edits).set_path("/x").unwrap();
    assert!(!edits.is_empty());
    edits.clear();
    assert!(edits.is_empty(), "ready for the next head");
}

#[test]
fn responses_are_seen_and_changed_alike() {
    let buffer =
        b"HTTP/1.1 404 Not Found\r\nSet-Cookie: a\r\nset-cookie: b\r\nContent-Length: 0\r\n\r\n";
    let mut table = HeadTable::new();
    let parsed = parse_response(
        buffer,
        RequestInfo::default(),
        &HeadLimits::default(),
        &mut table,
    );
    assert!(matches!(parsed, Ok(Status::Complete(_))));
    let mut headers = HeaderMap::new();
    headers.append("set-cookie", HeaderValue::from_static("a"));
    headers.append("set-cookie", HeaderValue::from_static("b"));
    headers.append("content-length", HeaderValue::from_static("0"));

    let test = |head: &mut ResponseEdit<'_>| {
        assert_eq!(head.status(), StatusCode::NOT_FOUND);
        assert_eq!(head.header("SET-COOKIE"), Some(&b"a"[..]));
        assert_eq!(head.remove("content-length"), Err(InvalidEdit::Protected));
        head.append("Set-Cookie", "c").unwrap();
        let cookies: Vec<_> = head.header_values("set-cookie").collect();
        assert_eq!(cookies, [&b"a"[..], b"b", b"c"]);
        head.remove("set-cookie").unwrap();
        head.set("X-A", "1").unwrap();
        let seen: Vec<_> = head
            .headers()
            .map(|(name, _)| name.to_lowercase())
            .collect();
        assert_eq!(seen, ["content-length", "x-a"]);
    };
    let status = StatusCode::NOT_FOUND;
    for received in [
        ReceivedResponse::of_http(status, &headers),
        ReceivedResponse::of_raw(status, buffer, &table),
    ] {
        let (edits, work) = (
            &mut HeaderMutations::default(),
            &mut ResponseWork::default(),
        );
        test(&mut received.edit(edits, work));
    }
}
