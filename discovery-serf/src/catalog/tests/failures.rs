//! Tests of whole clusters: outages, changes that reach one node after the other, and hostile members.

use super::*;

#[test]
fn row_61_an_outage_does_not_bring_the_legacy_service_back() {
    let gone = with_status(
        "failed",
        "a",
        "10.0.0.1",
        &[("service", "orders"), ("http-port", "5000")],
    );
    let plain = alive("b", "10.0.0.2", &[("http-port", "80")]);
    let catalog = build(&[gone, plain]);
    assert!(catalog.exposes_services);
    assert_eq!(catalog.legacy, None);
    assert_eq!(services(&catalog), [""; 0]);
    assert_eq!(left_out(&catalog), ["a is failed", "b has no `service`"]);
}

#[test]
fn rows_60_64_and_65_a_member_without_a_service_is_no_destination() {
    let catalog = build(&[
        alive("a", "10.0.0.2", &[("http-port", "80"), ("host", "a b")]),
        alive("b", "10.0.0.1", &[("http-port", "81"), ("weight", "3")]),
        alive("c", "10.0.0.3", &[]),
        alive("d", "10.0.0.4", &[("http-port", "x")]),
        with_status("failed", "e", "10.0.0.5", &[("http-port", "80")]),
    ]);
    let legacy = catalog.legacy.as_ref().expect("there are members");
    assert_eq!(
        (&legacy.instances[..], &legacy.hint),
        (&[][..], &RouteHint::None)
    );
    // Those that could serve are reported, the others never intended to.
    assert_eq!(
        told(&catalog),
        [
            "/members/a/tags/service missing_service",
            "/members/b/tags/service missing_service"
        ]
    );
    assert_eq!(catalog.left_out.len(), 5);

    let nobody = build(&[alive("c", "10.0.0.3", &[])]);
    assert_eq!(nobody.legacy, Some(Service::default()));
    assert_eq!(build(&[]), ServiceCatalog::default());
}

/// One request to a proxy that is its own destination became thousands.
#[test]
fn only_members_of_the_service_backend_are_backends() {
    let own = alive("gw", "10.0.0.1", &[("http-port", "8080")]);
    let backend = alive(
        "b",
        "10.0.0.2",
        &[("service", "backend"), ("http-port", "80")],
    );
    let catalog = build(&[own.clone(), backend]);
    assert_eq!(
        services(&catalog),
        ["backend: 10.0.0.2:80 http://10.0.0.2:80"]
    );
    assert_eq!(left_out(&catalog), ["gw has no `service`"]);
    assert_eq!((catalog.legacy.as_ref(), told(&catalog)), (None, vec![]));
    // Without any, requests get 503.
    let alone = build(&[own]);
    assert_eq!(
        destinations(&alone.legacy.expect("there is a member")),
        [""; 0]
    );
}

#[test]
fn rows_41_42_and_43_the_first_valid_hint_decides() {
    let hint = |first: Pairs<'_>, second: Pairs<'_>| {
        let catalog = build(&[
            orders("a", "10.0.0.1", first),
            orders("b", "10.0.0.2", second),
        ]);
        let service = catalog.services["orders"].clone();
        assert_eq!(service.instances.len(), 2, "both stay");
        (service.hint, told(&catalog))
    };
    let host = |text: &str| RouteHint::Host(text.to_owned());
    let conflict = "/members/b/tags/host conflicting_hints".to_owned();
    // Row 41.
    assert_eq!(hint(&[], &[("host", "b.local")]), (host("b.local"), vec![]));
    // Row 42.
    let both = hint(&[("host", "a.local")], &[("host", "b.local")]);
    assert_eq!(both, (host("a.local"), vec![conflict]));
    // Row 43.
    let mixed = hint(&[("route-path", "/y")], &[("host", "x")]);
    assert_eq!(mixed, (host("x"), vec![]));
    // One that cannot be used does not decide.
    let (used, told) = hint(&[("host", "a b")], &[("host", "b.local")]);
    assert_eq!((used, told.len()), (host("b.local"), 1));
    // Two ways to write the same thing.
    assert_eq!(
        hint(&[("host", "x.local")], &[("host", "X.LOCAL")]).1,
        [""; 0]
    );
    let paths = hint(&[("route-path", "/x/{**a}")], &[("route-path", "x/{**b}")]);
    assert_eq!(paths.1, [""; 0]);
    let paths = hint(&[("route-path", "/x")], &[("route-path", "/y")]);
    assert_eq!(paths.0, RouteHint::Path("/x".to_owned()));
    assert_eq!(paths.1, ["/members/b/tags/route-path conflicting_hints"]);
}

#[test]
fn a_service_is_listed_until_its_members_say_that_they_leave() {
    let other = |status| {
        with_status(
            status,
            "b",
            "10.0.0.2",
            &[("service", "web"), ("http-port", "80")],
        )
    };
    for (status, listed) in [("alive", 2), ("failed", 2), ("left", 1), ("leaving", 1)] {
        let catalog = build(&[orders("a", "10.0.0.1", &[]), other(status)]);
        assert_eq!(catalog.listed_services, listed, "{status}");
    }
}

#[test]
fn one_bad_member_costs_nobody_else_anything() {
    let good: Vec<_> = (1..=50)
        .map(|i| orders(&format!("n{i}"), &format!("10.0.0.{i}"), &[]))
        .collect();
    let expected = build(&good).services["orders"].instances.clone();
    for (key, value) in [
        ("http-port", "x"),
        ("scheme", "gopher"),
        ("service", "\u{1b}[31m"),
        ("service", ""),
    ] {
        let mut members = good.clone();
        members.push(orders("n0", "10.0.0.200", &[(key, value)]));
        let catalog = build(&members);
        assert_eq!(
            catalog.services["orders"].instances, expected,
            "{key}={value}"
        );
    }
}

#[test]
fn a_mistake_that_all_make_is_told_a_hundred_times() {
    let members: Vec<_> = (0..5_000_u32)
        .map(|i| {
            let address = std::net::Ipv4Addr::from(0x0a00_0000 + i).to_string();
            orders(&format!("n{i:05}"), &address, &[("weight", "heavy")])
        })
        .collect();
    let catalog = build(&members);
    let problems = &catalog.services["orders"].problems;
    assert_eq!(problems.len(), 101);
    let last = problems.iter().last().unwrap();
    assert_eq!(last.code, "too_many_problems");
    assert_eq!(last.message, "4900 more problems are not shown");
}

#[test]
fn a_name_without_end_is_cut_off_where_it_is_shown() {
    let name = "ü".repeat(100_000);
    let catalog = build(&[orders(&name, "10.0.0.1", &[("weight", "x")])]);
    let problem = catalog.services["orders"].problems.iter().next().unwrap();
    assert!(
        problem.to_string().len() < 1_000,
        "{}",
        problem.to_string().len()
    );
}
