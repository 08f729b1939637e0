//! Tests of domains that not every service may use.

use super::world::World;

/// Domains for which this project's gateways would respond with 503 are reported.
#[test]
fn domains_that_gateways_cannot_take_are_reported() {
    for domain in [
        "*-w.example",
        "*w.example:80",
        "pre.*",
        "xn--a",
        "a_b[.example",
    ] {
        let tag = format!("domain-{domain}");
        let served = World::new()
            .live("j@sas=10.0.0.1:80", &["domain-x", &tag])
            .translate();
        assert_eq!(served.codes(), ["domain_not_for_gateways"], "{domain}");
        assert!(served.host("j").domains.iter().any(|said| said == domain));
        let message = &served.translation.warnings[0].message;
        assert!(message.contains(domain), "{message}");
    }
    let file = "services: [{name: s, domains: ['*-w.example'], endpoints: ['10.0.0.1:80']}]";
    let served = World::new().fixed(file).translate();
    assert_eq!(served.codes(), ["domain_not_for_gateways"]);
    let tags = ["domain-*.example", "domain-xn--nicode-2ya", "domain-a:8080"];
    let served = World::new().live("j@sas=10.0.0.1:80", &tags).translate();
    assert_eq!(served.codes(), <[&str; 0]>::default());
}

/// Clients send names in ASCII form, and Envoy compares bytes.
#[test]
fn names_beyond_ascii_are_sent_in_ascii_form() {
    let tags = ["domain-Ünicode", "domain-*-ü.example"];
    let served = World::new().live("j@sas=10.0.0.1:80", &tags).translate();
    let expected = ["xn--nicode-2ya", "xn--nicode-2ya:80"];
    assert_eq!(served.host("j").domains, expected);
    assert_eq!(served.codes(), ["bad_domain"]);
    let file = "services: [{name: s, domains: ['ünicode'], endpoints: ['10.0.0.1:80']}]";
    let served = World::new().fixed(file).translate();
    assert_eq!(served.host("s").domains, expected);
}

/// Envoy rejects a domain that is there twice, so the whole service would not be served.
#[test]
fn domains_with_and_without_a_port_are_merged() {
    let tags = [
        "domain-z.example",
        "domain-Z.example:80",
        "domain-z.example:81",
    ];
    let served = World::new().live("j@sas=10.0.0.1:80", &tags).translate();
    let expected = ["z.example", "z.example:80", "z.example:81"];
    assert_eq!(served.host("j").domains, expected);
    assert_eq!(served.codes(), <[&str; 0]>::default());
    let file =
        "services: [{name: s, domains: ['z.example', 'z.example:80'], endpoints: ['10.0.0.1:80']}]";
    let served = World::new().fixed(file).translate();
    assert_eq!(served.host("s").domains, expected[..2]);
}
