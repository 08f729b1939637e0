//! Tests of RFC 9112 sections 2, 3, 4 and 5.

use super::*;

#[test]
fn section_2_2_lines_end_in_crlf() {
    use Rejection::{BareCarriageReturn, BareLineFeed, FieldValue, Folded, StartLine};
    for (id, bytes, rejection) in [
        (
            "lf-all",
            b"GET /p HTTP/1.1\nHost: t.example\n\n".to_vec(),
            BareLineFeed,
        ),
        ("lf-one", get("X: y\nZ: w\r\n\r\n"), BareLineFeed),
        ("lf-end", get("X: y\r\n\n"), BareLineFeed),
        ("cr-value", get("X: y\rz\r\n\r\n"), BareCarriageReturn),
        ("cr-cr", get("X: y\r\r\n\r\n"), BareCarriageReturn),
        ("cr-line", line("GET /p HTTP/1.1\rX: y"), BareCarriageReturn),
        ("cr-end", get("X: y\r\n\rZ: w\r\n\r\n"), BareCarriageReturn),
        (
            "te-trail-cr",
            post("Transfer-Encoding: chunked\r\r\n\r\n"),
            BareCarriageReturn,
        ),
        (
            "te-after-lf",
            post("X: y\nTransfer-Encoding: chunked\r\n\r\n"),
            BareLineFeed,
        ),
        (
            "te-after-cr",
            post("X: y\rTransfer-Encoding: chunked\r\n\r\n"),
            BareCarriageReturn,
        ),
        (
            "fold-first",
            b"GET /p HTTP/1.1\r\n X: a\r\nHost: t.example\r\n\r\n".to_vec(),
            Folded,
        ),
        (
            "crlf-two",
            b"\r\n\r\nGET /p HTTP/1.1\r\nHost: t.example\r\n\r\n".to_vec(),
            StartLine,
        ),
        (
            "lf-first",
            b"\nGET /p HTTP/1.1\r\nHost: t.example\r\n\r\n".to_vec(),
            BareLineFeed,
        ),
        (
            "cr-first",
            b"\rGET /p HTTP/1.1\r\nHost: t.example\r\n\r\n".to_vec(),
            BareCarriageReturn,
        ),
        ("nul-value", get("X: a\0b\r\n\r\n"), FieldValue),
    ] {
        assert_rejected(id, &bytes, rejection);
    }
    let (first, _) = request(b"\r\nGET /p HTTP/1.1\r\nHost: t.example\r\n\r\n").unwrap();
    assert_eq!(first.head_length(), 38);
}

#[test]
fn section_2_3_versions() {
    use Rejection::{StartLine, Version, VersionNotSupported};
    for (id, version, rejection) in [
        ("v-20", "HTTP/2.0", VersionNotSupported),
        ("v-12", "HTTP/1.2", VersionNotSupported),
        ("v-09", "HTTP/0.9", VersionNotSupported),
        ("v-110", "HTTP/1.10", Version),
        ("v-zero", "HTTP/01.1", Version),
        ("v-junk", "HTTP/1.1x", Version),
        ("v-space", "HTTP/1.1 ", Version),
        ("v-short", "HTTP/1", Version),
        ("v-letter", "HTTP/x.1", Version),
        ("v-other", "RTSP/1.0", StartLine),
        ("v-lower", "http/1.1", StartLine),
    ] {
        assert_rejected(id, &line(format!("GET /p {version}")), rejection);
    }
    assert_rejected("v-none", b"GET /p\r\n\r\n", StartLine);
    assert_rejected("v-09-lf", b"GET /p\n", StartLine);
    let (old, _) = request(&line("GET /p HTTP/1.0")).unwrap();
    assert_eq!(old.version(), super::Version::Http10);
}

#[test]
fn section_3_the_request_line_has_single_spaces() {
    use Rejection::{Method, MethodTooLong, StartLine, TargetByte};
    for (id, bytes, rejection) in [
        ("sp-many", "GET  /p  HTTP/1.1", StartLine),
        ("sp-behind", "GET /p  HTTP/1.1", StartLine),
        ("sp-tab", "GET\t/p\tHTTP/1.1", StartLine),
        ("sp-tab-behind", "GET /p\tHTTP/1.1", StartLine),
        ("sp-first", " GET /p HTTP/1.1", StartLine),
        ("m-empty", "/p HTTP/1.1", Method),
        ("m-colon", "GE:T /p HTTP/1.1", Method),
        ("m-nul", "GE\0T /p HTTP/1.1", Method),
        ("m-utf8", "G\u{e9}T /p HTTP/1.1", Method),
        ("u-space", "GET /p a HTTP/1.1", StartLine),
        ("u-ctl", "GET /p\u{1} HTTP/1.1", TargetByte),
        ("nul-target", "GET /p\0x HTTP/1.1", TargetByte),
        ("u-del", "GET /p\u{7f} HTTP/1.1", TargetByte),
        ("u-8bit", "GET /p\u{e9} HTTP/1.1", TargetByte),
        ("u-fragment", "GET /p#frag HTTP/1.1", TargetByte),
        ("u-fragment-query", "GET /p?a#frag HTTP/1.1", TargetByte),
        ("u-quote", "GET /\" HTTP/1.1", TargetByte),
        ("u-less", "GET /?a<b HTTP/1.1", TargetByte),
        ("u-backslash", "GET /a\\..\\b HTTP/1.1", TargetByte),
        ("u-brace", "GET /{a} HTTP/1.1", TargetByte),
    ] {
        assert_rejected(id, &line(bytes), rejection);
    }
    assert_rejected(
        "m-long",
        &line(format!("{} /p HTTP/1.1", "M".repeat(65))),
        MethodTooLong,
    );
    assert_rejected("m-9000", &vec![b'M'; 9000], MethodTooLong);
    let longest = format!("{} /p HTTP/1.1", "M".repeat(64));
    let (longest, _) = request(&line(longest)).unwrap();
    assert_eq!(longest.method_span().len(), 64);
}

#[test]
fn section_5_1_names_are_tokens_with_a_colon() {
    use Rejection::FieldName;
    for (id, field) in [
        ("sp-colon", "X-A : b"),
        ("tab-colon", "X-A\t: b"),
        ("name-empty", ": b"),
        ("name-space", "X A: b"),
        ("name-paren", "X(A): b"),
        ("name-utf8", "X\u{e9}: b"),
        ("name-nul", "X\0A: b"),
        ("name-pseudo", ":authority: b"),
        ("no-colon", "garbage"),
        ("cl-space", "Content-Length : 5"),
    ] {
        assert_rejected(id, &get(format!("{field}\r\n\r\n")), FieldName);
    }
    let (_, table) = request(&get("!#$%&'*+-.^_`|~09aZ: b\r\n\r\n")).unwrap();
    assert_eq!(table.fields().len(), 2);
}

#[test]
fn section_5_2_nothing_is_folded() {
    for (id, fields) in [
        ("fold-sp", "X: a\r\n b"),
        ("fold-tab", "X: a\r\n\tb"),
        ("te-fold", "Transfer-Encoding:\r\n chunked"),
        ("host-fold", "X: a\r\n Host: b"),
    ] {
        assert_rejected(id, &get(format!("{fields}\r\n\r\n")), Rejection::Folded);
    }
}

#[test]
fn section_5_5_values_have_no_controls() {
    for byte in (0..0x20).chain([0x7f]) {
        let fields = [b"X: a", &[byte][..], b"b\r\n\r\n"].concat();
        let read = request(&get(fields));
        match byte {
            b'\t' => assert!(read.is_ok()),
            b'\r' => assert_eq!(read.unwrap_err(), Rejection::BareCarriageReturn),
            b'\n' => assert_eq!(read.unwrap_err(), Rejection::BareLineFeed),
            _ => assert_eq!(read.unwrap_err(), Rejection::FieldValue, "{byte:#04x}"),
        }
    }
    for (id, field, value) in [
        ("ows", &b"X: \t a b \t "[..], &b"a b"[..]),
        ("no-ows", b"X:a", b"a"),
        ("empty", b"X:", b""),
        ("only-ows", b"X: \t ", b""),
        ("obs-text", b"X: \xe9\xff", b"\xe9\xff"),
        ("colons", b"X: a:b", b"a:b"),
    ] {
        let bytes = get([field, b"\r\n\r\n"].concat());
        let (_, table) = request(&bytes).unwrap();
        assert_eq!(table.fields()[1].value().get(&bytes), value, "{id}");
        assert_eq!(table.fields()[1].name().get(&bytes), b"X", "{id}");
    }
}

#[test]
fn limits_are_told_apart() {
    let limits = HeadLimits::default()
        .with_bytes(1000)
        .with_request_line(100)
        .with_fields(5);
    let rejection = |bytes: Vec<u8>| request_within(&bytes, &limits).unwrap_err();
    // GET, a slash, and 96 letters.
    let fits = line(format!("GET /{} HTTP/1.1", "a".repeat(96)));
    assert!(request_within(&fits, &limits).is_ok());
    let long = line(format!("GET /{} HTTP/1.1", "a".repeat(97)));
    assert_eq!(rejection(long), Rejection::TargetTooLong);
    let absolute = line(format!("GET http://h/{} HTTP/1.1", "a".repeat(97)));
    assert_eq!(rejection(absolute), Rejection::TargetTooLong);
    assert_eq!(
        rejection(get("X: a\r\n".repeat(5) + "\r\n")),
        Rejection::TooManyFields
    );
    assert!(request_within(&get("X: a\r\n".repeat(4) + "\r\n"), &limits).is_ok());
    let endless = get(format!("X: {}", "a".repeat(2000)));
    assert_eq!(rejection(endless), Rejection::HeadTooLarge);
    let sized = |bytes: usize| get(format!("X: {}\r\n\r\n", "a".repeat(bytes - 41)));
    assert_eq!(sized(1000).len(), 1000);
    assert!(request_within(&sized(1000), &limits).is_ok());
    assert_eq!(rejection(sized(1001)), Rejection::HeadTooLarge);
}

#[test]
fn default_limits_are_those_of_the_server() {
    let long = |length: usize| line(format!("GET /p?{} HTTP/1.1", "a".repeat(length)));
    assert_rejected("lim-uri-9k", &long(9_000), Rejection::TargetTooLong);
    assert_rejected("lim-uri-100k", &long(100_000), Rejection::TargetTooLong);
    let field = format!("X: {}\r\n\r\n", "a".repeat(100_000));
    assert_rejected("lim-hdr-100k", &get(field), Rejection::HeadTooLarge);
    let fields = "X: a\r\n".repeat(200) + "\r\n";
    assert_rejected("lim-count-200", &get(fields), Rejection::TooManyFields);
    let name = format!("{}: a\r\n\r\n", "X".repeat(70_000));
    let limits = HeadLimits::default().with_bytes(100_000);
    assert_eq!(
        request_within(&get(name), &limits).unwrap_err(),
        Rejection::HeadTooLarge
    );
}
