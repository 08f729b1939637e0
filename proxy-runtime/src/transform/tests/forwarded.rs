//! `X-Forwarded-*`, `Forwarded` and `ClientCert`.

use http::header::FORWARDED;

use super::{config, forwarded, request, values};
use crate::connection::ConnectionInfo;

/// The expected values of one header about the origin of a request.
struct Told {
    transforms: &'static str,
    name: &'static str,
    remote: Option<&'static str>,
    host: Option<&'static str>,
    existing: &'static [&'static str],
}

impl Told {
    fn values(&self) -> Vec<String> {
        let config = config("/{**all}", self.transforms, "");
        let mut headers: Vec<_> = self.existing.iter().map(|v| (self.name, *v)).collect();
        headers.extend(self.host.map(|host| ("host", host)));
        let mut connection = ConnectionInfo {
            tls: self.transforms.contains("proto"),
            ..ConnectionInfo::default()
        };
        connection.remote = self.remote.map(|remote| remote.parse().unwrap());
        let request = request("/", &headers);
        values(
            forwarded(&config, &request, connection).headers(),
            self.name,
        )
    }
}

#[test]
fn h01_to_h17_x_forwarded() {
    const SET: &str = "";
    const APPEND: &str = r#"{ "X-Forwarded": "Append" }"#;
    const REMOVE: &str = r#"{ "X-Forwarded": "Remove" }"#;
    const OFF: &str = r#"{ "X-Forwarded": "Off" }"#;
    let existing: &[&str] = &["existing,Header"];
    let for_ = |transforms, remote, existing| Told {
        transforms,
        name: "x-forwarded-for",
        remote,
        host: None,
        existing,
    };
    let host = |transforms, host, existing| Told {
        transforms,
        name: "x-forwarded-host",
        remote: None,
        host,
        existing,
    };
    let proto = |transforms, existing| Told {
        transforms,
        name: "x-forwarded-proto",
        remote: None,
        host: None,
        existing,
    };
    let prefix = |transforms, existing| Told {
        transforms,
        name: "x-forwarded-prefix",
        remote: None,
        host: None,
        existing,
    };
    let mapped = Some("[::ffff:127.0.0.1]:9");
    let v4 = Some("127.0.0.1:9");
    for (case, told, expected) in [
        ("H01", for_(SET, None, &[]), &[] as &[&str]),
        ("H01", for_(APPEND, None, &[]), &[]),
        ("H01", for_(REMOVE, None, &[]), &[]),
        ("H02", for_(SET, Some("[::1]:9"), &[]), &["::1"]),
        ("H03", for_(SET, mapped, &[]), &["127.0.0.1"]),
        ("H03", for_(APPEND, mapped, &[]), &["127.0.0.1"]),
        ("H04", for_(SET, None, existing), &[]),
        ("H05", for_(APPEND, None, existing), &["existing,Header"]),
        ("H06", for_(SET, v4, existing), &["127.0.0.1"]),
        (
            "H07",
            for_(APPEND, v4, existing),
            &["existing,Header", "127.0.0.1"],
        ),
        ("H08", for_(REMOVE, v4, existing), &[]),
        ("H09", for_(OFF, v4, existing), &["existing,Header"]),
        ("H10", host(SET, Some("ho本st"), &[]), &["xn--host-6j1i"]),
        ("H12", host(SET, Some("[::1]:80"), &[]), &["[::1]:80"]),
        ("H13", host(SET, None, existing), &[]),
        (
            "H14",
            host(APPEND, Some("myHost:80"), existing),
            &["existing,Header", "myHost:80"],
        ),
        ("H17", proto(SET, &["existing"]), &["http"]),
        ("H17", proto(APPEND, &["existing"]), &["existing", "http"]),
        ("prefix", prefix(SET, existing), &[]),
        ("prefix", prefix(APPEND, existing), &["existing,Header"]),
    ] {
        assert_eq!(told.values(), expected, "{case}");
    }
}

#[test]
fn a_prefix_of_ones_own_and_an_action_per_header() {
    let config = config(
        "/{**all}",
        r#"{ "X-Forwarded": "Set", "HeaderPrefix": "X-Mine-", "Host": "Off", "Proto": "Append" }"#,
        "",
    );
    let request = request(
        "/",
        &[
            ("host", "h"),
            ("x-mine-proto", "old"),
            ("x-mine-host", "old"),
        ],
    );
    let forwarded = forwarded(
        &config,
        &request,
        ConnectionInfo::new(([9, 9, 9, 9], 1).into()),
    );
    let headers = forwarded.headers();
    assert_eq!(values(headers, "x-mine-for"), ["9.9.9.9"]);
    assert_eq!(values(headers, "x-mine-proto"), ["old", "http"]);
    assert_eq!(values(headers, "x-mine-host"), ["old"]);
}

#[test]
fn g01_forwarded_is_removed_and_x_forwarded_set_by_default() {
    let config = config("/{**all}", "", "");
    let request = request(
        "/",
        &[
            ("host", "example.com"),
            ("forwarded", "for=evil"),
            ("x-forwarded-for", "evil"),
        ],
    );
    let mut connection = ConnectionInfo::new(([10, 0, 0, 1], 1).into());
    connection.tls = true;
    let forwarded = forwarded(&config, &request, connection);
    let headers = forwarded.headers();
    assert!(!headers.contains_key(FORWARDED));
    assert_eq!(values(headers, "x-forwarded-for"), ["10.0.0.1"]);
    assert_eq!(values(headers, "x-forwarded-host"), ["example.com"]);
    assert_eq!(values(headers, "x-forwarded-proto"), ["https"]);
}

#[test]
fn h20_to_h26_forwarded() {
    let told = |transforms, remote, host| Told {
        transforms,
        name: "forwarded",
        remote,
        host,
        existing: &[],
    };
    let v6 = Some("[::1]:10");
    for (case, told, expected) in [
        (
            "H20",
            told(r#"{ "Forwarded": "host" }"#, None, Some("ho本st:80")),
            r#"host="xn--host-6j1i:80""#,
        ),
        (
            "H21",
            told(r#"{ "Forwarded": "for", "ForFormat": "Ip" }"#, None, None),
            "for=unknown",
        ),
        (
            "H22",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "UnknownAndPort" }"#,
                Some("1.1.1.1:2"),
                None,
            ),
            r#"for="unknown:2""#,
        ),
        (
            "H22",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "UnknownAndPort" }"#,
                Some("1.1.1.1:0"),
                None,
            ),
            "for=unknown",
        ),
        (
            "H23",
            told(r#"{ "Forwarded": "for", "ForFormat": "Ip" }"#, v6, None),
            r#"for="[::1]""#,
        ),
        (
            "H24",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "IpAndPort" }"#,
                v6,
                None,
            ),
            r#"for="[::1]:10""#,
        ),
        (
            "H25",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "Ip" }"#,
                Some("127.0.0.1:1"),
                None,
            ),
            "for=127.0.0.1",
        ),
        (
            "H26",
            told(
                r#"{ "Forwarded": "for", "ForFormat": "IpAndPort" }"#,
                Some("[::ffff:127.0.0.1]:2"),
                None,
            ),
            r#"for="127.0.0.1:2""#,
        ),
    ] {
        assert_eq!(told.values(), [expected], "{case}");
    }
}

#[test]
fn h29_h30_random_names_are_new_each_time() {
    let told = |transforms| Told {
        transforms,
        name: "forwarded",
        remote: Some("[::1]:10"),
        host: Some("myHost:80"),
        existing: &[],
    };
    let random = told(r#"{ "Forwarded": "for", "ForFormat": "RandomAndRandomPort" }"#);
    let (first, second) = (random.values(), random.values());
    assert_ne!(first, second);
    let text = first[0]
        .strip_prefix("for=\"_")
        .unwrap()
        .strip_suffix('"')
        .unwrap();
    let (name, port) = text.split_once(":_").unwrap();
    assert_eq!((name.len(), port.len()), (9, 9));
    assert!(
        name.bytes()
            .chain(port.bytes())
            .all(|b| b.is_ascii_alphanumeric())
    );

    let all = told(
        r#"{ "Forwarded": "by,for,host,proto", "ForFormat": "IpAndPort", "ByFormat": "Random" }"#,
    );
    let all = all.values();
    let by = all[0]
        .strip_prefix(r#"proto=https;host="myHost:80";for="[::1]:10";by=_"#)
        .unwrap();
    assert_eq!(by.len(), 9);
}

#[test]
fn h31_h32_forwarded_is_appended_and_x_forwarded_removed() {
    let config = config(
        "/{**all}",
        r#"{ "Forwarded": "proto", "Action": "Append" }"#,
        "",
    );
    let request = request(
        "/",
        &[
            ("forwarded", "otherHeader"),
            ("x-forwarded-for", "1"),
            ("x-forwarded-host", "2"),
        ],
    );
    let forwarded = forwarded(
        &config,
        &request,
        ConnectionInfo::new(([1, 1, 1, 1], 1).into()),
    );
    assert_eq!(
        values(forwarded.headers(), "forwarded"),
        ["otherHeader", "proto=http"]
    );
    assert!(
        !forwarded
            .headers()
            .keys()
            .any(|name| name.as_str().starts_with("x-forwarded")),
        "{:?}",
        forwarded.headers()
    );
}

#[test]
fn the_header_for_a_client_certificate_cannot_be_forged() {
    let config = config("/{**all}", r#"{ "ClientCert": "x-cert" }"#, "");
    let request = request("/", &[("x-cert", "forged")]);
    let forwarded = forwarded(&config, &request, ConnectionInfo::default());
    assert!(!forwarded.headers().contains_key("x-cert"));
}
