//! Domains of virtual hosts.

use proxy_model::Problems;
use xds_types::pb::envoy::config::route::v3::VirtualHost;
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;

use super::foreign::{answers, host, read, to};

fn leads(domains: &[&str], cluster: &str) -> VirtualHost {
    host(
        domains,
        vec![to(cluster, PathSpecifier::Prefix("/".into()))],
    )
}

fn rejected(problems: &Problems) -> Vec<String> {
    problems.errors().map(|p| p.pointer.clone()).collect()
}

/// One service's domain must not stop the routes of all others.
#[test]
fn a_domain_that_cannot_be_honoured_is_rejected_alone() {
    for bad in [
        "*-w.example",
        "*w.example:80",
        "pre.*",
        "a.*.example",
        "*",
        "xn--a",
        "::1",
        "a b",
        "",
        "*e*",
        "\"",
    ] {
        for any in [false, true] {
            let mut hosts = vec![leads(&["good.example"], "good")];
            if any || bad == "*" {
                hosts.push(leads(&["*"], "any"));
            }
            hosts.push(leads(&[bad, "other.example"], "bad"));
            let (_, problems) = read(hosts.clone()).unwrap();
            assert_eq!(problems.error_count(), 1, "{bad}: {problems}");
            assert_eq!(
                answers(hosts, &[("good.example", "/"), ("other.example", "/x")]),
                ["good", "bad"],
                "{bad}"
            );
        }
    }
}

#[test]
fn requests_for_a_rejected_domain_get_to_no_other_virtual_host() {
    let hosts = vec![
        leads(&["*"], "any"),
        leads(&["*.example"], "example"),
        leads(&["x-w.example"], "exact"),
        leads(&["*-w.example", "pre.*", "*v.test:80", "b"], "bad"),
        leads(&["*.y-w.example"], "longer"),
    ];
    let requests = [
        ("b", "/"),
        ("a-w.example", "/"),
        ("A-W.EXAMPLE", "/"),
        ("pre.test", "/"),
        ("aV.test:80", "/"),
        ("x-w.example", "/"),
        ("z.y-w.example", "/"),
        ("w.example", "/"),
        ("test", "/"),
        ("apre.test", "/"),
        // Suffixes of Envoy are tried before prefixes.
        ("pre.example", "/"),
        // What the condition takes beyond the domain.
        ("a-w.example.test", "/"),
    ];
    assert_eq!(
        answers(hosts.clone(), &requests),
        [
            "bad", "503", "503", "503", "503", "exact", "longer", "example", "any", "any",
            "example", "503"
        ]
    );
    let (_, problems) = read(hosts).unwrap();
    let place = "/route_configuration/main/*-w.example/domains";
    assert_eq!(rejected(&problems), [place; 3]);
    let message = &problems.errors().next().unwrap().message;
    assert!(
        message.contains("whose host contains `-w.example` get 503"),
        "{message}"
    );
}

/// Envoy's domains are in ASCII form; the model's hosts are in Unicode.
#[test]
fn names_beyond_ascii_are_taken_in_either_form() {
    for domains in [["xn--nicode-2ya"], ["ünicode"], ["XN--nicode-2ya:*"]] {
        let hosts = vec![
            leads(&["*"], "any"),
            leads(&domains, "idn"),
            leads(&["*.xn--nicode-2ya:8080"], "below"),
        ];
        let (_, problems) = read(hosts.clone()).unwrap();
        assert!(!problems.has_errors(), "{problems}");
        let requests = [
            ("xn--nicode-2ya", "/"),
            ("XN--NICODE-2YA:81", "/"),
            ("ünicode", "/"),
            ("a.xn--nicode-2ya:8080", "/"),
            ("a.xn--nicode-2ya", "/"),
            ("unicode", "/"),
        ];
        let expected = ["idn", "idn", "idn", "below", "any", "any"];
        assert_eq!(answers(hosts, &requests), expected);
        let is_reported = problems.iter().any(|p| p.pointer.ends_with("/domains"));
        assert_eq!(is_reported, domains == ["ünicode"], "{problems}");
    }
}

/// Envoy rejects a configuration with a domain in two virtual hosts.
#[test]
fn a_domain_of_two_virtual_hosts_is_the_first_ones() {
    let hosts = vec![
        leads(&["a", "xn--nicode-2ya", "*"], "first"),
        leads(&["A", "b", "ünicode"], "second"),
        leads(&["*"], "third"),
    ];
    let (_, problems) = read(hosts.clone()).unwrap();
    assert_eq!(
        rejected(&problems),
        [
            "/route_configuration/main/A/domains",
            "/route_configuration/main/A/domains",
            "/route_configuration/main/*/domains"
        ]
    );
    let requests = [("a", "/"), ("b", "/"), ("ünicode", "/"), ("c", "/")];
    assert_eq!(
        answers(hosts, &requests),
        ["first", "second", "first", "first"]
    );
}
