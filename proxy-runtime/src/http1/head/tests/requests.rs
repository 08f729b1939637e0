//! Tests of RFC 9112 sections 3.2, 6 and 9; RFC 9110 sections 7 and 10.

use super::*;
use crate::http1::FieldClass;

const SMUGGLED: &str = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: t.example\r\n\r\n";

#[test]
fn section_3_2_targets_have_a_form() {
    use Rejection::{ConnectTarget, TargetAuthority, TargetForm as Form};
    for (id, bytes, rejection) in [
        ("u-noslash", "GET x/p HTTP/1.1", Form),
        ("u-authority", "GET t.example:80 HTTP/1.1", Form),
        ("u-star", "GET * HTTP/1.1", Form),
        ("u-star-path", "OPTIONS *a HTTP/1.1", Form),
        ("u-scheme", "GET ftp://t.example/ HTTP/1.1", Form),
        ("u-query", "GET ?a HTTP/1.1", Form),
        ("connect-path", "CONNECT /p HTTP/1.1", ConnectTarget),
        (
            "connect-no-port",
            "CONNECT t.example HTTP/1.1",
            ConnectTarget,
        ),
        (
            "connect-empty-port",
            "CONNECT t.example: HTTP/1.1",
            ConnectTarget,
        ),
        (
            "connect-v6-no-port",
            "CONNECT [::1] HTTP/1.1",
            ConnectTarget,
        ),
        (
            "connect-absolute",
            "CONNECT http://t.example:443/ HTTP/1.1",
            ConnectTarget,
        ),
        ("abs-empty", "GET http:///p HTTP/1.1", TargetAuthority),
        (
            "abs-userinfo",
            "GET http://u:p@t.example/ HTTP/1.1",
            TargetAuthority,
        ),
        (
            "abs-port",
            "GET http://t.example:x/ HTTP/1.1",
            TargetAuthority,
        ),
        (
            "abs-backslash",
            "GET http://t.example\\@e/ HTTP/1.1",
            TargetAuthority,
        ),
    ] {
        assert_rejected(id, &line(bytes), rejection);
    }
}

#[test]
fn section_3_2_targets_have_parts() {
    use TargetForm::{Absolute, Asterisk, Authority, Origin};
    for (target, form, authority, path, query) in [
        ("GET /", Origin, "t.example", "/", None),
        (
            "GET /a/b?c=d&e=%20?",
            Origin,
            "t.example",
            "/a/b",
            Some("c=d&e=%20?"),
        ),
        ("GET /?", Origin, "t.example", "/", Some("")),
        ("GET //a", Origin, "t.example", "//a", None),
        (
            "GET /[a]|^?{b}`\\[",
            Origin,
            "t.example",
            "/[a]|^",
            Some("{b}`\\["),
        ),
        (
            "GET http://o.example:81/a?b",
            Absolute,
            "o.example:81",
            "/a",
            Some("b"),
        ),
        ("GET HTTPS://[::1]:81/a", Absolute, "[::1]:81", "/a", None),
        ("GET http://o.example", Absolute, "o.example", "", None),
        (
            "GET http://o.example?b",
            Absolute,
            "o.example",
            "",
            Some("b"),
        ),
        ("OPTIONS *", Asterisk, "t.example", "*", None),
        ("OPTIONS http://o.example", Asterisk, "o.example", "", None),
        (
            "OPTIONS http://o.example/",
            Absolute,
            "o.example",
            "/",
            None,
        ),
        (
            "CONNECT c.example:443",
            Authority,
            "c.example:443",
            "",
            None,
        ),
    ] {
        let bytes = line(format!("{target} HTTP/1.1"));
        let (head, _) = request(&bytes).unwrap();
        assert_eq!(head.target_form(), form, "{target}");
        assert_eq!(head.authority().text(&bytes), authority, "{target}");
        assert_eq!(head.path().text(&bytes), path, "{target}");
        assert_eq!(
            head.query().map(|span| span.text(&bytes)),
            query,
            "{target}"
        );
        let whole = target.split_once(' ').unwrap().1;
        assert_eq!(head.target().text(&bytes), whole);
    }
}

#[test]
fn paths_without_dots_and_escapes_are_plain() {
    for (path, plain) in [
        ("/a-b_c/~d?e.f%20", true),
        ("/a.b", false),
        ("/a%20b", false),
    ] {
        let (head, _) = request(&line(format!("GET {path} HTTP/1.1"))).unwrap();
        assert_eq!(head.has_plain_path(), plain, "{path}");
    }
}

#[test]
fn section_3_2_there_is_one_valid_host() {
    use Rejection::{HostInvalid, HostMissing, HostRepeated};
    for (id, field, rejection) in [
        ("host-none", "X: y", HostMissing),
        (
            "host-dup",
            "Host: t.example\r\nHost: t.example",
            HostRepeated,
        ),
        (
            "host-dup-diff",
            "Host: t.example\r\nhost: evil.example",
            HostRepeated,
        ),
        ("host-empty", "Host:", HostInvalid),
        ("host-userinfo", "Host: u:p@t.example", HostInvalid),
        ("host-space", "Host: t.ex ample", HostInvalid),
        ("host-path", "Host: t.example/x", HostInvalid),
        ("host-port-text", "Host: t.example:abc", HostInvalid),
        ("host-v6-open", "Host: [::1", HostInvalid),
        ("host-list", "Host: t.example, evil.example", HostInvalid),
    ] {
        assert_rejected(id, &host(field), rejection);
    }
    let absolute = b"GET http://o.example/ HTTP/1.1\r\n\r\n";
    assert_rejected("abs-no-host", absolute, HostMissing);
    let (old, _) = request(b"GET /p HTTP/1.0\r\n\r\n").unwrap();
    assert!(old.authority().is_empty());
    assert_rejected(
        "host-10",
        b"GET / HTTP/1.0\r\nHost: a b\r\n\r\n",
        HostInvalid,
    );
}

#[test]
fn section_6_3_lengths() {
    use Rejection::{LengthInvalid, LengthRepeated};
    for (id, field, rejection) in [
        (
            "cl-dup-same",
            "Content-Length: 5\r\nContent-Length: 5",
            LengthRepeated,
        ),
        (
            "cl-dup-diff",
            "Content-Length: 5\r\nContent-Length: 6",
            LengthRepeated,
        ),
        ("cl-list-same", "Content-Length: 5, 5", LengthRepeated),
        ("cl-list-diff", "Content-Length: 5, 6", LengthRepeated),
        ("cl-plus", "Content-Length: +5", LengthInvalid),
        ("cl-minus", "Content-Length: -5", LengthInvalid),
        ("cl-hex", "Content-Length: 0x5", LengthInvalid),
        ("cl-empty", "Content-Length:", LengthInvalid),
        ("cl-alpha", "Content-Length: 5a", LengthInvalid),
        ("cl-float", "Content-Length: 5.0", LengthInvalid),
        (
            "cl-wrap64",
            "Content-Length: 18446744073709551621",
            LengthInvalid,
        ),
        (
            "cl-huge",
            "Content-Length: 9999999999999999999999999999999999999999",
            LengthInvalid,
        ),
        ("cl-tab", "Content-Length:\t5", LengthInvalid),
        ("cl-tab-behind", "Content-Length: 5 \t", LengthInvalid),
        ("cl-vt", "Content-Length: \x0b5", Rejection::FieldValue),
        ("cl-nbsp", "Content-Length: \u{a0}5", LengthInvalid),
    ] {
        assert_rejected(id, &post(format!("{field}\r\n\r\nhello")), rejection);
    }
    for (field, framing) in [
        ("X: y", Framing::None),
        ("Content-Length: 0", Framing::Length(0)),
        ("content-length:5", Framing::Length(5)),
        ("Transfer-Encoding: chunked", Framing::Chunked),
        ("transfer-encoding:CHUNKED ", Framing::Chunked),
    ] {
        let (head, _) = request(&post(format!("{field}\r\n\r\n"))).unwrap();
        assert_eq!(head.framing(), framing, "{field}");
    }
}

#[test]
fn section_6_1_codings() {
    use Rejection::{
        CodingInHttp10, CodingInvalid, CodingRepeated, CodingUnknown, LengthAndCoding,
    };
    for (id, fields, rejection) in [
        (
            "clte",
            "Content-Length: 44\r\nTransfer-Encoding: chunked",
            LengthAndCoding,
        ),
        (
            "tecl",
            "Transfer-Encoding: chunked\r\nContent-Length: 4",
            LengthAndCoding,
        ),
        (
            "te-xchunked",
            "Content-Length: 44\r\nTransfer-Encoding: xchunked",
            CodingUnknown,
        ),
        (
            "te-list-id",
            "Transfer-Encoding: chunked, identity",
            CodingInvalid,
        ),
        (
            "te-twice-list",
            "Transfer-Encoding: chunked, chunked",
            CodingInvalid,
        ),
        (
            "te-dup",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            CodingRepeated,
        ),
        (
            "te-vt",
            "Transfer-Encoding: \x0bchunked",
            Rejection::FieldValue,
        ),
        (
            "te-ff",
            "Transfer-Encoding: \x0cchunked",
            Rejection::FieldValue,
        ),
        (
            "te-tab",
            "Content-Length: 44\r\nTransfer-Encoding:\tchunked",
            CodingInvalid,
        ),
        (
            "te-tab-behind",
            "Transfer-Encoding: chunked\t",
            CodingInvalid,
        ),
        ("te-nbsp", "Transfer-Encoding: \u{a0}chunked", CodingInvalid),
        (
            "te-nul",
            "Transfer-Encoding: chunked\0",
            Rejection::FieldValue,
        ),
        ("te-param", "Transfer-Encoding: chunked;q=1", CodingInvalid),
        ("te-comma-end", "Transfer-Encoding: chunked,", CodingInvalid),
        (
            "te-cr-inside",
            "Transfer-Encoding: chun\rked",
            Rejection::BareCarriageReturn,
        ),
        (
            "te-gzip-chunked",
            "Transfer-Encoding: gzip, chunked",
            CodingUnknown,
        ),
        (
            "te-under",
            "Content-Length: 5\r\nTransfer_Encoding: chunked",
            Rejection::Imitation,
        ),
    ] {
        assert_rejected(id, &post(format!("{fields}\r\n\r\n{SMUGGLED}")), rejection);
    }
    for (id, fields) in [
        ("te-http10", "Transfer-Encoding: chunked"),
        (
            "te-http10-cl",
            "Connection: keep-alive\r\nContent-Length: 44\r\nTransfer-Encoding: chunked",
        ),
    ] {
        let bytes = format!("POST /p HTTP/1.0\r\nHost: t.example\r\n{fields}\r\n\r\n{SMUGGLED}");
        assert_rejected(id, bytes.as_bytes(), CodingInHttp10);
    }
}

#[test]
fn statuses_are_those_that_the_rfcs_name() {
    for (bytes, status) in [
        (get("X: y\nZ\r\n\r\n"), 400),
        (line("CONNECT /p HTTP/1.1"), 405),
        (line(format!("GET /{} HTTP/1.1", "a".repeat(9000))), 414),
        (get("Expect: foo\r\n\r\n"), 417),
        (get(format!("X: {}\r\n\r\n", "a".repeat(40_000))), 431),
        (post("Transfer-Encoding: gzip, chunked\r\n\r\n"), 501),
        (line("GET /p HTTP/3.0"), 505),
    ] {
        assert_eq!(request(&bytes).unwrap_err().status(), status);
    }
}

#[test]
fn section_9_3_connections_stay_open() {
    for (version, connection, persistent) in [
        ("1.1", "X: y", true),
        ("1.1", "Connection: close", false),
        ("1.1", "Connection: Keep-Alive, Close", false),
        ("1.1", "Connection: a\r\nConnection: close", false),
        ("1.0", "X: y", false),
        ("1.0", "Connection: Keep-Alive", true),
        ("1.0", "Connection: keep-alive, close", false),
    ] {
        let bytes = format!("GET /p HTTP/{version}\r\nHost: t.example\r\n{connection}\r\n\r\n");
        let (head, _) = request(bytes.as_bytes()).unwrap();
        assert_eq!(head.is_persistent(), persistent, "{version} {connection}");
    }
}

#[test]
fn rfc_9110_section_7_6_1_connection_names_fields() {
    use FieldClass::{ContentLength, Credentials, HopByHop, Host, NamedByConnection, Other};
    let bytes = post(
        "Connection: X-Hop, , host,content-length ,Keep-Alive, cookie\r\nConnection: x-other\r\n\
         x-hop: 1\r\nX-Other: 2\r\nX-Stays: 3\r\nContent-Length: 3\r\nCookie: a=b\r\nKeep-Alive: 5\r\nX-HOP: 4\r\n\r\n",
    );
    let (_, table) = request(&bytes).unwrap();
    let classes: Vec<_> = table
        .fields()
        .iter()
        .map(crate::http1::Field::class)
        .collect();
    assert_eq!(classes[0], Host);
    assert_eq!(
        classes[3..],
        [
            NamedByConnection,
            NamedByConnection,
            Other,
            ContentLength,
            Credentials,
            HopByHop,
            NamedByConnection
        ]
    );
    for (id, value, rejection) in [
        ("conn-paren", "close, (x)", Rejection::ConnectionOption),
        ("conn-space", "a b", Rejection::ConnectionOption),
        (
            "conn-many",
            &"a,".repeat(32),
            Rejection::TooManyConnectionOptions,
        ),
    ] {
        assert_rejected(id, &get(format!("Connection: {value}\r\n\r\n")), rejection);
    }
    assert!(request(&get(format!("Connection: {}\r\n\r\n", "a,".repeat(31)))).is_ok());
}

#[test]
fn rfc_9110_section_10_1_1_expectations() {
    for (fields, expected) in [
        ("X: y", Ok(false)),
        ("Expect: 100-Continue", Ok(true)),
        ("Expect: foo", Err(Rejection::Expectation)),
        ("Expect: y 100-continue", Err(Rejection::Expectation)),
        (
            "Expect: 100-continue, 100-continue",
            Err(Rejection::Expectation),
        ),
        (
            "Expect: 100-continue\r\nExpect: 100-continue",
            Err(Rejection::Expectation),
        ),
        ("Expect:", Err(Rejection::Expectation)),
    ] {
        let read = request(&post(format!("{fields}\r\nContent-Length: 5\r\n\r\n")));
        assert_eq!(
            read.map(|(head, _)| head.expects_continue()),
            expected,
            "{fields}"
        );
    }
    let (old, _) = request(b"POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").unwrap();
    assert!(!old.expects_continue());
}

#[test]
fn rfc_9110_section_7_8_upgrades_are_asked_for_in_both_fields() {
    let protocol = |version: &str, fields: &str| {
        let bytes = format!("GET /p HTTP/{version}\r\nHost: t.example\r\n{fields}\r\n\r\n");
        let (head, table) = request(bytes.as_bytes())?;
        assert_eq!(
            table.upgrade().is_some(),
            fields.matches("Upgrade:").count() == 1
        );
        assert_eq!(
            head.upgrade_value(bytes.as_bytes())
                .map(|value| value.as_bytes()),
            head.upgrade().map(|span| span.get(bytes.as_bytes()))
        );
        Ok(head
            .upgrade()
            .map(|span| span.text(bytes.as_bytes()).to_owned()))
    };
    let websocket = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket";
    assert_eq!(protocol("1.1", websocket), Ok(Some("websocket".to_owned())));
    assert_eq!(protocol("1.0", websocket), Ok(None));
    assert_eq!(protocol("1.1", "Upgrade: websocket"), Ok(None));
    assert_eq!(protocol("1.1", "Connection: Upgrade"), Ok(None));
    let twice = "Connection: Upgrade\r\nUpgrade: a\r\nUpgrade: b";
    assert_eq!(protocol("1.1", twice), Ok(None));
    let body = |field: &str| protocol("1.1", &format!("{websocket}\r\n{field}"));
    assert_eq!(body("Content-Length: 5"), Err(Rejection::UpgradeWithBody));
    assert_eq!(
        body("Transfer-Encoding: chunked"),
        Err(Rejection::UpgradeWithBody)
    );
    assert!(body("Content-Length: 0").is_ok());
}

#[test]
fn names_with_underscores_do_not_imitate() {
    for (id, name) in [
        ("xff-under", "X_Forwarded_For"),
        ("te-under", "Transfer_Encoding"),
        ("cl-under", "content_length"),
        ("real-ip", "X_Real_IP"),
    ] {
        assert_rejected(
            id,
            &get(format!("{name}: 6.6.6.6\r\n\r\n")),
            Rejection::Imitation,
        );
        let origin = format!("HTTP/1.1 200 OK\r\n{name}: 6\r\nContent-Length: 0\r\n\r\n");
        assert!(
            response(origin.as_bytes()).is_ok(),
            "{id}: nobody is deceived by an origin"
        );
    }
    assert!(request(&get("X_Request_Id: 7\r\n\r\n")).is_ok());
}

#[test]
fn trailers_are_accepted_if_te_says_so() {
    for (field, accepted) in [
        ("TE: gzip, trailers", true),
        ("te: Trailers", true),
        ("TE: trailers;q=1", false),
        ("TE: gzip", false),
    ] {
        let (head, _) = request(&get(format!("{field}\r\n\r\n"))).unwrap();
        assert_eq!(head.accepts_trailers(), accepted, "{field}");
    }
}

#[test]
fn methods_are_case_sensitive() {
    for (name, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("PATCH", Method::Patch),
        ("DELETE", Method::Delete),
        ("OPTIONS", Method::Options),
        ("TRACE", Method::Trace),
        ("get", Method::Other),
        ("GETS", Method::Other),
        ("GE", Method::Other),
        ("PROPFIND", Method::Other),
    ] {
        let bytes = line(format!("{name} /p HTTP/1.1"));
        let (head, _) = request(&bytes).unwrap();
        assert_eq!(head.method(), method);
        assert_eq!(head.method_span().text(&bytes), name);
        assert_eq!(method.name().is_none(), method == Method::Other);
        assert_eq!(
            Method::of(&http::Method::from_bytes(name.as_bytes()).unwrap()),
            method
        );
    }
}
