use super::{HostError, HostPattern, RequestHost};

fn matches(pattern: &str, authority: &str, https: bool) -> bool {
    let pattern = HostPattern::parse(pattern).unwrap();
    pattern.matches(&RequestHost::parse(authority, https))
}

#[test]
fn d04_d05_valid_hosts() {
    for text in [
        "example.com",
        "example.com:80",
        "*.example.com",
        "a-b.b-c.example.com",
        "ünicode",
        "ünicode:443",
        "my_service",
        "10.0.0.1:8080",
        "[::1]",
        "[::1]:8080",
        "[2001:DB8::1]:*",
        "example.com:*",
        "example.com.",
        "*",
        "*:8080",
        "*:*",
        "*.ünicode.com:65535",
    ] {
        let pattern = HostPattern::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(pattern.to_string(), text);
    }
}

/// YARP rejects them. Here a name in ASCII form is the same pattern as the name in Unicode.
#[test]
fn d06_names_in_punycode_are_those_in_unicode() {
    for (ascii, unicode) in [
        ("xn--nicode-2ya", "ünicode"),
        ("Xn--nicode-2ya", "ünicode"),
        ("XN--nicode-2YA:8080", "ünicode:8080"),
        ("a.xn--nicode-2ya:80", "a.ünicode:80"),
        ("xn--nicode-2ya:*", "ünicode:*"),
        ("xn--nicode-2ya.", "ünicode."),
        ("*.a.xn--nicode-2ya", "*.a.ünicode"),
        ("*.xn--nicode-2ya:65535", "*.ünicode:65535"),
        ("xn--bcher-kva.xn--fiqs8s", "bücher.中国"),
        ("xn--fa-hia.example", "faß.example"),
        ("ünicode.xn--fiqs8s", "xn--nicode-2ya.中国"),
        ("my_service.xn--fiqs8s", "my_service.中国"),
        ("Plain.example:80", "plain.example:80"),
        ("axn--b.example", "axn--b.example"),
        ("[::1]:80", "[::1]:80"),
    ] {
        let pattern = HostPattern::parse(ascii).unwrap_or_else(|e| panic!("{ascii}: {e}"));
        assert_eq!(pattern.as_str(), ascii);
        let again = HostPattern::parse(unicode).unwrap();
        assert_eq!(pattern.to_ascii(), again.to_ascii(), "{ascii}");
        assert_eq!(pattern.to_unicode(), again.to_unicode(), "{ascii}");
        assert_eq!(pattern.rank(), again.rank(), "{ascii}");
        assert_eq!(pattern.port(), again.port(), "{ascii}");
    }
}

#[test]
fn d06_what_is_the_ascii_form_of_no_name_is_rejected() {
    for text in [
        "xn--a",
        "xn--",
        "*.xn--a",
        "b.xn--a:80",
        "ü.xn--a",
        "xn--Nicode-",
        // The ASCII form of `ÜNICODE`, which no client sends.
        "xn--NICODE-osa",
    ] {
        let error = HostPattern::parse(text).unwrap_err();
        assert!(matches!(error, HostError::Idna { .. }), "{text}: {error}");
        let said = error.to_string();
        assert!(
            said.contains("is not a valid internationalized name"),
            "{said}"
        );
        let suggestion = text
            .is_ascii()
            .then(|| "write the name in Unicode".to_owned());
        assert_eq!(error.suggestion(), suggestion, "{text}");
    }
    for text in ["xn--nicode-2ya:x", "a..xn--nicode-2ya", "xn--*.example"] {
        HostPattern::parse(text).unwrap_err();
    }
}

#[test]
fn d07_invalid_hosts_are_rejected_with_a_suggestion() {
    for (text, message, suggestion) in [
        (
            "",
            "empty host name",
            Some("write a host such as `example.com`, or leave `Hosts` out"),
        ),
        (
            ":80",
            "no host name before the port",
            Some("write `*` before the port for any name"),
        ),
        (
            "example.com:",
            "`` is not a port from 1 to 65535",
            Some("write `example.com`"),
        ),
        ("example.com:0", "`0` is not a port from 1 to 65535", None),
        (
            "example.com:65536",
            "`65536` is not a port from 1 to 65535",
            None,
        ),
        (
            "example.com:+80",
            "`+80` is not a port from 1 to 65535",
            None,
        ),
        (
            "example.com:http",
            "`http` is not a port from 1 to 65535",
            None,
        ),
        (
            "::1",
            "`::1` is neither a name with a port nor an IPv6 address in brackets",
            Some("write `[::1]`"),
        ),
        (
            "[::1",
            "`[::1` is neither a name with a port nor an IPv6 address in brackets",
            None,
        ),
        (
            "[::g]",
            "`[::g]` is neither a name with a port nor an IPv6 address in brackets",
            None,
        ),
        (
            "[::1]x",
            "`[::1]x` is neither a name with a port nor an IPv6 address in brackets",
            None,
        ),
        (
            "http://example.com/a",
            "`http://example.com/a` is a URL, not a host",
            Some("write `example.com`"),
        ),
        (
            "example.com/a",
            "`/` cannot be in a host",
            Some("write `example.com` here and the rest in `Path` or `QueryParameters`"),
        ),
        (
            " example.com",
            "` ` cannot be in a host",
            Some("write `example.com`"),
        ),
        ("user@example.com", "`@` cannot be in a host", None),
        (
            "foo*.example.com",
            "`foo*.example.com` has a `*` that is not the whole first label",
            Some("write `*.example.com`"),
        ),
        (
            "a.*.com",
            "`a.*.com` has a `*` that is not the whole first label",
            Some("write `*.com`"),
        ),
        (
            "*com",
            "`*com` has a `*` that is not the whole first label",
            None,
        ),
        ("*.", "`*.` has an empty label", None),
        ("a..b", "`a..b` has an empty label", None),
        (".a", "`.a` has an empty label", None),
        (".", "`.` has an empty label", None),
    ] {
        let error = HostPattern::parse(text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text:?}");
        assert_eq!(error.suggestion().as_deref(), suggestion, "{text:?}");
    }
    assert_eq!(
        HostPattern::parse(&"a.".repeat(200)),
        Err(HostError::TooLong)
    );
}

#[test]
fn names_match_ignoring_case_and_in_either_form() {
    for authority in ["ünicode", "ÜNICODE", "xn--nicode-2ya", "XN--NICODE-2YA:80"] {
        for pattern in ["Ünicode", "xn--nicode-2ya", "XN--Nicode-2ya:80"] {
            assert!(matches(pattern, authority, false), "{pattern} {authority}");
        }
        let below = format!("a.{authority}");
        for pattern in ["*.ünicode", "*.xn--nicode-2ya", "*.XN--nicode-2ya:80"] {
            assert!(matches(pattern, &below, false), "{pattern} {below}");
            assert!(!matches(pattern, authority, false), "{pattern} {authority}");
        }
    }
    for pattern in ["ünicode", "xn--nicode-2ya"] {
        assert!(!matches(pattern, "unicode", false));
        assert!(!matches(pattern, "nicode-2ya", false));
    }
    assert!(!matches("xn--nicode-2ya:443", "ünicode", false));
}

#[test]
fn ports_match_as_named_or_by_default() {
    for (pattern, authority, https, expected) in [
        ("a:443", "a", true, true),
        ("a:443", "a", false, false),
        ("a:80", "a", false, true),
        ("a:80", "a:", false, true),
        ("a:80", "a:80", true, true),
        ("a:80", "a:080", true, true),
        ("a:80", "a:8080", false, false),
        ("a:80", "a:x", false, false),
        ("a:80", "a:65616", false, false),
        ("a:80", "a:+80", false, false),
        ("a", "a:x", false, true),
        ("*:80", "", false, true),
        ("*:8080", "[::1]:8080", false, true),
    ] {
        assert_eq!(
            matches(pattern, authority, https),
            expected,
            "{pattern} {authority}"
        );
    }
}

#[test]
fn ipv6_addresses_match_however_they_are_written() {
    for authority in [
        "[2001:db8::1]",
        "[2001:DB8::1]:99",
        "[2001:0db8:0:0:0:0:0:1]",
        "2001:db8::1",
    ] {
        assert!(matches("[2001:Db8:0::1]", authority, false), "{authority}");
    }
    for authority in [
        "[2001:db8::2]",
        "[",
        "[]",
        "[x]",
        "[2001:db8::1",
        "2001:db8::1:80",
    ] {
        assert!(!matches("[2001:db8::1]", authority, false), "{authority}");
    }
    assert!(!matches("*.1", "[::ffff:1.1.1.1]", false));
}

#[test]
fn requests_are_read_without_allocating() {
    use std::borrow::Cow;
    for authority in ["Example.com:80", "[2001:DB8::1]:80", "[x]:80", ""] {
        let host = RequestHost::parse(authority, false);
        assert!(matches!(host.name, Cow::Borrowed(_)), "{authority}");
        assert_eq!(host.port(), Some(80));
    }
}

#[test]
fn suffixes_come_with_the_number_of_their_labels() {
    let host = RequestHost::parse("a.b.c:80", false);
    assert!(host.suffixes().eq([(1, "c"), (2, "b.c")]));
    for authority in [".a.b", "a..b", "[::1.2.3.4]", "a", ""] {
        let host = RequestHost::parse(authority, false);
        assert_eq!(host.suffixes().count(), 0, "{authority}");
    }
}

#[test]
fn errors_are_short_whatever_the_pattern() {
    for text in [
        format!("http://{}", "a".repeat(900)),
        format!("xn--{}", "a".repeat(900)),
        format!("a:{}", "9".repeat(900)),
        format!("[{}", ":".repeat(900)),
        format!("{}*", "a".repeat(900)),
        format!("..{}", "a".repeat(900)),
        format!("{}/", "a".repeat(1_000_000)),
        "a\n*".into(),
    ] {
        let error = HostPattern::parse(&text).expect_err("it is rejected");
        assert!(error.to_string().len() < 300, "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert!(error.suggestion().is_none_or(|text| text.len() < 1_100));
    }
}

#[test]
fn patterns_for_the_same_hosts_are_equal_however_they_are_written() {
    let parse = |text: &str| HostPattern::parse(text).unwrap();
    let patterns: std::collections::HashSet<_> = [
        "b\u{fc}cher.example",
        "xn--bcher-kva.example",
        "B\u{dc}CHER.example",
    ]
    .into_iter()
    .map(parse)
    .collect();
    assert_eq!(patterns.len(), 1);
    for other in [
        "*.b\u{fc}cher.example",
        "b\u{fc}cher.example:80",
        "bucher.example",
    ] {
        assert!(!patterns.contains(&parse(other)), "{other}");
    }
}
