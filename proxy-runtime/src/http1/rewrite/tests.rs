//! Heads as they are sent on.

use proptest::prelude::*;

use super::*;
use crate::http1::{
    ChunkTracker, ClassSet, FieldClass, Framing, HeadLimits, HeadTable, Method, RawRequest,
    RequestInfo, Status, parse_request, parse_response,
};

#[track_caller]
fn parsed(bytes: &[u8]) -> (RawRequest, HeadTable) {
    let mut table = HeadTable::new();
    match parse_request(bytes, &HeadLimits::default(), &mut table) {
        Ok(Status::Complete(request)) => (request, table),
        other => panic!("{other:?}: {}", bytes.escape_ascii()),
    }
}

#[track_caller]
fn sent(bytes: &str, rewrite: &RequestRewrite<'_>) -> String {
    let (request, table) = parsed(bytes.as_bytes());
    let mut out = b"before".to_vec();
    write_request(bytes.as_bytes(), &request, &table, rewrite, &mut out);
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix("before").unwrap().to_owned()
}

fn answered(
    asked: RequestInfo,
    bytes: &str,
    change: impl FnOnce(&mut ResponseRewrite<'_>),
) -> String {
    let mut table = HeadTable::new();
    let read = parse_response(bytes.as_bytes(), asked, &HeadLimits::default(), &mut table);
    let Ok(Status::Complete(response)) = read else {
        panic!("{read:?}: {bytes}");
    };
    let mut rewrite = ResponseRewrite::new(&response);
    change(&mut rewrite);
    let mut out = Vec::new();
    write_response(bytes.as_bytes(), &response, &table, &rewrite, &mut out);
    String::from_utf8(out).unwrap()
}

fn name(name: &str) -> FieldName {
    FieldName::new(name).unwrap()
}

fn value(value: &str) -> FieldValue<'_> {
    FieldValue::new(value.as_bytes()).unwrap()
}

const GET: &str =
    "GET /a?b HTTP/1.1\r\nHost: t.example\r\nX-A: 1\r\nAccept: */*\r\nx-a:2  \r\n\r\nbody";

fn changed(operations: &[FieldOperation<'_>]) -> String {
    let rewrite = RequestRewrite {
        operations,
        ..RequestRewrite::default()
    };
    sent(GET, &rewrite)
}

const LINE: &str = "GET /a?b HTTP/1.1\r\nHost: t.example\r\n";

#[test]
fn what_is_not_changed_stays_as_it_came() {
    let out = sent(GET, &RequestRewrite::default());
    assert_eq!(
        out,
        format!("{LINE}X-A: 1\r\nAccept: */*\r\nx-a:2  \r\n\r\n")
    );
    let only_host = sent(
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        &RequestRewrite::default(),
    );
    assert_eq!(only_host, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
}

#[test]
fn m01_m19_what_concerns_the_connection_is_left_out() {
    let bytes = "POST / HTTP/1.1\r\nConnection: X-Hop, keep-alive\r\nHost: t.example\r\nKeep-Alive: 5\r\nX-Stays: 1\r\n\
        TE: trailers\r\nProxy-Connection: a\r\nX-Hop: 2\r\nUpgrade: h2c\r\nTransfer-Encoding: Chunked\r\nX-Too: 3\r\n\r\n";
    assert_eq!(
        sent(bytes, &RequestRewrite::default()),
        "POST / HTTP/1.1\r\nHost: t.example\r\nX-Stays: 1\r\nX-Too: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let rewrite = RequestRewrite {
        accepts_trailers: true,
        ..RequestRewrite::default()
    };
    assert_eq!(
        sent(
            "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers, gzip\r\n\r\n",
            &rewrite
        ),
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: TE\r\nTE: trailers\r\n\r\n"
    );
    let rewrite = RequestRewrite {
        upgrade: Some(value("websocket")),
        ..RequestRewrite::default()
    };
    assert_eq!(
        sent(
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nupgrade: websocket\r\nA: b\r\n\r\n",
            &rewrite
        ),
        "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
}

#[test]
fn targets_go_out_in_origin_form() {
    for (line, expected) in [
        (
            "GET http://o.example:81/a?b HTTP/1.1",
            "GET /a?b HTTP/1.1\r\nHost: o.example:81",
        ),
        (
            "GET http://o.example HTTP/1.0",
            "GET / HTTP/1.1\r\nHost: o.example",
        ),
        (
            "GET http://o.example?b HTTP/1.1",
            "GET /?b HTTP/1.1\r\nHost: o.example",
        ),
        (
            "OPTIONS * HTTP/1.1",
            "OPTIONS * HTTP/1.1\r\nHost: t.example",
        ),
        (
            "OPTIONS http://o.example HTTP/1.1",
            "OPTIONS * HTTP/1.1\r\nHost: o.example",
        ),
        ("\r\nGET /a HTTP/1.0", "GET /a HTTP/1.1\r\nHost: t.example"),
    ] {
        let out = sent(
            &format!("{line}\r\nHost: t.example\r\n\r\n"),
            &RequestRewrite::default(),
        );
        assert_eq!(out, format!("{expected}\r\n\r\n"), "{line}");
    }
}

#[test]
fn the_request_line_can_be_another_one() {
    let rewrite = RequestRewrite {
        method: OutgoingMethod::new("PUT"),
        target: OutgoingTarget::new(b"/c/d", Some(b"e=f")),
        host: Some(value("10.0.0.1:8080")),
        ..RequestRewrite::default()
    };
    assert_eq!(OutgoingMethod::new("P UT"), None);
    assert_eq!(OutgoingMethod::new(""), None);
    let out = sent(GET, &rewrite);
    assert!(
        out.starts_with("PUT /c/d?e=f HTTP/1.1\r\nHost: 10.0.0.1:8080\r\nX-A: 1\r\n"),
        "{out}"
    );
    for (path, query) in [
        (&b"a"[..], None),
        (b"", None),
        (b"/a b", None),
        (b"/a\r\nX: y", None),
        (b"/a?b", None),
        (b"/a", Some(&b"b#c"[..])),
        (b"/a", Some(b"b c")),
        (b"/\xe9", None),
        (b"*", Some(b"")),
    ] {
        assert_eq!(OutgoingTarget::new(path, query), None);
    }
}

#[test]
fn operations_are_made_in_order() {
    use FieldOperation::{Append, Remove, Set};
    let (a, other) = (name("x-A"), name("X-Other"));
    let (three, four) = (value("3"), value("4"));
    let accept = "Accept: */*\r\n";
    let both = format!("{LINE}X-A: 1\r\n{accept}x-a:2  \r\n");
    let neither = format!("{LINE}{accept}");
    assert_eq!(changed(&[Remove(&a)]), format!("{neither}\r\n"));
    assert_eq!(changed(&[Remove(&other)]), format!("{both}\r\n"));
    assert_eq!(
        changed(&[Set(&a, three)]),
        format!("{neither}x-A: 3\r\n\r\n")
    );
    assert_eq!(
        changed(&[Append(&a, three)]),
        format!("{both}x-A: 3\r\n\r\n")
    );
    let set_twice = [Set(&a, three), Set(&a, four)];
    assert_eq!(changed(&set_twice), format!("{neither}x-A: 4\r\n\r\n"));
    let set_append = [Set(&a, three), Append(&a, four)];
    assert_eq!(
        changed(&set_append),
        format!("{neither}x-A: 3\r\nx-A: 4\r\n\r\n")
    );
    let append_remove = [Append(&a, three), Set(&other, four), Remove(&a)];
    assert_eq!(
        changed(&append_remove),
        format!("{neither}X-Other: 4\r\n\r\n")
    );
}

#[test]
fn connections_and_bodies_are_not_for_routes_to_change() {
    use FieldOperation::{Append, Remove, Set};
    let given = value("9");
    let bytes = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nX: y\r\n\r\n";
    for protected in [
        "Host",
        "connection",
        "Upgrade",
        "TE",
        "Content-Length",
        "Transfer-Encoding",
    ] {
        let protected = name(protected);
        for operation in [
            Remove(&protected),
            Set(&protected, given),
            Append(&protected, given),
        ] {
            let rewrite = RequestRewrite {
                operations: &[operation],
                ..RequestRewrite::default()
            };
            assert_eq!(sent(bytes, &rewrite), bytes);
        }
    }
}

#[test]
fn forwarded_fields_are_set_appended_removed_or_left() {
    use FieldOperation::{Append, Remove, Set};
    let bytes =
        "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Port: 1\r\n\r\n";
    let (of, port) = (name("X-Forwarded-For"), name("X-Forwarded-Prefix"));
    let client = value("10.1.2.3");
    let start = "GET / HTTP/1.1\r\nHost: h\r\n";
    let spoofed = "X-Forwarded-For: 6.6.6.6\r\n";
    let rest = "X-Forwarded-Port: 1\r\n";
    let ours = "X-Forwarded-For: 10.1.2.3\r\n";
    for (operations, expected) in [
        (vec![Set(&of, client)], format!("{start}{rest}{ours}\r\n")),
        (
            vec![Append(&of, client)],
            format!("{start}{spoofed}{rest}{ours}\r\n"),
        ),
        (
            vec![Remove(&of), Remove(&port)],
            format!("{start}{rest}\r\n"),
        ),
        (vec![], format!("{start}{spoofed}{rest}\r\n")),
    ] {
        let rewrite = RequestRewrite {
            operations: &operations,
            ..RequestRewrite::default()
        };
        assert_eq!(sent(bytes, &rewrite), expected);
    }
}

#[test]
fn what_is_copied_can_be_chosen() {
    let bytes = "POST / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nContent-Length: 4\r\nExpect: 100-continue\r\nC: 3\r\n\r\n";
    let names = [name("b"), name("Connection"), name("c")];
    for (copied, expected) in [
        (Copied::None, "Content-Length: 4\r\n\r\n"),
        (
            Copied::Only(&names),
            "B: 2\r\nContent-Length: 4\r\nC: 3\r\n\r\n",
        ),
        (
            Copied::All,
            "A: 1\r\nB: 2\r\nContent-Length: 4\r\nC: 3\r\n\r\n",
        ),
    ] {
        let rewrite = RequestRewrite {
            copied,
            dropped: ClassSet::EMPTY.with(FieldClass::Expect),
            ..RequestRewrite::default()
        };
        assert_eq!(
            sent(bytes, &rewrite),
            format!("POST / HTTP/1.1\r\nHost: h\r\n{expected}")
        );
    }
}

#[test]
fn lengths_are_written_as_numbers() {
    let out = sent(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0010\r\nA: b\r\n\r\n",
        &RequestRewrite::default(),
    );
    assert_eq!(
        out,
        "POST / HTTP/1.1\r\nHost: h\r\nA: b\r\nContent-Length: 10\r\n\r\n"
    );
    let out = answered(
        RequestInfo::default(),
        "HTTP/1.1 200 OK\r\nContent-Length: 00\r\n\r\n",
        |_| (),
    );
    assert_eq!(out, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn responses_lose_what_concerns_the_connection() {
    let head = RequestInfo {
        method: Method::Head,
        ..RequestInfo::default()
    };
    let get = RequestInfo::default();
    for (id, asked, bytes, expected) in [
        (
            "res-hop",
            get,
            "200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 5",
            "200 OK\r\nContent-Length: 5",
        ),
        (
            "res-te",
            get,
            "200 OK\r\nA: b\r\ntransfer-encoding: CHUNKED\r\nC: d",
            "200 OK\r\nA: b\r\nC: d\r\nTransfer-Encoding: chunked",
        ),
        (
            "res-b204",
            get,
            "204 No Content\r\nContent-Length: 5\r\nA: b",
            "204 No Content\r\nA: b",
        ),
        (
            "res-304",
            get,
            "304 Not Modified\r\nContent-Length: 5",
            "304 Not Modified\r\nContent-Length: 5",
        ),
        (
            "res-head",
            head,
            "200 OK\r\nContent-Length: 5",
            "200 OK\r\nContent-Length: 5",
        ),
        ("res-plain", get, "404 Not  Found ", "404 Not  Found "),
        ("res-nothing", get, "200", "200 "),
    ] {
        let out = answered(asked, &format!("HTTP/1.1 {bytes}\r\n\r\nbody"), |_| ());
        assert_eq!(out, format!("HTTP/1.1 {expected}\r\n\r\n"), "{id}");
    }
    let old = answered(get, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", |_| ());
    assert_eq!(old, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
}

#[test]
fn responses_say_what_becomes_of_the_connection() {
    let asked = RequestInfo {
        upgrade: true,
        ..RequestInfo::default()
    };
    let plain = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nA: b\r\n\r\n";
    for (connection, line) in [
        (OutgoingConnection::Default, ""),
        (OutgoingConnection::Close, "Connection: close\r\n"),
        (OutgoingConnection::KeepAlive, "Connection: keep-alive\r\n"),
    ] {
        let out = answered(asked, plain, |rewrite| rewrite.connection = connection);
        assert_eq!(out, format!("HTTP/1.1 200 OK\r\nA: b\r\n{line}\r\n"));
    }
    let switch = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nA: b\r\n\r\n";
    let out = answered(asked, switch, |rewrite| {
        rewrite.connection = OutgoingConnection::Upgrade(value("websocket"));
    });
    assert_eq!(
        out,
        "HTTP/1.1 101 Switching Protocols\r\nA: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    // A body that ends with the connection goes on in chunks.
    let out = answered(asked, "HTTP/1.0 200 OK\r\nA: b\r\n\r\n", |rewrite| {
        rewrite.chunked = true
    });
    assert_eq!(
        out,
        "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
}

#[test]
fn trailers_say_nothing_about_the_message() {
    let bytes = b"0\r\ngrpc-status: 0\r\nAuthorization: x\r\nX-Forwarded-For: 6.6.6.6\r\nX-T: a\r\nConnection: close\r\nX_Forwarded_For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nDate: now\r\n\r\nrest";
    let mut table = HeadTable::new();
    let mut tracker = ChunkTracker::new();
    let progress = tracker
        .track(bytes, &HeadLimits::default(), &mut table)
        .unwrap();
    assert!(progress.ended);
    let section = &bytes[progress.consumed..progress.consumed + progress.trailers];
    let mut out = Vec::new();
    write_trailers(section, &table, &mut out);
    assert_eq!(out, b"grpc-status: 0\r\nX-T: a\r\nDate: now\r\n\r\n");
}

#[test]
fn nothing_can_be_written_that_ends_a_line() {
    for bytes in [&b"a\rb"[..], b"a\nb", b"a\r\nX: y", b"a\0b", b"\x7f"] {
        assert_eq!(FieldValue::new(bytes), None);
    }
    assert_eq!(
        FieldValue::new(b" a\t\xe9 ").unwrap().as_bytes(),
        b"a\t\xe9"
    );
    const HTTP: FieldValue<'static> = FieldValue::from_static("http");
    assert_eq!(Some(HTTP), FieldValue::new(b" http"));
    assert!(std::panic::catch_unwind(|| FieldValue::from_static("a\r\nb")).is_err());
    assert!(std::panic::catch_unwind(|| FieldValue::from_static("a ")).is_err());
    for text in ["", "a b", "a:", "a\r\n", "\u{e9}"] {
        assert_eq!(FieldName::new(text), None);
    }
}

fn fields() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "X-A: 1",
        "x-b:2",
        "Accept: */*  ",
        "Cookie: a=b",
        "Connection: x-a",
        "Connection: close, X-B",
        "Keep-Alive: 5",
        "TE: trailers",
        "Upgrade: h2c",
        "X-Forwarded-For: 1.2.3.4",
        "Content-Length: 007",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "X:",
        "Trailer: x",
    ]);
    prop::collection::vec(field, 0..8)
        .prop_map(|fields| fields.iter().map(|field| format!("{field}\r\n")).collect())
}

proptest! {
    /// A written request is valid, has the framing of its source and no field about the connection, and is unchanged
    /// by another rewrite.
    #[test]
    fn what_is_written_is_a_request(fields in fields(), line in prop::sample::select(vec![
        "GET /a?b HTTP/1.1", "POST http://o.example/x HTTP/1.1", "OPTIONS * HTTP/1.1", "PUT / HTTP/1.0",
    ])) {
        let bytes = format!("{line}\r\n{fields}Host: t.example\r\n\r\n").into_bytes();
        let mut table = HeadTable::new();
        let Ok(Status::Complete(request)) = parse_request(&bytes, &HeadLimits::default(), &mut table) else {
            return Ok(());
        };
        let x_c = name("X-C");
        let rewrite = RequestRewrite {
            operations: &[FieldOperation::Set(&x_c, value("3"))],
            ..RequestRewrite::default()
        };
        let mut out = Vec::new();
        write_request(&bytes, &request, &table, &rewrite, &mut out);
        let (again, again_table) = parsed(&out);
        prop_assert_eq!(again.framing(), request.framing());
        prop_assert_eq!(again.authority().get(&out), request.authority().get(&bytes));
        prop_assert_eq!(again.method(), request.method());
        prop_assert!(again.is_persistent());
        let allowed = ClassSet::CONNECTION.intersection(again_table.classes());
        let expected = match request.framing() {
            Framing::Chunked => ClassSet::EMPTY.with(FieldClass::Host).with(FieldClass::TransferEncoding),
            _ => ClassSet::EMPTY.with(FieldClass::Host),
        };
        prop_assert_eq!(allowed, expected);
        let mut twice = Vec::new();
        write_request(&out, &again, &again_table, &rewrite, &mut twice);
        let sorted = |bytes: &[u8]| {
            let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(&twice), sorted(&out));
    }

    /// The destination gets the same `Host`, whatever its spelling and position.
    #[test]
    fn what_is_written_begins_with_one_host(
        fields in fields(),
        line in prop::sample::select(vec!["GET /a?b HTTP/1.1", "\r\nPUT / HTTP/1.1", "PUT / HTTP/1.0"]),
        spelling in prop::sample::select(vec!["Host: t.example", "host: t.example", "Host:t.example", "Host: t.example \t"]),
        is_last: bool,
    ) {
        let head = |host: &str| match is_last {
            false => format!("{line}\r\n{host}\r\n{fields}\r\n"),
            true => format!("{line}\r\n{fields}{host}\r\n\r\n"),
        };
        let (plain, spelled) = (format!("{line}\r\nhost:t.example\r\n{fields}\r\n"), head(spelling));
        let mut table = HeadTable::new();
        if !matches!(parse_request(plain.as_bytes(), &HeadLimits::default(), &mut table), Ok(Status::Complete(_))) {
            return Ok(());
        }
        let a = name("A");
        let only = [name("X")];
        for copied in [Copied::All, Copied::None, Copied::Only(&only)] {
            let rewrite = RequestRewrite {
                copied,
                operations: &[FieldOperation::Set(&a, value("3"))],
                ..RequestRewrite::default()
            };
            let expected = sent(&plain, &rewrite);
            prop_assert!(expected.contains(" HTTP/1.1\r\nHost: t.example\r\n"), "{}", expected);
            prop_assert_eq!(sent(&spelled, &rewrite), expected);
        }
    }
}
