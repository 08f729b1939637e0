mod keeper;

use std::collections::BTreeSet;

use super::announce::{Change, Earlier, Node};
use super::*;

fn orders() -> Registration {
    Registration::new("orders", 5000)
}

#[test]
fn a_registration_is_tags() {
    let registration = Registration::new("web", 8080)
        .scheme("https")
        .host("web.example")
        .route_path("/{**rest}")
        .health_path("/healthz")
        .weight(10)
        .version("stable")
        .region("eu")
        .instance("web-1")
        .tag("team", "blue");
    let expected = Tags::from([
        ("service", "web"),
        ("http-port", "8080"),
        ("scheme", "https"),
        ("host", "web.example"),
        ("route-path", "/{**rest}"),
        ("health-path", "/healthz"),
        ("weight", "10"),
        ("version", "stable"),
        ("region", "eu"),
        ("instance", "web-1"),
        ("team", "blue"),
    ]);
    assert_eq!(*registration.tags(), expected);
    assert_eq!(registration.service(), "web");
    registration.check().unwrap();
}

#[test]
fn what_a_proxy_would_not_understand_is_rejected_by_name() {
    let wrong = [
        ("http-port", Registration::new("orders", 0)),
        ("service", Registration::new("or\nders", 5000)),
        ("scheme", orders().scheme("ftp")),
        ("host", orders().host("a b")),
        ("host", orders().host("a\r\nX: y")),
        ("route-path", orders().route_path("/a/{")),
        ("route-path", orders().route_path("/a/{**x}/b")),
        ("health-path", orders().health_path("/health z")),
        ("weight", orders().weight(1001)),
        ("weight", orders().tag("weight", "-3")),
        ("instance", orders().instance("a\u{7}b")),
        ("service", orders().tag("service", [0xff])),
    ];
    for (tag, registration) in wrong {
        match registration.check() {
            Err(RegistrationError::InvalidTag(error)) => {
                assert_eq!(error.tag(), tag, "{registration:?}");
                let message = RegistrationError::from(error).to_string();
                assert!(message.contains(tag), "{message}");
                assert!(message.contains("expected"), "{message}");
            }
            other => panic!("{registration:?}: {other:?}"),
        }
    }
    for service in ["", "  "] {
        let unnamed = Registration::new(service, 5000).check();
        assert!(matches!(unnamed, Err(RegistrationError::NoService)));
    }
}

#[test]
fn what_a_proxy_understands_is_accepted() {
    for registration in [
        orders(),
        orders().weight(0).weight(1000),
        orders().scheme("").host("").route_path("").health_path(""),
        orders()
            .route_path("orders/{**rest}")
            .health_path("healthz"),
        // Arbitrary bytes stay within the limit in tags for people only.
        orders().tag("note", [0xff, 0x00]).region("eu west"),
    ] {
        registration
            .check()
            .unwrap_or_else(|error| panic!("{registration:?}: {error}"));
    }
}

#[test]
fn lengths_are_those_of_the_gossip() {
    let long = |len: usize| "v".repeat(len);
    let many = |count: usize| -> Tags { (0..count).map(|n| (n.to_string(), "")).collect() };
    for (tags, expected) in [
        (Tags::new(), 2),
        (Tags::from([("k", "")]), 2 + 2 + 1),
        (Tags::from([("k", long(31))]), 2 + 2 + 1 + 31),
        // There is no form for 8-bit lengths.
        (Tags::from([("k", long(32))]), 2 + 2 + 3 + 32),
        (Tags::from([("k", long(0xffff))]), 2 + 2 + 3 + 0xffff),
        (Tags::from([("k", long(0x1_0000))]), 2 + 2 + 5 + 0x1_0000),
        (many(15), 2 + 10 * 3 + 5 * 4),
        (many(16), 4 + 10 * 3 + 6 * 4),
    ] {
        assert_eq!(encoded_len(&tags), expected, "{tags:?}");
    }
}

#[test]
fn tags_that_are_too_long_are_all_named_with_their_lengths() {
    let fitting = Registration::new("s", 80);
    let room = MAX_ENCODED_TAGS - fitting.encoded_len() - "note".len() - 1 - 3;
    fitting
        .clone()
        .tag("note", "n".repeat(room))
        .check()
        .unwrap();

    let error = fitting.tag("note", "n".repeat(room + 1)).check();
    let Err(RegistrationError::TagsTooLong(error)) = error else {
        panic!("{error:?}");
    };
    assert_eq!((error.encoded, error.limit), (513, 512));
    let lengths: Vec<_> = error
        .tags
        .iter()
        .map(|t| (t.tag.as_str(), t.encoded))
        .collect();
    assert_eq!(
        lengths,
        [
            ("note", 5 + 3 + room + 1),
            ("http-port", 13),
            ("service", 10)
        ]
    );
    let message = error.to_string();
    assert_eq!(
        message,
        format!(
            "the node's tags take 513 bytes of 512; shorten them by 1: `note` takes {}, `http-port` takes 13, \
             `service` takes 10",
            room + 9
        )
    );
}

fn node<const N: usize>(tags: [(&str, &str); N]) -> Node {
    Node {
        name: "n1".to_owned(),
        tags: Tags::from(tags),
    }
}

fn keys<const N: usize>(keys: [&str; N]) -> BTreeSet<String> {
    keys.map(str::to_owned).into()
}

#[test]
fn only_what_differs_is_told() {
    let told = orders().weight(5).tag("team", "blue");
    let node = node([
        ("service", "orders"),
        ("http-port", "5000"),
        ("weight", "4"),
        ("host", "old.example"),
        ("rack", "r7"),
    ]);
    let change = node.change_to(&told, &Earlier::default()).unwrap();
    let expected = Change {
        set: Tags::from([("weight", "5"), ("team", "blue")]),
        // Tags of an earlier form of the service are removed; other tags stay.
        delete: keys(["host"]),
    };
    assert_eq!(change, expected);

    let same = Node {
        tags: told.tags().clone(),
        ..node
    };
    let nothing = same.change_to(&told, &Earlier::default()).unwrap();
    assert_eq!(nothing, Change::default());
}

#[test]
fn own_tags_that_are_no_longer_wanted_go() {
    let mut earlier = Earlier::default();
    earlier.add(&orders().tag("team", "blue"));
    let node = node([
        ("service", "orders"),
        ("http-port", "5000"),
        ("team", "blue"),
    ]);
    let change = node.change_to(&orders(), &earlier).unwrap();
    assert_eq!(change.delete, keys(["team"]));
    assert_eq!(
        node.change_from(&earlier).delete,
        keys(["http-port", "service", "team"])
    );
}

#[test]
fn a_node_announces_one_service() {
    let node = node([
        ("service", "payments"),
        ("http-port", "6000"),
        ("weight", "5"),
    ]);
    match node.change_to(&orders(), &Earlier::default()) {
        Err(RegistrationError::Occupied { node, service }) => {
            assert_eq!((node.as_str(), service.as_str()), ("n1", "payments"));
        }
        other => panic!("{other:?}"),
    }
    let change = node
        .change_to(&orders().take_over(true), &Earlier::default())
        .unwrap();
    assert_eq!(change.set, *orders().tags());
    assert_eq!(change.delete, keys(["weight"]));

    // Its own earlier name is no other service.
    let mut earlier = Earlier::default();
    earlier.add(&Registration::new("payments", 6000));
    node.change_to(&orders(), &earlier).unwrap();

    // The announcement of another service is not withdrawn.
    let mut earlier = Earlier::default();
    earlier.add(&orders());
    assert_eq!(node.change_from(&earlier), Change::default());
}

#[test]
fn tags_that_the_node_has_besides_count() {
    let long = "x".repeat(400);
    let node = node([("inventory", &long)]);
    let registration = orders().host("h".repeat(60)).tag("note", "n".repeat(60));
    registration.check().unwrap();
    match node.change_to(&registration, &Earlier::default()) {
        Err(RegistrationError::TagsTooLong(error)) => {
            assert_eq!(error.tags[0].tag, "inventory");
            assert!(
                error.to_string().contains("`inventory` takes 413"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}
