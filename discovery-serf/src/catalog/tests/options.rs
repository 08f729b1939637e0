//! Tests of the options.

use super::*;

fn build_with(members: &[Member], options: &CatalogOptions) -> ServiceCatalog {
    ServiceCatalog::build(members, options)
}

fn service(node: &str, address: &str, name: &str) -> Member {
    alive(node, address, &[("service", name), ("http-port", "80")])
}

#[test]
fn only_allowed_services_are_there() {
    let options = CatalogOptions::default().with_allowed_services(["orders"]);
    let members = [
        service("a", "10.0.0.1", "orders"),
        service("b", "10.0.0.2", "payments"),
        service("c", "10.0.0.3", "Orders"),
    ];
    let catalog = build_with(&members, &options);
    assert_eq!(
        services(&catalog),
        ["orders: 10.0.0.1:80 http://10.0.0.1:80"]
    );
    assert_eq!(catalog.listed_services, 1, "others do not count");
    assert_eq!(
        left_out(&catalog),
        [
            "b has a `service` that is not allowed",
            "c has a `service` that is not allowed"
        ]
    );
    assert_eq!(told(&catalog), [""; 0]);
    // The legacy service stays away if it is not allowed itself.
    let catalog = build_with(&members[1..], &options);
    assert!(!catalog.exposes_services && catalog.legacy.is_none());
    let plain = [alive("a", "10.0.0.1", &[("http-port", "80")])];
    assert_eq!(build_with(&plain, &options).legacy, None);
    let options = options.with_allowed_services(["backend"]);
    assert!(build_with(&plain, &options).legacy.is_some());
}

/// A claim of an excluded member must not remove the legacy service.
#[test]
fn who_is_not_allowed_does_not_end_legacy_mode() {
    let plain = alive("a", "10.0.0.1", &[("http-port", "80")]);
    let evil = service("e", "10.9.9.9", "evil");
    let by_name = CatalogOptions::default().with_allowed_services(["backend"]);
    let network = "10.0.0.0/24".parse().unwrap();
    let by_network = CatalogOptions::default().with_allowed_networks([network]);
    let odd = alive("o", "10.0.0.2", &[]);
    let odd = Member {
        tags: Tags::from([(&b"service"[..], &b"\xff"[..])]),
        ..odd
    };
    for (options, other) in [(&by_name, &evil), (&by_network, &evil), (&by_name, &odd)] {
        let catalog = build_with(&[plain.clone(), other.clone()], options);
        let legacy = catalog
            .legacy
            .expect("nobody else may say that there are services");
        assert_eq!(legacy.instances, []);
    }
    let catalog = build(&[plain, evil]);
    assert!(catalog.exposes_services && catalog.legacy.is_none());
}

/// A service that is kept without instances does not displace one that has some.
#[test]
fn a_live_service_goes_before_a_dead_one_that_differs_in_case() {
    let options = CatalogOptions::default().with_keep_empty_services(true);
    let members = [
        service("a", "10.0.0.1", "ORDERS").with_status(MemberStatus::Failed),
        service("b", "10.0.0.2", "orders"),
    ];
    let catalog = build_with(&members, &options);
    assert_eq!(
        services(&catalog),
        ["orders: 10.0.0.2:80 http://10.0.0.2:80"]
    );
    assert_eq!(
        catalog.listed_services, 1,
        "both are one to who compares ids"
    );
}

/// A node that serves nothing takes nothing from the only service.
#[test]
fn a_service_that_nobody_serves_is_none() {
    let web = service("w", "10.0.0.1", "web");
    for tags in [
        &[("service", "batch")][..],
        &[("service", "batch"), ("http-port", "0")],
        &[("service", "batch"), ("http-port", "80"), ("scheme", "ftp")],
    ] {
        let catalog = build(&[web.clone(), alive("b", "10.0.0.2", tags)]);
        assert_eq!(catalog.listed_services, 1, "{tags:?}");
    }
    let crashed = service("b", "10.0.0.2", "batch").with_status(MemberStatus::Failed);
    assert_eq!(build(&[web, crashed]).listed_services, 2);
}

#[test]
fn instances_are_in_allowed_networks() {
    let networks = ["10.0.0.0/24", "fd00::/8"].map(|network| network.parse().unwrap());
    let options = CatalogOptions::default()
        .with_allowed_networks(networks)
        .with_keep_empty_services(true);
    let members = [
        service("a", "10.0.0.1", "orders"),
        service("b", "fd00::1", "orders"),
        service("c", "::ffff:10.0.0.3", "orders"),
        service("d", "10.0.1.1", "orders"),
        service("e", "192.168.0.1", "stolen"),
        service("f", "192.168.0.2", "stolen").with_status(MemberStatus::Failed),
    ];
    let catalog = build_with(&members, &options);
    let instances = &catalog.services["orders"].instances;
    assert_eq!(instances.len(), 3);
    assert_eq!(
        told(&catalog),
        [
            "/members/e/address address_not_allowed",
            "/members/d/address address_not_allowed",
        ]
    );
    // Who may not serve may not keep a service either, nor be the reason that another is not the only one.
    assert_eq!(catalog.services.len(), 1);
    assert_eq!(catalog.listed_services, 1);
    assert_eq!(catalog.only_service().map(|name| &**name), Some("orders"));
    // So is the service that existed before there were others.
    let backends = ["10.0.0.1", "10.0.1.1"].map(|address| service(address, address, "backend"));
    assert_eq!(
        services(&build_with(&backends, &options)),
        ["backend: 10.0.0.1:80 http://10.0.0.1:80"]
    );
}

#[test]
fn a_service_without_instances_can_be_kept() {
    let options = CatalogOptions::default().with_keep_empty_services(true);
    let tags = [
        ("service", "orders"),
        ("http-port", "80"),
        ("host", "orders.local"),
    ];
    for status in ["failed", "left", "leaving", "none"] {
        let gone = with_status(status, "a", "10.0.0.1", &tags);
        let catalog = build_with(std::slice::from_ref(&gone), &options);
        let kept = &catalog.services["orders"];
        assert_eq!(kept.instances, [], "{status}");
        assert_eq!(kept.hint, RouteHint::Host("orders.local".to_owned()));
        assert_eq!(told(&catalog), [""; 0]);
        // Off, which is the default: it is removed.
        assert!(build(&[gone]).services.is_empty());
    }
    // Nothing is listed: nothing is kept.
    assert!(build_with(&[], &options).services.is_empty());
    // One that is there decides alone.
    let gone = with_status("failed", "a", "10.0.0.1", &tags);
    let mut there = orders("b", "10.0.0.2", &[("host", "new.local")]);
    let catalog = build_with(&[gone.clone(), there.clone()], &options);
    let hint = RouteHint::Host("new.local".to_owned());
    assert_eq!(catalog.services["orders"].hint, hint);
    // An instance without usable tags does not empty the service's place.
    there.tags.insert("http-port", "x");
    let catalog = build_with(&[gone, there], &options);
    assert_eq!(catalog.services["orders"].instances, []);
    assert_eq!(
        told(&catalog),
        ["/members/b/tags/http-port invalid_http_port"]
    );
}

#[test]
fn the_legacy_service_can_be_switched_off() {
    let options = CatalogOptions::default().with_legacy_backend(false);
    let catalog = build_with(&[alive("a", "10.0.0.1", &[("http-port", "80")])], &options);
    assert_eq!(catalog.legacy, None);
    assert_eq!(left_out(&catalog), ["a has no `service`"]);
}
