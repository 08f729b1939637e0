//! Addresses of replicas, and which of their endpoints can be used.

use super::*;

fn address(listeners: &str) -> String {
    format!(r#"{{"Endpoints":{{{listeners}}}}}"#)
}

fn chosen(address: &str, listener: Option<&str>, schemes: Schemes) -> Result<String, String> {
    let endpoints = Endpoints::parse(address).map_err(|error| error.to_string())?;
    let endpoint = endpoints.choose(listener, schemes);
    endpoint.map(|e| e.url).map_err(|error| error.to_string())
}

#[test]
fn urls_are_normalised() {
    for (written, expected) in [
        ("https://h:443", "https://h/"),
        ("HTTPS://Host.Example/Path/", "https://host.example/Path/"),
        ("https://h:8443/a b", ""),
        ("https://h/%7Ea?q", ""),
        ("https://h/#f", ""),
        ("https://user@h/", ""),
        ("https://:secret@h/", ""),
        ("https://h:0/", ""),
        ("https://h:99999/", ""),
        ("https:/h/", ""),
        ("https://+:8443/", ""),
        ("https://*:8443/", ""),
        ("https://0.0.0.0:8443/", ""),
        ("https://[::]:8443/", ""),
        ("https:///h/", ""),
        ("https://h\\@other/", ""),
        ("//h/", ""),
        ("h:443", ""),
        ("https://h\"\"/", ""),
        ("https://{h}/", ""),
        ("https://", ""),
        ("https://[::1]:8443", "https://[::1]:8443/"),
        ("https://bücher.example", "https://xn--bcher-kva.example/"),
    ] {
        let found = chosen(
            &address(&format!(r#""l":{}"#, serde_json::json!(written))),
            None,
            Schemes::All,
        );
        assert_eq!(
            found.as_deref().unwrap_or_default(),
            expected,
            "{written}: {found:?}"
        );
        assert!(!format!("{found:?}").contains("secret"));
    }
}

#[test]
fn urls_are_as_long_as_they_may_be_and_no_longer_even_when_encoded() {
    let long = |filler: &str, count: usize| {
        let written = format!("https://h/{}", filler.repeat(count));
        chosen(&written, None, Schemes::Secure)
    };
    assert_eq!(long("x", 2038).map(|url| url.len()), Ok(2048));
    assert_eq!(long("é", 339).map(|url| url.len()), Ok(2044));
    for found in [long("x", 2039), long("é", 340)] {
        assert_eq!(
            found,
            Err("its listener `` is a URL that is too long".into())
        );
    }
}

#[test]
fn what_has_no_list_is_one_listener_without_a_name() {
    assert_eq!(
        chosen(" https://h:8443 ", None, Schemes::Secure),
        Ok("https://h:8443/".into())
    );
    assert_eq!(
        chosen("https://h", Some(""), Schemes::Secure),
        Ok("https://h/".into())
    );
    assert_eq!(
        chosen("https://h", Some("web"), Schemes::Secure),
        Err("it has no listener `web`, only ``".into())
    );
    assert_eq!(
        chosen("10.0.0.1:20001+1-2-3", None, Schemes::Secure),
        Err("its listener `` is not an absolute URL".into())
    );
}

#[test]
fn what_cannot_be_read_is_told() {
    for (address, expected) in [
        ("", "it has not published an address yet"),
        ("  \n", "it has not published an address yet"),
        ("{", "its address is not a list of endpoints: EOF"),
        (
            "{}",
            "its address is not a list of endpoints: it has no object `Endpoints`",
        ),
        (
            r#"{"Endpoints":null}"#,
            "its address is not a list of endpoints: it has no object `Endpoints`",
        ),
        (
            r#"{"Endpoints":[]}"#,
            "its address is not a list of endpoints: it has no object `Endpoints`",
        ),
        (
            r#"{"endpoints":{"a":"https://h"}}"#,
            "its address is not a list of endpoints",
        ),
        (r#"{"Endpoints":{}}"#, "it has published no endpoints"),
        (
            r#"{"Endpoints":{"a":{}}}"#,
            "its listener `a` is not an absolute URL",
        ),
        (
            r#"{"Endpoints":{"r":"net.tcp://h:1/"}}"#,
            "its listener `r` has the scheme `net.tcp`, which is not spoken; no option allows it",
        ),
    ] {
        let found = chosen(address, None, Schemes::All).unwrap_err();
        assert!(found.starts_with(expected), "{address}: {found}");
    }
    let deep = format!("{{\"Endpoints\":{}", "[".repeat(50_000));
    assert!(chosen(&deep, None, Schemes::All).is_err());
    let long = format!("https://h/{}", "x".repeat(70_000));
    assert_eq!(Endpoints::parse(&long), Err(EndpointError::TooLong));
    let many: Vec<_> = (0..300).map(|i| format!(r#""l{i}":"https://h""#)).collect();
    assert_eq!(
        Endpoints::parse(&address(&many.join(","))),
        Err(EndpointError::TooMany)
    );
}

/// R01, R04, R07, R08.
#[test]
fn the_first_that_can_be_used_is_taken_and_a_named_one_or_none() {
    let mixed =
        address(r#""d":"https://d","A":"::","B":"http://b","C":"net.tcp://c:1/","":"not a url""#);
    assert_eq!(
        chosen(&mixed, None, Schemes::Secure),
        Ok("https://d/".into())
    );
    assert_eq!(chosen(&mixed, None, Schemes::All), Ok("http://b/".into()));
    assert_eq!(
        chosen(&mixed, Some("d"), Schemes::Secure),
        Ok("https://d/".into())
    );
    let told = chosen(&mixed, Some("D"), Schemes::Secure).unwrap_err();
    assert_eq!(told, "it has no listener `D`, only ``, `A`, `B`, `C`, …");
    let told = chosen(
        &address(r#""a":"http://a","b":"net.tcp://b:1/""#),
        None,
        Schemes::Secure,
    )
    .unwrap_err();
    assert_eq!(
        told,
        "its listener `a` has the scheme `http`, which the option `DiscoverInsecureHttpDestinations` would allow; its \
         listener `b` has the scheme `net.tcp`, which is not spoken; no option allows it"
    );
    let endpoints = Endpoints::parse(&address(r#""web":"https://h""#)).unwrap();
    let error = endpoints.choose(Some("wbe"), Schemes::Secure).unwrap_err();
    assert_eq!(error.suggestion().as_deref(), Some("did you mean `web`?"));
}

/// .NET compares UTF-16: U+FF5E comes after the surrogates of U+1F600 there, and before it in UTF-8.
#[test]
fn names_are_in_the_order_of_net() {
    let endpoints = Endpoints::parse(&address(
        "\"\u{ff5e}\":\"https://b\",\"\u{1f600}\":\"https://a\"",
    ))
    .unwrap();
    assert_eq!(
        endpoints.names().collect::<Vec<_>>(),
        ["\u{1f600}", "\u{ff5e}"]
    );
}

#[test]
fn one_bad_replica_does_not_hide_the_others() {
    let replicas = vec![
        replica(3, "https://h3"),
        replica(1, ""),
        replica(2, r#"{"Endpoints":{"a":"http://h2"}}"#),
        replica(3, "https://elsewhere"),
    ];
    let parsed = parse(&service(
        ServiceKind::Stateless,
        &[],
        vec![singleton(replicas)],
    ));
    assert_eq!(
        problems(&parsed),
        [
            "warning at /: 2 of 3 replicas cannot be used: P1/1: it has not published an address yet; P1/2: its listener \
             `a` has the scheme `http`, which the option `DiscoverInsecureHttpDestinations` would allow"
        ]
    );
    let results: Vec<_> = parsed
        .replicas
        .iter()
        .map(|r| (r.replica_id, r.result.is_ok()))
        .collect();
    assert_eq!(results, [(1, false), (2, false), (3, true)]);
    let config = parsed.config.unwrap();
    // Of two with one id, the same one is used in any order.
    assert_eq!(
        addresses(&config.clusters[0]),
        [("P1/3", "https://elsewhere/")]
    );
}

/// The warning names a few of any number. A partition without any usable replica has the other warning.
#[test]
fn replicas_that_are_left_out_are_named_in_one_warning() {
    let many: Vec<_> = (1..=7).map(|id| replica(id, "https://+:1")).collect();
    let mut some = many.clone();
    some.push(replica(8, "https://h8"));
    let pairs = [
        ("YARP.Backend.ServiceFabric.PartitionMode", "PerPartition"),
        ("YARP.Routes.r.Path", "/"),
    ];
    let partitions = vec![range("P1", 0, 9, some), range("P2", 10, 19, many)];
    let parsed = parse(&service(ServiceKind::Stateful, &pairs, partitions));
    let codes: Vec<_> = parsed.problems.iter().map(|p| &*p.code).collect();
    assert_eq!(codes, ["no_usable_endpoint", "replica_not_usable"]);
    let told = problems(&parsed);
    assert!(told[0].contains("in 1 of 2 partitions"), "{}", told[0]);
    assert!(
        told[1].starts_with("warning at /: 7 of 15 replicas cannot be used: P1/1: its listener"),
        "{}",
        told[1]
    );
    assert!(
        told[1].contains("P1/4: ") && !told[1].contains("P1/5: "),
        "{}",
        told[1]
    );
    assert!(told[1].ends_with("; 3 more"), "{}", told[1]);
    let destinations: usize = parsed
        .config
        .unwrap()
        .clusters
        .values()
        .map(|cluster| cluster.destinations.len())
        .sum();
    assert_eq!(destinations, 1);
}
