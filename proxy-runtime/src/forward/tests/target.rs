//! Method, path, query and version of the request that a destination gets.

use http::header::{AUTHORIZATION, CONNECTION, COOKIE, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderValue, Method, Request, Version};

use super::{config, forwarded, forwarded2, http2, outgoing, parts};
use crate::forward::handshake::Handshake;
use crate::forward::request::BodyKind;
use crate::forward::typed::TypedRequest;
use crate::forward::upgrade::Wish;
use crate::head::HttpHead;
use crate::http1::Framing;
use crate::transform::CompiledTransforms;

#[test]
fn f01_to_f08_urls() {
    for (case, address, path, expected) in [
        ("F01", "http://localhost", "/", "/"),
        ("F02", "http://localhost/", "/", "/"),
        ("F03", "http://localhost", "/?query", "/?query"),
        ("F04", "http://localhost/", "/path?query", "/path?query"),
        ("F05", "http://localhost/base", "/path", "/base/path"),
        (
            "F06",
            "http://localhost/base/",
            "/path?query",
            "/base/path?query",
        ),
        (
            "F07",
            "http://localhost/base/",
            "/path/?query",
            "/base/path/?query",
        ),
        (
            "F08",
            "http://localhost/base/",
            "/path/%E4%BD%A0?query%E4%BD%A0%E5%A5%BD",
            "/base/path/%E4%BD%A0?query%E4%BD%A0%E5%A5%BD",
        ),
    ] {
        let config = config("", address);
        let request = parts(Request::get(path));
        assert_eq!(forwarded(&config, &request).uri(), expected, "{case}");
    }
}

/// YARP sends `%252F` (F10); this proxy leaves what nobody wants changed as it is.
#[test]
fn f10_encoded_paths_stay_as_they_are() {
    for address in ["http://a", "http://a/base"] {
        let config = config("", address);
        for path in [
            "/a%2Fb",
            "/a%2fb/%20/%C3%BC",
            "/%25",
            "//double//",
            "/a/../b",
            "/%zz",
        ] {
            let request = parts(Request::get(path));
            let sent = forwarded(&config, &request).uri().to_string();
            let base = address.trim_start_matches("http://a");
            let expected = match path {
                // What is no triplet cannot be told from one later on, unless it is encoded.
                "/%zz" if !base.is_empty() => "/base/%25zz".to_owned(),
                _ => format!("{base}{path}"),
            };
            assert_eq!(sent, expected);
        }
    }
}

#[test]
fn f13_to_f27_changes_reach_the_request() {
    for (case, transforms, method, path, expected_method, expected) in [
        (
            "F13",
            r#"{ "PathPrefix": "/value" }"#,
            "GET",
            "/foo",
            "GET",
            "/value/foo",
        ),
        (
            "F14",
            r#"{ "PathRemovePrefix": "/value" }"#,
            "GET",
            "/value/foo",
            "GET",
            "/foo",
        ),
        (
            "F16",
            r#"{ "PathPattern": "/x/{**rest}" }"#,
            "GET",
            "/6/7?q",
            "GET",
            "/x/6/7?q",
        ),
        (
            "F22",
            r#"{ "QueryValueParameter": "z", "Append": "foo" }"#,
            "GET",
            "/?z=1",
            "GET",
            "/?z=1&z=foo",
        ),
        (
            "F27",
            r#"{ "HttpMethodChange": "PUT", "Set": "POST" }"#,
            "PUT",
            "/",
            "POST",
            "/",
        ),
        (
            "F27",
            r#"{ "HttpMethodChange": "PUT", "Set": "POST" }"#,
            "GET",
            "/",
            "GET",
            "/",
        ),
    ] {
        let config = config(transforms, "http://a");
        let request = parts(Request::builder().method(method).uri(path));
        let sent = forwarded(&config, &request);
        assert_eq!(sent.method(), expected_method, "{case}");
        assert_eq!(sent.uri(), expected, "{case}");
    }
}

#[test]
fn the_form_of_the_target_is_that_of_the_version() {
    let config = config(
        r#"{ "RequestHeaderOriginalHost": "true" }"#,
        "http://a:81/base",
    );
    let request = parts(http2("GET", "/x?y"));
    let first = forwarded(&config, &request);
    assert_eq!(first.uri(), "/base/x?y");
    assert_eq!(first.headers()[HOST], "client.example");
    assert_eq!(first.version(), Version::HTTP_11);
    let second = forwarded2(&config, &request);
    assert_eq!(second.uri(), "http://client.example/base/x?y");
    assert!(!second.headers().contains_key(HOST));
    assert_eq!(second.version(), Version::HTTP_2);
}

#[test]
fn l33_options_of_everything_keeps_its_form() {
    let config = config("", "http://a");
    let request = parts(Request::options("*"));
    let sent = forwarded(&config, &request);
    assert_eq!(sent.uri(), "*");
    assert_eq!(sent.method(), Method::OPTIONS);
}

#[test]
fn m11_only_the_upgrade_is_left_of_connection() {
    let config = config("", "http://a");
    let request = parts(
        Request::get("/")
            .header(CONNECTION, "upgrade, keep-alive")
            .header(UPGRADE, "websocket")
            .header("keep-alive", "timeout=5")
            .header("sec-websocket-key", "k")
            .header("sec-websocket-extensions", "permessage-deflate"),
    );
    let plain = forwarded(&config, &request);
    assert!(!plain.headers().contains_key(CONNECTION));
    assert!(!plain.headers().contains_key(UPGRADE));
    let head = HttpHead::new(&request);
    let plan = CompiledTransforms::of(&config.routes()[0], None);
    let plain = TypedRequest {
        head: &head,
        route: &config.routes()[0],
        plan: &plan,
        framing: Framing::None,
        remote: None,
    };
    let mut written = Vec::new();
    let destination = &config.clusters()[0].destinations()[0];
    plain.write(destination, &mut written).unwrap();
    let wish = Wish::Upgrade(HeaderValue::from_static("SPDY/3.1"));
    let upstream = config.clusters()[0].upstream();
    let handshake = Handshake::new(&wish, &request.headers, upstream).unwrap();
    handshake.ask(&mut written);
    let written = String::from_utf8(written).unwrap().to_lowercase();
    let fields: Vec<_> = written.lines().skip(1).collect();
    assert!(fields.contains(&"connection: upgrade"), "{written}");
    assert!(fields.contains(&"upgrade: spdy/3.1"), "{written}");
    assert!(!written.contains("keep-alive"), "{written}");
    assert!(fields.contains(&"sec-websocket-key: k"), "{written}");
    let extensions = "sec-websocket-extensions: permessage-deflate";
    assert!(fields.contains(&extensions), "{written}");
    assert!(written.ends_with("\r\n\r\n") && !written.contains("\r\n\r\n\r\n"));
}

#[test]
fn te_is_kept_for_clients_of_http2_that_accept_trailers() {
    let config = config("", "http://a");
    for (request, expected) in [
        (http2("POST", "/").header(TE, "trailers"), Some("trailers")),
        (
            http2("POST", "/").header(TE, "gzip, Trailers"),
            Some("trailers"),
        ),
        (http2("POST", "/").header(TE, "gzip"), None),
        (http2("POST", "/"), None),
        (Request::post("/").header(TE, "trailers"), None),
    ] {
        let request = parts(request);
        let sent = forwarded2(&config, &request);
        let te = sent.headers().get(TE).map(|te| te.to_str().unwrap());
        assert_eq!(te, expected, "{request:?}");
    }
}

#[test]
fn cookies_that_were_cut_are_joined() {
    let config = config("", "http://a");
    let request = parts(
        http2("GET", "/")
            .header(COOKIE, "a=1")
            .header(COOKIE, "b=2"),
    );
    let sent = forwarded(&config, &request);
    let cookies: Vec<_> = sent.headers().get_all(COOKIE).iter().collect();
    assert_eq!(cookies, ["a=1; b=2"]);
}

/// The answer to TRACE repeats the request, and who reads the answer need not be who wrote the request.
#[test]
fn trace_carries_no_credentials() {
    let config = config("", "http://a");
    let request = parts(
        Request::builder()
            .method(Method::TRACE)
            .uri("/")
            .header(AUTHORIZATION, "Bearer secret")
            .header(COOKIE, "session=secret"),
    );
    let sent = forwarded(&config, &request);
    assert!(!format!("{sent:?}").contains("secret"));
}

#[test]
fn a_host_that_is_no_authority_cannot_be_said_in_http2() {
    let config = config(
        r#"{ "RequestHeader": "Host", "Set": "not a host" }"#,
        "http://a",
    );
    let request = parts(Request::get("/"));
    assert_eq!(forwarded(&config, &request).headers()[HOST], "not a host");
    let second = outgoing(&config, &request).into_request((), BodyKind::Empty, true);
    assert_eq!(second.unwrap_err().status(), 502);
}

#[test]
fn bodies_are_framed_by_the_proxy() {
    let config = config(r#"{ "RequestHeadersCopy": "false" }"#, "http://a");
    let request = parts(Request::get("/").header("content-length", "5"));
    let sent = |framing, is_http2| {
        outgoing(&config, &request)
            .into_request((), framing, is_http2)
            .unwrap()
    };
    let length = sent(BodyKind::Length(5), false);
    assert_eq!(length.headers()["content-length"], "5");
    let stream = sent(BodyKind::Stream, false);
    assert_eq!(
        stream.headers()[TRANSFER_ENCODING],
        "chunked",
        "even with GET"
    );
    let stream = sent(BodyKind::Stream, true);
    assert!(!stream.headers().contains_key(TRANSFER_ENCODING));
}

/// What sends heads over HTTP/2 keeps values, and would keep with each of them all of the head that it is a part of.
#[cfg(feature = "http2")]
#[test]
fn values_of_a_long_head_share_no_memory_over_http2() {
    use bytes::Bytes;

    let config = config("", "http://127.0.0.1:1/");
    for (length, is_shared) in [(100, true), (20_000, false)] {
        let head = Bytes::from(vec![b'x'; length]);
        let mut request = parts(http2("GET", "/"));
        for (name, range) in [("x-id", 0..8), ("x-long", 8..length)] {
            let value = HeaderValue::from_maybe_shared(head.slice(range)).unwrap();
            request.headers.insert(name, value);
        }
        let memory = head.as_ptr_range();
        let made = forwarded2(&config, &request);
        for name in ["x-id", "x-long"] {
            let value = made.headers()[name].as_bytes().as_ptr();
            assert_eq!(memory.contains(&value), is_shared, "{name} of {length}");
        }
    }
}
