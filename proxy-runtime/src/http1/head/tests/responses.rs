//! Tests of RFC 9112 sections 4, 6.3 and 9 for clients.

use super::*;

fn fields(fields: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").into_bytes()
}

#[test]
fn section_4_status_lines() {
    use Rejection::{
        BareCarriageReturn, BareLineFeed, Reason, StartLine, StatusCode, Version,
        VersionNotSupported,
    };
    for (id, line, rejection) in [
        ("res-stat", "HTTP/1.1 2x0 OK", StatusCode),
        ("res-stat2", "HTTP/1.1 20 OK", StatusCode),
        ("res-stat4", "HTTP/1.1 2000 OK", StatusCode),
        ("res-stat0", "HTTP/1.1 099 OK", StatusCode),
        ("res-sp-many", "HTTP/1.1  200 OK", StatusCode),
        ("res-tab", "HTTP/1.1\t200 OK", StartLine),
        ("res-tab-2", "HTTP/1.1 200\tOK", StatusCode),
        ("res-ver3", "HTTP/3.7 200 OK", VersionNotSupported),
        ("res-ver12", "HTTP/1.2 200 OK", VersionNotSupported),
        ("res-ver-x", "HTTP/x.1 200 OK", Version),
        ("res-ver-long", "HTTP/1.10 200 OK", StartLine),
        ("res-h09", "<html>old</html>", StartLine),
        ("res-empty-line", "\r\nHTTP/1.1 200 OK", StartLine),
        ("res-reason-nul", "HTTP/1.1 200 O\0K", Reason),
        ("res-reason-cr", "HTTP/1.1 200 O\rK", BareCarriageReturn),
        ("res-reason-lf", "HTTP/1.1 200 OK\nX: y", BareLineFeed),
        ("res-lf", "HTTP/1.1 200\nX: y", BareLineFeed),
    ] {
        let bytes = format!("{line}\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(response(bytes.as_bytes()).unwrap_err(), rejection, "{id}");
    }
    for (line, status, reason) in [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.0 404 Not Found at all", 404, "Not Found at all"),
        ("HTTP/1.1 204 ", 204, ""),
        ("HTTP/1.1 204", 204, ""),
        ("HTTP/1.1 999 What", 999, "What"),
        ("HTTP/1.1 500  two \t", 500, " two \t"),
    ] {
        let bytes = format!("{line}\r\n\r\n");
        let (head, _) = response(bytes.as_bytes()).unwrap();
        assert_eq!(
            (head.status(), head.reason().text(bytes.as_bytes())),
            (status, reason)
        );
    }
}

#[test]
fn section_5_fields_are_as_strict_as_in_requests() {
    for (id, field, rejection) in [
        ("res-nul", "X-A: a\0b", Rejection::FieldValue),
        ("res-fold", "X-A: a\r\n folded", Rejection::Folded),
        ("res-wscolon", "Content-Length : 5", Rejection::FieldName),
        ("res-lf", "X: y\nContent-Length: 3", Rejection::BareLineFeed),
    ] {
        assert_eq!(response(&fields(field)).unwrap_err(), rejection, "{id}");
    }
    let big = fields(&format!("X-Big: {}", "a".repeat(1_200_000)));
    assert_eq!(
        response(&big).unwrap_err(),
        Rejection::HeadTooLarge,
        "res-huge"
    );
}

#[test]
fn section_6_3_the_end_of_a_body() {
    use Framing::{Chunked, Length, None, Tunnel, UntilClose};
    let get = RequestInfo::default();
    let head = RequestInfo {
        method: Method::Head,
        ..get
    };
    let connect = RequestInfo {
        method: Method::Connect,
        ..get
    };
    let upgrade = RequestInfo {
        upgrade: true,
        ..get
    };
    for (id, asked, start, framing, persistent) in [
        (
            "res-cl",
            get,
            "200 OK\r\nContent-Length: 5",
            Ok(Length(5)),
            true,
        ),
        (
            "res-cl0",
            get,
            "200 OK\r\nContent-Length: 0",
            Ok(Length(0)),
            true,
        ),
        (
            "res-te",
            get,
            "200 OK\r\nTransfer-Encoding: Chunked",
            Ok(Chunked),
            true,
        ),
        ("res-eof", get, "200 OK\r\nX-A: b", Ok(UntilClose), false),
        (
            "res-close",
            get,
            "200 OK\r\nConnection: close\r\nContent-Length: 5",
            Ok(Length(5)),
            false,
        ),
        (
            "res-clte",
            get,
            "200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
            Err(Rejection::LengthAndCoding),
            false,
        ),
        (
            "res-xte",
            get,
            "200 OK\r\nTransfer-Encoding: xchunked",
            Err(Rejection::CodingUnknown),
            false,
        ),
        (
            "res-gzip",
            get,
            "200 OK\r\nTransfer-Encoding: gzip",
            Err(Rejection::CodingUnknown),
            false,
        ),
        (
            "res-cl-dup",
            get,
            "200 OK\r\nContent-Length: 5\r\nContent-Length: 5",
            Err(Rejection::LengthRepeated),
            false,
        ),
        (
            "res-cl-neg",
            get,
            "200 OK\r\nContent-Length: -5",
            Err(Rejection::LengthInvalid),
            false,
        ),
        ("res-204", get, "204 No Content", Ok(None), true),
        (
            "res-b204",
            get,
            "204 No Content\r\nContent-Length: 5",
            Ok(None),
            false,
        ),
        (
            "res-b204-te",
            get,
            "204 No Content\r\nTransfer-Encoding: chunked",
            Ok(None),
            false,
        ),
        (
            "res-cl0-204",
            get,
            "204 No Content\r\nContent-Length: 0",
            Ok(None),
            true,
        ),
        (
            "res-304",
            get,
            "304 Not Modified\r\nContent-Length: 5",
            Ok(None),
            true,
        ),
        (
            "res-head",
            head,
            "200 OK\r\nContent-Length: 5",
            Ok(None),
            true,
        ),
        (
            "res-head-te",
            head,
            "200 OK\r\nTransfer-Encoding: chunked",
            Ok(None),
            true,
        ),
        ("res-head-eof", head, "200 OK", Ok(None), true),
        (
            "res-head-clte",
            head,
            "200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
            Err(Rejection::LengthAndCoding),
            false,
        ),
        ("res-100", get, "100 Continue", Ok(None), true),
        (
            "res-103",
            get,
            "103 Early Hints\r\nLink: </a>",
            Ok(None),
            true,
        ),
        (
            "res-b103",
            get,
            "103 Early Hints\r\nContent-Length: 5",
            Err(Rejection::InterimWithBody),
            false,
        ),
        (
            "res-b100-te",
            get,
            "100 Continue\r\nTransfer-Encoding: chunked",
            Err(Rejection::InterimWithBody),
            false,
        ),
        (
            "res-s101",
            get,
            "101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade",
            Err(Rejection::UnexpectedSwitch),
            false,
        ),
        (
            "res-101",
            upgrade,
            "101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade",
            Ok(Tunnel),
            false,
        ),
        (
            "res-b101",
            upgrade,
            "101 Switching Protocols\r\nUpgrade: x\r\nContent-Length: 5",
            Err(Rejection::InterimWithBody),
            false,
        ),
        (
            "res-upgrade-200",
            upgrade,
            "200 OK\r\nContent-Length: 5",
            Ok(Length(5)),
            true,
        ),
        (
            "res-connect",
            connect,
            "200 OK\r\nContent-Length: 5",
            Ok(Tunnel),
            false,
        ),
        (
            "res-connect-404",
            connect,
            "404 Not Found\r\nContent-Length: 5",
            Ok(Length(5)),
            true,
        ),
    ] {
        let bytes = format!("HTTP/1.1 {start}\r\n\r\nhello");
        match (response_to(asked, bytes.as_bytes()), framing) {
            (Ok((head, _)), Ok(framing)) => {
                assert_eq!(head.framing(), framing, "{id}");
                assert_eq!(head.is_persistent(), persistent, "{id}");
                assert_eq!(head.head_length(), bytes.len() - 5, "{id}");
            }
            (read, framing) => assert_eq!(read.err(), framing.err(), "{id}"),
        }
    }
}

#[test]
fn http_1_0_origins() {
    let framing = |fields: &str| {
        let bytes = format!("HTTP/1.0 200 OK\r\n{fields}\r\n\r\n");
        let (head, _) = response(bytes.as_bytes())?;
        Ok((head.framing(), head.is_persistent()))
    };
    assert_eq!(framing("X: y"), Ok((Framing::UntilClose, false)));
    assert_eq!(
        framing("Content-Length: 5"),
        Ok((Framing::Length(5), false))
    );
    let keep = "Connection: keep-alive\r\nContent-Length: 5";
    assert_eq!(framing(keep), Ok((Framing::Length(5), true)));
    assert_eq!(
        framing("Connection: keep-alive"),
        Ok((Framing::UntilClose, false))
    );
    let chunked = framing("Transfer-Encoding: chunked");
    assert_eq!(chunked, Err(Rejection::CodingInHttp10));
}

#[test]
fn interim_responses_are_told_from_final_ones() {
    let asked = RequestInfo {
        upgrade: true,
        ..RequestInfo::default()
    };
    for (status, interim, bodiless) in [
        (100, true, true),
        (103, true, true),
        (101, false, true),
        (200, false, false),
        (204, false, true),
        (304, false, false),
    ] {
        let bytes = format!("HTTP/1.1 {status} X\r\n\r\n");
        let (head, _) = response_to(asked, bytes.as_bytes()).unwrap();
        assert_eq!(
            (head.is_interim(), head.is_bodiless()),
            (interim, bodiless),
            "{status}"
        );
    }
}
