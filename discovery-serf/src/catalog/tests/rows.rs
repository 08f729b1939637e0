//! The rows of the catalog's table, by their numbers.

use proptest::prelude::*;

use super::*;

#[test]
fn row_1_a_service_with_everything() {
    let member = alive(
        "o1",
        "10.0.0.1",
        &[
            ("service", "orders"),
            ("http-port", "5000"),
            ("host", "orders.local"),
            ("health-path", "/healthz"),
            ("instance", "orders-1"),
        ],
    );
    let catalog = build(&[member]);
    assert_eq!(
        services(&catalog),
        ["orders: orders-1 http://10.0.0.1:5000"]
    );
    let service = &catalog.services["orders"];
    assert_eq!(service.hint, RouteHint::Host("orders.local".to_owned()));
    let instance = &service.instances[0];
    assert_eq!(instance.health_path.as_deref(), Some("/healthz"));
    assert_eq!((instance.weight, &*instance.member), (1, "o1"));
    assert!(catalog.exposes_services && catalog.legacy.is_none());
    assert_eq!(told(&catalog), [""; 0]);
    assert_eq!(left_out(&catalog), [""; 0]);
}

#[test]
fn row_2_a_service_by_its_path() {
    let member = alive(
        "p2",
        "10.0.0.1",
        &[
            ("service", "payments"),
            ("http-port", "6000"),
            ("route-path", "/payments/{**catch-all}"),
            ("scheme", "http"),
            ("instance", "payments-2"),
        ],
    );
    let catalog = build(&[member]);
    assert_eq!(
        services(&catalog),
        ["payments: payments-2 http://10.0.0.1:6000"]
    );
    let path = RouteHint::Path("/payments/{**catch-all}".to_owned());
    assert_eq!(catalog.services["payments"].hint, path);
}

#[test]
fn row_3_a_canary() {
    let web = |name, address, port, version, weight| {
        let tags = [
            ("service", "web"),
            ("http-port", port),
            ("route-path", "/{**catch-all}"),
            ("version", version),
            ("weight", weight),
        ];
        alive(name, address, &tags)
    };
    let catalog = build(&[
        web("w1", "10.0.0.1", "8080", "stable", "10"),
        web("w2", "10.0.0.2", "8081", "canary", "1"),
    ]);
    assert_eq!(
        services(&catalog),
        ["web: 10.0.0.1:8080 http://10.0.0.1:8080, 10.0.0.2:8081 http://10.0.0.2:8081"]
    );
    let instances = catalog.services["web"].instances.iter();
    let said: Vec<_> = instances
        .map(|i| (i.weight, i.version.as_deref().unwrap()))
        .collect();
    assert_eq!(said, [(10, "stable"), (1, "canary")]);
    assert_eq!(told(&catalog), [""; 0]);
}

#[test]
fn rows_4_5_and_6_only_members_that_are_alive() {
    for status in [
        "failed", "left", "leaving", "none", "", "ALIVE", "suspect", " alive",
    ] {
        let member = with_status(
            status,
            "gone",
            "10.0.0.2",
            &[("service", "orders"), ("http-port", "5000")],
        );
        let catalog = build(&[orders("here", "10.0.0.1", &[]), member]);
        assert_eq!(
            services(&catalog),
            ["orders: 10.0.0.1:5000 http://10.0.0.1:5000"],
            "{status}"
        );
        // It is no mistake to be away.
        assert_eq!(told(&catalog), [""; 0]);
        assert_eq!(catalog.left_out.len(), 1);
        assert_eq!(catalog.left_out[0].service.as_deref(), Some("orders"));
    }
}

#[test]
fn rows_7_and_8_both_tags_are_required() {
    let portless = alive("a", "10.0.0.1", &[("service", "orders")]);
    let nameless = alive("b", "10.0.0.2", &[("http-port", "5000")]);
    let catalog = build(&[portless, nameless]);
    assert_eq!(services(&catalog), [""; 0]);
    assert_eq!(
        told(&catalog),
        ["/members/a/tags/http-port missing_http_port"]
    );
    assert_eq!(
        left_out(&catalog),
        ["a has no `http-port`", "b has no `service`"]
    );
    // `b` has no service, `a` an invalid one.
    assert_eq!(
        catalog.unusable.keys().map(|n| &**n).collect::<Vec<_>>(),
        ["orders"]
    );
    assert!(catalog.exposes_services && catalog.legacy.is_none());
}

#[test]
fn rows_9_and_10_members_of_one_service_are_its_instances_by_key_or_address() {
    let catalog = build(&[
        orders("a", "10.0.0.1", &[("instance", "one")]),
        orders("b", "10.0.0.2", &[]),
        orders("c", "10.0.0.3", &[("instance", "  ")]),
        alive("d", "10.0.0.1", &[("service", "web"), ("http-port", "80")]),
    ]);
    assert_eq!(
        services(&catalog),
        [
            "orders: 10.0.0.2:5000 http://10.0.0.2:5000, 10.0.0.3:5000 http://10.0.0.3:5000, one http://10.0.0.1:5000",
            "web: 10.0.0.1:80 http://10.0.0.1:80",
        ]
    );
    assert_eq!(told(&catalog), [""; 0]);
}

proptest! {
    #[test]
    fn row_11_the_order_of_members_makes_no_difference(
        members in Just(mixed()).prop_shuffle(),
    ) {
        let catalog = build(&members);
        prop_assert_eq!(format!("{catalog:?}"), format!("{:?}", build(&mixed())));
    }
}

/// Members of which something is wrong with many.
fn mixed() -> Vec<Member> {
    vec![
        orders("n3", "10.0.0.3", &[("instance", "c"), ("host", "c.local")]),
        orders("n1", "10.0.0.1", &[("instance", "a"), ("weight", "x")]),
        orders("n2", "10.0.0.2", &[("instance", "b"), ("host", "b.local")]),
        orders("n4", "10.0.0.4", &[("instance", "b")]),
        orders("n5", "10.0.0.4", &[]),
        orders("n6", "fe80::1", &[]),
        orders("n7", "0.0.0.0", &[]),
        alive(
            "n8",
            "10.0.0.8",
            &[("service", "Orders"), ("http-port", "1")],
        ),
        alive(
            "n9",
            "10.0.0.9",
            &[("service", "\u{1}"), ("http-port", "1")],
        ),
        alive(
            "n9",
            "10.0.0.10",
            &[("service", "web"), ("http-port", "-1")],
        ),
        with_status("failed", "n10", "10.0.0.10", &[("service", "web")]),
        alive("n11", "10.0.0.11", &[]),
    ]
}

#[test]
fn row_11_instances_are_in_the_order_of_their_keys() {
    let named = |name, address, instance| orders(name, address, &[("instance", instance)]);
    let catalog = build(&[
        named("x", "10.0.0.1", "c"),
        named("y", "10.0.0.2", "a"),
        named("z", "10.0.0.3", "b"),
    ]);
    let keys = catalog.services["orders"].instances.iter();
    assert_eq!(keys.map(|i| &*i.key).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn row_12_keys_are_compared_byte_by_byte() {
    let catalog = build(&[
        orders("a", "10.0.0.1", &[("instance", "n2")]),
        orders("b", "10.0.0.2", &[("instance", "n10")]),
    ]);
    let keys = |catalog: &ServiceCatalog| -> Vec<String> {
        let instances = catalog.services["orders"].instances.iter();
        instances.map(|i| i.key.clone()).collect()
    };
    assert_eq!(keys(&catalog), ["n10", "n2"]);
    let catalog = build(&[orders("a", "10.0.0.9", &[]), orders("b", "10.0.0.10", &[])]);
    assert_eq!(keys(&catalog), ["10.0.0.10:5000", "10.0.0.9:5000"]);
}

#[test]
fn rows_17_and_18_names_are_trimmed_and_differ_by_more_than_case() {
    let named = |node, address, service| {
        alive(
            node,
            address,
            &[("service", service), ("http-port", "5000")],
        )
    };
    // Two names, and ids that are the same: the first by byte order serves.
    let catalog = build(&[
        named("a", "10.0.0.1", "orders"),
        named("b", "10.0.0.2", "Orders"),
        named("c", "10.0.0.3", " Orders\t"),
    ]);
    assert_eq!(
        services(&catalog),
        ["Orders: 10.0.0.2:5000 http://10.0.0.2:5000, 10.0.0.3:5000 http://10.0.0.3:5000"]
    );
    assert_eq!(told(&catalog), ["/Services/orders service_differs_in_case"]);
    assert_eq!(
        left_out(&catalog),
        ["a has a `service` that differs from `Orders` in case only"]
    );
    // While the first has no instance the other serves.
    let gone = named("b", "10.0.0.2", "Orders").with_status(MemberStatus::Failed);
    let catalog = build(&[named("a", "10.0.0.1", " orders "), gone]);
    assert_eq!(
        services(&catalog),
        ["orders: 10.0.0.1:5000 http://10.0.0.1:5000"]
    );
}

#[test]
fn row_19_a_name_may_have_any_visible_characters() {
    for name in [
        "a/b~c",
        "käse",
        "a b",
        "service:x",
        "{",
        "日本",
        "a@version=1",
    ] {
        let member = alive("n", "10.0.0.1", &[("service", name), ("http-port", "1")]);
        let catalog = build(&[member]);
        assert_eq!(
            services(&catalog),
            [format!("{name}: 10.0.0.1:1 http://10.0.0.1:1")]
        );
        assert_eq!(told(&catalog), [""; 0]);
    }
}

#[test]
fn rows_20_to_24_addresses() {
    for (row, address, expected) in [
        (20, "fd00::2", "[fd00::2]:5000 http://[fd00::2]:5000"),
        (21, "::ffff:10.0.0.7", "10.0.0.7:5000 http://10.0.0.7:5000"),
        (23, "127.0.0.1", "127.0.0.1:5000 http://127.0.0.1:5000"),
        (23, "::1", "[::1]:5000 http://[::1]:5000"),
    ] {
        let (instance, told) = only(orders("a", address, &[]));
        assert_eq!(
            format!("{} {}", instance.key, instance.address()),
            expected,
            "row {row}"
        );
        assert_eq!(told, [""; 0], "row {row}");
    }
    // Rows 22 and 23: nothing can be there.
    let mut nowhere = orders("a", "10.0.0.1", &[]);
    nowhere.address = None;
    for member in [
        nowhere,
        orders("a", "0.0.0.0", &[]),
        orders("a", "::", &[]),
        orders("a", "::ffff:0.0.0.0", &[]),
    ] {
        let catalog = build(&[member, orders("b", "10.0.0.2", &[])]);
        assert_eq!(
            services(&catalog),
            ["orders: 10.0.0.2:5000 http://10.0.0.2:5000"]
        );
        assert_eq!(told(&catalog), ["/members/a/address no_address"]);
        assert_eq!(catalog.left_out.len(), 1);
    }
}

#[test]
fn row_34_a_link_local_address_is_doubted() {
    let (instance, told) = only(orders("a", "fe80::2", &[]));
    assert_eq!(instance.address(), "http://[fe80::2]:5000");
    assert_eq!(told, ["/members/a/address link_local_address"]);
    assert_eq!(only(orders("a", "169.254.0.1", &[])).1, [""; 0]);
}

#[test]
fn row_29_other_tags_are_nobodys_business() {
    let more = [("role", "db"), ("Weight", "x"), ("", ""), ("host ", "a b")];
    let (instance, told) = only(orders("a", "10.0.0.1", &more));
    assert_eq!(told, [""; 0]);
    assert_eq!(instance, only(orders("a", "10.0.0.1", &[])).0);
}

#[test]
fn rows_30_and_31_instances_with_one_name_all_stay() {
    let named = |node, address| orders(node, address, &[("instance", "x")]);
    let catalog = build(&[named("b", "10.0.0.2"), named("a", "10.0.0.1")]);
    assert_eq!(
        services(&catalog),
        ["orders: x http://10.0.0.1:5000, x@10.0.0.2:5000 http://10.0.0.2:5000"]
    );
    assert_eq!(
        told(&catalog),
        ["/members/b/tags/instance duplicate_instance"]
    );
    // The lowest address gets the name, independent of the nodes' names; addresses are not texts.
    let catalog = build(&[
        named("a", "10.0.0.10"),
        named("b", "10.0.0.9"),
        named("c", "fd00::1"),
    ]);
    assert_eq!(
        services(&catalog),
        [
            "orders: x http://10.0.0.9:5000, x@10.0.0.10:5000 http://10.0.0.10:5000, x@[fd00::1]:5000 http://[fd00::1]:5000"
        ]
    );
    // In another service the name is free.
    let mut other = named("c", "10.0.0.3");
    other.tags.insert("service", "web");
    let catalog = build(&[named("a", "10.0.0.1"), other]);
    assert_eq!(told(&catalog), [""; 0]);
}

#[test]
fn row_31_names_are_one_if_they_differ_in_case_or_somebody_took_the_other_one() {
    let named = |node, address, key| orders(node, address, &[("instance", key)]);
    let catalog = build(&[
        named("a", "10.0.0.1", "X"),
        named("b", "10.0.0.2", "x"),
        named("c", "10.0.0.3", "X@10.0.0.2:5000"),
        named("d", "10.0.0.4", "10.0.0.5:5000"),
        orders("e", "10.0.0.5", &[]),
    ]);
    let keys = catalog.services["orders"].instances.iter();
    let keys: Vec<_> = keys.map(|i| (&*i.member, &*i.key)).collect();
    assert_eq!(
        keys,
        [
            ("d", "10.0.0.5:5000"),
            ("e", "10.0.0.5:5000@10.0.0.5:5000"),
            ("a", "X"),
            ("c", "X@10.0.0.2:5000"),
            ("b", "x@10.0.0.2:5000@10.0.0.2:5000"),
        ]
    );
}

#[test]
fn rows_32_and_33_an_address_is_one_destination_of_a_service() {
    let catalog = build(&[
        orders("b", "10.0.0.1", &[("instance", "second")]),
        orders(
            "a",
            "10.0.0.1",
            &[("instance", "first"), ("scheme", "https")],
        ),
        alive(
            "c",
            "10.0.0.1",
            &[("service", "web"), ("http-port", "5000")],
        ),
    ]);
    assert_eq!(
        services(&catalog),
        [
            "orders: first https://10.0.0.1:5000",
            "web: 10.0.0.1:5000 http://10.0.0.1:5000",
        ]
    );
    assert_eq!(told(&catalog), ["/members/b/address duplicate_address"]);
    assert_eq!(left_out(&catalog), ["b has the address of `a`"]);
}

#[test]
fn row_35_keys_are_compared_exactly() {
    let tags = [("Service", "orders"), ("HTTP-PORT", "5000")];
    let catalog = build(&[alive("a", "10.0.0.1", &tags)]);
    assert!(!catalog.exposes_services);
    assert_eq!(services(&catalog), [""; 0]);
    assert_eq!(left_out(&catalog), ["a has no `service`"]);
}
