//! Tags and what becomes of them.

use super::*;

const HERE: Surroundings<'static> = Surroundings {
    service: "shop.Web_1",
    entry_points: &[],
};

fn tags(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = list.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn translated(list: &[(&str, &str)]) -> (BTreeMap<String, String>, Vec<(String, String)>) {
    let translated = translate(&tags(list), HERE);
    let problems = translated.problems.iter();
    let problems = problems.map(|problem| (problem.pointer.clone(), problem.code.to_string()));
    let problems = problems.collect();
    (translated.labels.into_iter().collect(), problems)
}

#[test]
fn common_tags_become_labels() {
    let (labels, problems) = translated(&[
        ("traefik.enable", "true"),
        (
            "traefik.http.routers.Web.rule",
            "Host(`a.example`) && PathPrefix(`/x`)",
        ),
        ("traefik.http.routers.web.priority", "50"),
        ("traefik.http.services.web.loadbalancer.server.port", "8080"),
        (
            "traefik.http.services.web.loadbalancer.healthcheck.path",
            "/health",
        ),
        (
            "traefik.http.services.web.loadbalancer.sticky.cookie",
            "true",
        ),
    ]);
    let expected = tags(&[
        ("enable", "true"),
        ("routes.web.hosts", "a.example"),
        ("routes.web.path", "/x/{**rest}"),
        ("routes.web.order", "-50"),
        (
            "routes.web.transforms.[0].RequestHeaderOriginalHost",
            "true",
        ),
        ("cluster.healthCheck.active.enabled", "true"),
        ("cluster.healthCheck.active.path", "/health"),
        ("cluster.sessionAffinity.enabled", "true"),
        ("cluster.sessionAffinity.affinityKeyName", "_sticky"),
    ]);
    assert_eq!((labels, problems), (expected, vec![]));
}

/// Traefik makes the cookie as soon as one of its keys is there.
#[test]
fn any_key_of_a_sticky_cookie_switches_affinity_on() {
    let rule = ("traefik.http.routers.t.rule", "Host(`t.example`)");
    for (more, enabled, name) in [
        (&[("cookie.name", "lb")][..], "true", "lb"),
        (&[("cookie.secure", "true")], "true", "_sticky"),
        (
            &[("cookie.name", "lb"), ("cookie.secure", "true")],
            "true",
            "lb",
        ),
        (&[("cookie", "false"), ("cookie.name", "lb")], "false", "lb"),
    ] {
        let keys: Vec<_> = (more.iter())
            .map(|(key, value)| {
                let key = format!("traefik.http.services.t.loadbalancer.sticky.{key}");
                (key, *value)
            })
            .collect();
        let written = keys.iter().map(|(key, value)| (key.as_str(), *value));
        let all: Vec<_> = std::iter::once(rule).chain(written).collect();
        let (labels, _) = translated(&all);
        let of = |key: &str| labels.get(key).map(String::as_str);
        assert_eq!(
            of("cluster.sessionAffinity.enabled"),
            Some(enabled),
            "{more:?}"
        );
        let key = "cluster.sessionAffinity.affinityKeyName";
        assert_eq!(of(key), Some(name), "{more:?}");
    }
}

#[test]
fn alternatives_are_routes_of_their_own_and_longer_rules_come_first() {
    let rule = "Host(`a`) && Header(`X`, `1`) || PathPrefix(`/x`)";
    let (labels, problems) = translated(&[
        ("traefik.http.routers.r.rule", rule),
        (
            "traefik.http.services.s.loadbalancer.passHostHeader",
            "false",
        ),
    ]);
    let order = format!("-{}", rule.len());
    let expected = tags(&[
        ("routes.r.hosts", "a"),
        ("routes.r.path", "/{**rest}"),
        ("routes.r.headers.[0].name", "X"),
        ("routes.r.headers.[0].values", "1"),
        ("routes.r.order", &order),
        ("routes.r-2.path", "/x/{**rest}"),
        ("routes.r-2.order", &order),
    ]);
    assert_eq!((labels, problems), (expected, vec![]));
}

#[test]
fn what_cannot_be_said_is_left_out_and_named() {
    let (labels, problems) = translated(&[
        ("traefik.enable", "true"),
        ("traefik.http.routers.a.rule", "HostRegexp(`.*`)"),
        ("traefik.http.routers.b.rule", "Host(`b`)"),
        ("traefik.http.routers.b.service", "api@internal"),
        ("traefik.http.routers.c.entrypoints", "web"),
        ("traefik.http.middlewares.m.compress", "true"),
        ("traefik.tcp.routers.t.rule", "HostSNI(`*`)"),
    ]);
    assert_eq!(labels, tags(&[("enable", "true")]));
    let codes: BTreeSet<_> = problems
        .iter()
        .map(|(pointer, code)| (pointer.as_str(), code.as_str()))
        .collect();
    let expected = BTreeSet::from([
        ("/traefik.http.middlewares.m.compress", "traefik_ignored"),
        ("/traefik.http.routers.a.rule", "traefik_rule"),
        ("/traefik.http.routers.b.service", "traefik_service"),
        ("/traefik.http.routers.c.entrypoints", "traefik_entry_point"),
        ("/traefik.tcp.routers.t.rule", "traefik_ignored"),
    ]);
    assert_eq!(codes, expected);
}

#[test]
fn port_and_scheme_are_those_of_the_instance() {
    let server = |list: &[(&'static str, &'static str)]| {
        server_of(list.iter().copied(), Some("web")).unwrap_or_default()
    };
    let port = "Traefik.HTTP.services.web.loadbalancer.server.port";
    assert_eq!(server(&[(port, " 8080 ")]).port, Some(8080));
    assert_eq!(server(&[(port, "x")]), Server::default());
    let scheme = "traefik.http.services.web.loadbalancer.server.scheme";
    assert_eq!(
        server(&[(scheme, "https")]).scheme.as_deref(),
        Some("https")
    );
}

const RULE: (&str, &str) = ("traefik.http.routers.r.rule", "Host(`a`)");

/// The routes that are served, and the codes of what is not.
fn served(list: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let known = Surroundings {
        entry_points: &["web".to_owned()],
        ..HERE
    };
    let mut list = list.to_vec();
    list.push(("traefik.enable", "true"));
    let translated = translate(&tags(&list), known);
    let routes = translated.labels.keys().filter_map(|key| {
        let route = key.strip_prefix("routes.")?;
        route.strip_suffix(".order").map(str::to_owned)
    });
    let problems = translated.problems.iter();
    let codes = problems.map(|problem| problem.code.to_string());
    (routes.collect(), codes.collect())
}

fn left_out(code: &str) -> (Vec<String>, Vec<String>) {
    (vec![], vec![code.to_owned()])
}

/// A request that Traefik would reject is not let through.
#[test]
fn a_router_whose_protection_cannot_be_done_is_left_out() {
    const NAME: &str = "traefik.http.routers.r.middlewares";
    for kind in [
        "basicauth.users",
        "digestauth.users",
        "forwardauth.address",
        "ipallowlist.sourcerange",
        "ipwhitelist.sourcerange",
        "ratelimit.average",
        "inflightreq.amount",
        "headers.customrequestheaders.X-A",
        "plugin.p.x",
        "redirectscheme.scheme",
        "unheardof.x",
        "stripprefix.forceslash",
    ] {
        let key = format!("traefik.http.middlewares.Auth.{kind}");
        for name in ["auth", "Auth@consulcatalog", "compress,auth"] {
            let (routes, codes) = served(&[
                RULE,
                (NAME, name),
                (&key, "x"),
                ("traefik.http.middlewares.compress.compress", "true"),
            ]);
            assert!(routes.is_empty(), "{kind} {name}");
            assert!(
                codes.contains(&"traefik_middleware".to_owned()),
                "{codes:?}"
            );
        }
    }
    // What is defined elsewhere may be anything.
    for name in ["auth", "auth@file", "auth@docker"] {
        assert_eq!(
            served(&[RULE, (NAME, name)]),
            left_out("traefik_middleware")
        );
    }
    for setting in ["tls.options", "somethingnew"] {
        let key = format!("traefik.http.routers.r.{setting}");
        assert_eq!(
            served(&[RULE, (&key, "mtls@file")]),
            left_out("traefik_router")
        );
    }
    // Another router of the service goes on.
    let (routes, codes) = served(&[
        RULE,
        (NAME, "auth@file"),
        ("traefik.http.routers.open.rule", "Host(`b`)"),
    ]);
    assert_eq!(
        (routes, codes),
        (vec!["open".into()], vec!["traefik_middleware".into()])
    );
}

#[test]
fn entry_points_have_to_exist_here() {
    const KEY: &str = "traefik.http.routers.r.entryPoints";
    for (names, is_served) in [
        ("web", true),
        ("internal, WEB", true),
        ("internal", false),
        ("", false),
    ] {
        let expected = match is_served {
            true => (vec!["r".to_owned()], vec![]),
            false => left_out("traefik_entry_point"),
        };
        assert_eq!(served(&[RULE, (KEY, names)]), expected, "{names}");
    }
}

#[test]
fn prefixes_are_stripped_and_added() {
    let middlewares = [
        RULE,
        ("traefik.http.routers.r.middlewares", "both@consulcatalog"),
        ("traefik.http.middlewares.both.chain.middlewares", "s,a"),
        ("traefik.http.middlewares.s.stripprefix.prefixes", "/api/"),
        ("traefik.http.middlewares.a.addprefix.prefix", "/v2"),
    ];
    let (labels, problems) = translated(&middlewares);
    assert_eq!(problems, []);
    let of = |nth: usize, kind: &str| {
        labels
            .get(&format!("routes.r.transforms.[{nth}].{kind}"))
            .map(String::as_str)
    };
    assert_eq!(of(0, "RequestHeaderOriginalHost"), Some("true"));
    assert_eq!(of(1, "PathRemovePrefix"), Some("/api"));
    assert_eq!(of(2, "PathPrefix"), Some("/v2"));
    let mut two = middlewares;
    two[3].1 = "/a,/b";
    assert!(served(&two).0.is_empty());
    // One that is inside itself has an end.
    let mut cycle = middlewares;
    cycle[2].1 = "both";
    assert_eq!(served(&cycle).0, <[String; 0]>::default());
}

#[test]
fn services_of_traefik_are_one_cluster_or_none() {
    let port = |name: &str| format!("traefik.http.services.{name}.loadbalancer.server.port");
    let (a, b) = (port("sa"), port("sb"));
    let routers = [
        ("traefik.http.routers.a.rule", "Host(`a`)"),
        ("traefik.http.routers.a.service", "sa"),
        ("traefik.http.routers.b.rule", "Host(`b`)"),
        ("traefik.http.routers.b.service", "sb"),
    ];
    let with = |one: &'static str, other: &'static str| {
        let mut list = routers.to_vec();
        list.extend([(a.as_str(), one), (b.as_str(), other)]);
        list
    };
    assert_eq!(served(&with("81", "82")), left_out("traefik_services"));
    let both = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(served(&with("81", "81")).0, both);
    // Only one is used: its port is the cluster's.
    let list = &with("81", "82");
    let used: Vec<_> = list
        .iter()
        .filter(|(key, _)| !key.contains("routers.a."))
        .copied()
        .collect();
    let translated = translate(&tags(&used), HERE);
    assert_eq!(translated.service.as_deref(), Some("sb"));
    let server = server_of(used.iter().copied(), translated.service.as_deref());
    assert_eq!(server.unwrap().port, Some(82));
    // Traefik itself does not know which one is intended.
    let unsaid: Vec<_> = list
        .iter()
        .filter(|(key, _)| !key.ends_with("a.service"))
        .copied()
        .collect();
    assert_eq!(served(&unsaid).0, ["b"]);
    let others = [
        RULE,
        ("traefik.http.services.w.weighted.services[0].name", "x"),
    ];
    let (routes, codes) = served(&others);
    assert_eq!((routes.len(), codes[0].as_str()), (0, "traefik_service"));
}

#[test]
fn the_service_that_traefik_makes_up_has_the_name_of_consul_s() {
    const KEY: &str = "traefik.http.routers.r.service";
    assert_eq!(served(&[RULE, (KEY, "shop-web-1")]).0, ["r"]);
    assert_eq!(
        served(&[RULE, (KEY, "shop-web-2")]),
        left_out("traefik_service")
    );
}

#[test]
fn weights_and_mistakes_of_servers_are_those_of_the_instance() {
    let server = |setting: &str, value: &str| {
        let key = format!("traefik.http.services.s.loadbalancer.server.{setting}");
        server_of([(key.as_str(), value)].into_iter(), Some("s"))
    };
    assert_eq!(server("weight", " 3 ").unwrap().weight, Some(3));
    for (setting, value) in [
        ("weight", "x"),
        ("weight", "-1"),
        ("port", "x"),
        ("port", "0"),
    ] {
        server(setting, value).unwrap_err();
    }
}

/// The default rule is part of Traefik's configuration.
#[test]
fn a_service_without_routers_is_named() {
    assert_eq!(served(&[]), left_out("traefik_default_rule"));
}
