//! Method, path, query and version of the request that a destination gets.

use http::header::{AUTHORIZATION, CONNECTION, COOKIE, HOST, TE, UPGRADE};
use http::{HeaderValue, Method, Request, Version};

#[cfg(feature = "http2")]
use super::forwarded2;
use super::{config, forwarded, http2, parts, written};
use crate::forward::handshake::Handshake;
use crate::forward::upgrade::Wish;
use crate::http1::Framing;

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

/// YARP sends `%252F` (F10); this proxy changes nothing without being told to.
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
    #[cfg(feature = "http2")]
    let second = forwarded2(&config, &request).unwrap();
    #[cfg(feature = "http2")]
    {
        assert_eq!(second.uri(), "http://client.example/base/x?y");
        assert!(!second.headers().contains_key(HOST));
        assert_eq!(second.version(), Version::HTTP_2);
    }
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
    let mut written = written(&config, &request, Framing::None);
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

#[cfg(feature = "http2")]
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
        let sent = forwarded2(&config, &request).unwrap();
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

#[cfg(feature = "http2")]
#[test]
fn a_host_that_is_no_authority_cannot_be_said_in_http2() {
    let config = config(
        r#"{ "RequestHeader": "Host", "Set": "not a host" }"#,
        "http://a",
    );
    let request = parts(Request::get("/"));
    assert_eq!(forwarded(&config, &request).headers()[HOST], "not a host");
    assert!(forwarded2(&config, &request).is_none());
}

#[test]
fn bodies_are_framed_by_the_proxy() {
    let config = config(r#"{ "RequestHeadersCopy": "false" }"#, "http://a");
    let request = parts(Request::get("/").header("content-length", "5"));
    let sent = |framing| String::from_utf8(written(&config, &request, framing)).unwrap();
    let length = sent(Framing::Length(5));
    assert_eq!(length.matches("\r\nContent-Length: 5\r\n").count(), 1);
    let stream = sent(Framing::Chunked);
    let chunked = "\r\nTransfer-Encoding: chunked\r\n";
    assert!(stream.contains(chunked), "even with GET: {stream}");
    assert!(!stream.to_lowercase().contains("content-length"));
}
