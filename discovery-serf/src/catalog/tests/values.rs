//! Tests of the values of tags, valid and invalid.

use super::*;

/// Returns the instance of `orders` with one tag set to any bytes, and the codes of its problems.
#[track_caller]
fn with(key: &str, value: impl AsRef<[u8]>) -> (Option<Service>, Vec<String>) {
    let mut member = orders("a", "10.0.0.1", &[]);
    member.tags.insert(key, value.as_ref());
    let mut catalog = build(&[member, orders("b", "10.0.0.2", &[("instance", "~b")])]);
    let told = told(&catalog);
    let mut service = catalog.services.remove("orders").expect("`b` is in order");
    let all = service.instances.len();
    service
        .instances
        .retain(|instance| &*instance.member == "a");
    assert_eq!(all, 1 + service.instances.len());
    ((!service.instances.is_empty()).then_some(service), told)
}

#[test]
fn row_13_a_port_that_is_none_skips_the_instance() {
    for port in [
        "",
        " ",
        "abc",
        "0",
        "00",
        "65536",
        "065536",
        "-1",
        "+80",
        "80.0",
        "0x50",
        "8 0",
        "8e3",
        "８０",
        "99999999999999999999",
        "80,81",
    ] {
        let (service, told) = with("http-port", port);
        assert_eq!(service, None, "{port}");
        assert_eq!(
            told,
            ["/members/a/tags/http-port invalid_http_port"],
            "{port}"
        );
    }
    let (service, told) = with("http-port", b"80\xff");
    assert_eq!((service, told.len()), (None, 1));
}

#[test]
fn rows_14_and_15_ports() {
    for (text, port) in [
        (" 8080 ", 8080),
        ("08080", 8080),
        ("000000000000000000000080", 80),
        ("1", 1),
        ("65535", 65535),
    ] {
        let (service, told) = with("http-port", text);
        assert_eq!(service.unwrap().instances[0].socket.port(), port);
        assert_eq!(told, [""; 0]);
    }
}

#[test]
fn row_16_a_blank_service_is_none() {
    for blank in ["", "  ", "\t\n"] {
        let member = alive("a", "10.0.0.1", &[("service", blank), ("http-port", "1")]);
        let catalog = build(&[member]);
        assert!(!catalog.exposes_services);
        assert!(catalog.services.is_empty() && catalog.legacy.is_some());
        assert_eq!(told(&catalog), ["/members/a/tags/service missing_service"]);
    }
}

#[test]
fn rows_24_25_and_26_schemes() {
    for (text, expected) in [
        ("", Scheme::Http),
        (" ", Scheme::Http),
        ("http", Scheme::Http),
        ("HTTPS", Scheme::Https),
        (" https ", Scheme::Https),
    ] {
        let (service, told) = with("scheme", text);
        assert_eq!(service.unwrap().instances[0].scheme, expected);
        assert_eq!(told, [""; 0]);
    }
    for text in ["ftp", "h2c", "http://", "https:", "tcp", "ws", "http s"] {
        let (service, told) = with("scheme", text);
        assert_eq!(service, None, "{text}");
        assert_eq!(told, ["/members/a/tags/scheme invalid_scheme"]);
    }
    assert_eq!(with("scheme", b"http\xff").0, None);
}

#[test]
fn row_27_informational_tags_never_matter() {
    for key in ["region", "version"] {
        let of = |value: &[u8]| {
            let (service, told) = with(key, value);
            assert_eq!(told, [""; 0]);
            let instance = service.unwrap().instances.remove(0);
            match key {
                "region" => instance.region,
                _ => instance.version,
            }
        };
        assert_eq!(of(b"\xff\xfe").unwrap(), "\u{fffd}\u{fffd}");
        assert_eq!(of(b" eu ").unwrap(), "eu");
        assert_eq!(of(b"a\r\nb").unwrap(), "a\u{fffd}\u{fffd}b");
        assert_eq!(of(b"  "), None);
        assert_eq!(of("ü".repeat(10_000).as_bytes()).unwrap().len(), 512);
        let odd = format!("x{}", "ü".repeat(10_000));
        assert_eq!(of(odd.as_bytes()).unwrap().len(), 511);
    }
}

#[test]
fn row_28_bytes_that_are_no_text_in_a_tag_that_is_used() {
    let mut member = orders("a", "10.0.0.1", &[]);
    member.tags.insert("service", &b"orders\xff"[..]);
    let catalog = build(&[member, orders("b", "10.0.0.2", &[])]);
    assert_eq!(
        services(&catalog),
        ["orders: 10.0.0.2:5000 http://10.0.0.2:5000"]
    );
    assert_eq!(told(&catalog), ["/members/a/tags/service invalid_service"]);
    assert_eq!(
        catalog.problems.iter().next().unwrap().message,
        "node `a`: `service` is `orders\\xff`: expected text in UTF-8; the node gets no requests"
    );
    // A cluster in which all names are garbage has services nevertheless.
    let mut member = orders("a", "10.0.0.1", &[]);
    member.tags.insert("service", &b"\xff"[..]);
    let catalog = build(&[member]);
    assert!(catalog.exposes_services && catalog.legacy.is_none());
    for key in ["host", "route-path", "health-path", "weight", "instance"] {
        let (service, told) = with(key, b"\xff");
        assert_eq!(service.unwrap().instances[0].key, "10.0.0.1:5000");
        assert_eq!(told.len(), 1, "{key}");
    }
}

#[test]
fn rows_44_and_45_hosts() {
    for (text, expected) in [
        ("orders.local", "orders.local"),
        (" orders.local ", "orders.local"),
        ("Orders.Local", "Orders.Local"),
        ("*.orders.local", "*.orders.local"),
        ("orders.local:8443", "orders.local:8443"),
        ("[fd00::1]", "[fd00::1]"),
        ("orders.local.", "orders.local"),
        ("orders.local.:8443", "orders.local:8443"),
    ] {
        let (service, told) = with("host", text);
        assert_eq!(service.unwrap().hint, RouteHint::Host(expected.to_owned()));
        assert_eq!(told, [""; 0]);
    }
    for text in [
        "a b",
        "a/b",
        "a\r\nX: y",
        "a\0b",
        "http://a",
        "a:0",
        "a..b",
        "a*b",
    ] {
        let (service, told) = with("host", text);
        let service = service.unwrap();
        assert_eq!(service.hint, RouteHint::Unusable, "{text:?}");
        assert_eq!(service.instances[0].host, None);
        assert_eq!(told, ["/members/a/tags/host invalid_host"]);
    }
    assert_eq!(with("host", "").0.unwrap().hint, RouteHint::None);
}

#[test]
fn rows_46_47_and_48_paths_of_routes() {
    for (text, expected) in [
        ("/orders/{**rest}", "/orders/{**rest}"),
        ("orders/{**rest}", "/orders/{**rest}"),
        (" /orders ", "/orders"),
        ("/", "/"),
        ("/{id:int}", "/{id:int}"),
    ] {
        let (service, told) = with("route-path", text);
        assert_eq!(service.unwrap().hint, RouteHint::Path(expected.to_owned()));
        assert_eq!(told, [""; 0]);
    }
    let many = "/a".repeat(200);
    for text in [
        "/a/{",
        "/a/{**x}/b",
        "/a b",
        "/a\r\nX: y",
        "/a\u{7f}",
        "/a?b",
        "//a",
        "/{a}{b}",
        &many,
        "/{a:regex(x+)}",
        "/{a:int:RegEx(x+)}",
    ] {
        let (service, told) = with("route-path", text);
        assert_eq!(service.unwrap().hint, RouteHint::Unusable, "{text:?}");
        assert_eq!(told, ["/members/a/tags/route-path invalid_route_path"]);
    }
}

#[test]
fn rows_49_and_50_paths_of_probes() {
    for (text, expected) in [
        ("", None),
        (" ", None),
        ("healthz", Some("/healthz")),
        ("/h/%20", Some("/h/%20")),
        ("//x", Some("//x")),
    ] {
        let (service, told) = with("health-path", text);
        let service = service.unwrap();
        assert_eq!(service.instances[0].health_path.as_deref(), expected);
        assert_eq!(told, [""; 0]);
    }
    for text in ["/a b", "/a\r\nX: y", "/a?b=c", "/#", "\u{1}", "/\u{202e}a"] {
        let (service, told) = with("health-path", text);
        assert_eq!(service.unwrap().instances[0].health_path, None);
        assert_eq!(told, ["/members/a/tags/health-path invalid_health_path"]);
    }
}

#[test]
fn rows_52_to_55_weights() {
    for (text, weight) in [
        ("5", 5),
        (" 5 ", 5),
        ("", 1),
        ("0", 0),
        ("1000", 1000),
        ("007", 7),
    ] {
        let (service, told) = with("weight", text);
        assert_eq!(service.unwrap().instances[0].weight, weight);
        assert_eq!(told, [""; 0]);
    }
    for (text, weight) in [
        ("abc", 1),
        ("1.5", 1),
        ("-3", 1),
        ("+3", 1),
        ("1e2", 1),
        ("99999999999999999999", 1),
        ("1001", 1000),
        ("4294967297", 1000),
        ("18446744073709551615", 1000),
    ] {
        let (service, told) = with("weight", text);
        assert_eq!(service.unwrap().instances[0].weight, weight, "{text}");
        assert_eq!(told, ["/members/a/tags/weight invalid_weight"]);
    }
    let mut member = orders("a", "10.0.0.1", &[]);
    member.tags.remove("weight");
    assert_eq!(only(member).0.weight, 1);
}

#[test]
fn a_value_that_no_gossip_carries_is_not_looked_at() {
    let long = "x".repeat(513);
    for key in ["service", "instance", "host", "route-path", "health-path"] {
        let mut member = orders("a", "10.0.0.1", &[]);
        member.tags.insert(key, long.as_str());
        let catalog = build(&[member]);
        assert_eq!(told(&catalog).len(), 1, "{key}");
        let problem = format!("{catalog:?}");
        assert!(problem.contains("expected at most 512 bytes"));
        assert!(!problem.contains(&long[..200]), "it is cut off");
    }
}

#[test]
fn what_is_told_names_node_tag_value_and_what_was_expected() {
    let mut member = orders("n/1\u{1b}", "10.0.0.1", &[("http-port", "80\n00")]);
    member.tags.insert("weight", "x");
    let catalog = build(&[member]);
    let problem = catalog.unusable["orders"].iter().next().unwrap();
    assert_eq!(
        problem.to_string(),
        "warning at /members/n~11\\u{1b}/tags/http-port: node `n/1\\u{1b}`: `http-port` is `80\\n00`: \
         expected a port from 1 to 65535, in digits; the node gets no requests"
    );
    let catalog = build(&[orders(
        "a",
        "10.0.0.1",
        &[("host", "http://orders.local/x")],
    )]);
    let problem = catalog.services["orders"].problems.iter().next().unwrap();
    assert_eq!(problem.suggestion.as_deref(), Some("write `orders.local`"));
}

#[test]
fn what_registers_is_held_to_the_same_rules() {
    assert_eq!(tags::weight(b"7"), Ok(7));
    let error = tags::weight(b"7000").unwrap_err();
    assert_eq!((error.tag(), error.value()), ("weight", "7000"));
    assert_eq!(
        error.reason(),
        "expected a whole number from 0 to 1000, in digits"
    );
    assert_eq!(error.suggestion(), None);
    assert!(tags::can_be_asked_for("v1.2-rc+3"));
    for label in ["", "a b", "a,b", "ü", &"x".repeat(65)] {
        assert!(!tags::can_be_asked_for(label), "{label}");
    }
}
