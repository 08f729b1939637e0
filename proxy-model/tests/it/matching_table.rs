//! The route table finds what looking at every route in the order of precedence finds.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;
use proptest::sample::select;
use proxy_model::RequestHead;
use proxy_model::compiled::RouteIndex;
use proxy_model::config::{HeaderMatchMode, RouteHeader, RouteQueryParameter};
use proxy_model::matching::{
    HeaderMatcher, HostPattern, Lookup, MethodSet, Mismatch, PathTemplate, Precedence,
    QueryMatcher, RequestHost, RouteMatcher, RouteMatcherParts, RouteTable,
};

/// An order and a matcher, which is all that a table needs to know of a route.
type Route = (i32, RouteMatcher);

// Few words, so that routes overlap and requests match.
const SEGMENTS: [&str; 14] = [
    "a",
    "b",
    "B",
    "a.b",
    "{{}}",
    "ä",
    "{p}",
    "{p:int}",
    "{p:alpha}",
    "{p:regex(^[ab])}",
    "{p}.{q}",
    "x{p}",
    "{p?}",
    "{p=b}",
];
const ENDS: [&str; 7] = [
    "{e?}",
    "{e=a}",
    "{e:int?}",
    "{**e}",
    "{*e:minlength(3)}",
    "{**e:nonfile}",
    "{e}.{f?}",
];
const HOSTS: [&str; 14] = [
    "h.com",
    "a.h.com",
    "a.h.com:80",
    "*.h.com",
    "*.h.com:80",
    "*.a.h.com",
    "*.com",
    "*:80",
    "*:443",
    "*",
    "[::1]",
    "ü.com",
    "XN--tda.com",
    "*.xn--tda.com:80",
];
const METHODS: [&str; 4] = ["GET", "POST", "OPTIONS", "PURGE"];

const REQUEST_SEGMENTS: [&str; 14] = [
    "a", "A", "b", "ab", "7", "a.b", "a.", "xa", "", "%61", "%C3%A4", "%2F", "%zz", "%7B%7d",
];
const AUTHORITIES: [&str; 15] = [
    "h.com",
    "H.com:80",
    "a.h.com",
    "A.H.COM:443",
    "b.a.h.com",
    "b.a.h.com:80",
    "b.h.com:8080",
    "a..h.com",
    ".h.com",
    "[::1]:80",
    "xn--tda.com",
    "ü.com",
    "a.ü.com",
    "other",
    "",
];
const QUERIES: [Option<&str>; 4] = [None, Some("q1=v"), Some("q2=v&x"), Some("q1=v&Q2=%76")];
const HEADERS: [(&str, &str); 6] = [
    ("h1", "v"),
    ("h1", "x, v"),
    ("h2", "v"),
    ("h2", "x"),
    ("origin", "o"),
    ("access-control-request-method", "GET"),
];

#[derive(Clone, Debug)]
struct Head {
    method: &'static str,
    authority: &'static str,
    path: String,
    query: Option<&'static str>,
    https: bool,
    headers: Vec<(&'static str, &'static str)>,
}

impl RequestHead for Head {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query
    }

    fn authority(&self) -> &str {
        self.authority
    }

    fn is_https(&self) -> bool {
        self.https
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        for (other, value) in &self.headers {
            if *other == name && !each(value.as_bytes()) {
                return;
            }
        }
    }
}

fn template() -> impl Strategy<Value = PathTemplate> {
    let segments = prop::collection::vec(select(&SEGMENTS), 0..4);
    (segments, prop::option::of(select(&ENDS))).prop_map(|(segments, end)| {
        let mut text = String::new();
        for (index, segment) in segments.into_iter().chain(end).enumerate() {
            text.push('/');
            // Names must be distinct.
            text.push_str(
                &segment
                    .replace("{p", &format!("{{p{index}"))
                    .replace("{q", &format!("{{q{index}")),
            );
        }
        PathTemplate::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    })
}

fn host() -> impl Strategy<Value = HostPattern> {
    select(&HOSTS).prop_map(|host| HostPattern::parse(host).unwrap())
}

fn header() -> impl Strategy<Value = HeaderMatcher> {
    const MODES: [HeaderMatchMode; 3] = [
        HeaderMatchMode::ExactHeader,
        HeaderMatchMode::NotContains,
        HeaderMatchMode::Exists,
    ];
    (select(&["h1", "h2"]), select(&MODES)).prop_map(|(name, mode)| {
        HeaderMatcher::new(&RouteHeader {
            name: name.into(),
            values: (mode != HeaderMatchMode::Exists).then(|| vec!["v".into()]),
            mode,
            is_case_sensitive: false,
        })
        .unwrap()
    })
}

fn query() -> impl Strategy<Value = QueryMatcher> {
    select(&["q1", "q2"]).prop_map(|name| {
        QueryMatcher::new(&RouteQueryParameter {
            name: name.into(),
            values: Some(vec!["v".into()]),
            ..RouteQueryParameter::default()
        })
        .unwrap()
    })
}

/// Often nothing, so that most routes have few criteria.
fn some<S>(strategy: S) -> impl Strategy<Value = Vec<S::Value>>
where
    S: Strategy,
    S::Value: Clone,
{
    prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(strategy, 1..3),
    ]
}

fn route() -> impl Strategy<Value = Route> {
    let methods = prop_oneof![Just(Vec::new()), prop::sample::subsequence(&METHODS, 1..3)];
    let criteria = (
        template(),
        some(host()),
        methods,
        some(header()),
        some(query()),
    );
    (
        prop_oneof![4 => Just(0), 1 => -1..2],
        criteria,
        any::<bool>(),
    )
        .prop_map(
            |(order, (path, hosts, methods, headers, query), accepts_preflight)| {
                let matcher = RouteMatcher::new(RouteMatcherParts {
                    path,
                    hosts,
                    methods: MethodSet::parse(&methods).unwrap(),
                    headers,
                    query,
                    accepts_preflight,
                });
                (order, matcher)
            },
        )
}

fn head() -> impl Strategy<Value = Head> {
    (
        select(&["GET", "get", "POST", "OPTIONS", "PURGE", "BREW"]),
        select(&AUTHORITIES),
        prop::collection::vec(select(&REQUEST_SEGMENTS), 0..5),
        any::<bool>(),
        select(&QUERIES),
        any::<bool>(),
        prop::sample::subsequence(&HEADERS, 0..4),
    )
        .prop_map(
            |(method, authority, segments, slash, query, https, headers)| Head {
                method,
                authority,
                path: format!("/{}{}", segments.join("/"), if slash { "/" } else { "" }),
                query,
                https,
                headers,
            },
        )
}

fn precedence(route: &Route, head: &Head) -> Option<Precedence> {
    let (order, matcher) = route;
    matcher.precedence(*order, &RequestHost::parse(head.authority, head.https))
}

/// The same route for all methods.
fn for_all_methods(matcher: &RouteMatcher) -> RouteMatcher {
    RouteMatcher::new(RouteMatcherParts {
        path: matcher.path().clone(),
        hosts: matcher.hosts().to_vec(),
        methods: MethodSet::default(),
        headers: matcher.headers().to_vec(),
        query: matcher.query().to_vec(),
        accepts_preflight: false,
    })
}

/// The expected result of the table, found by checking every route.
fn reference(routes: &[Route], head: &Head) -> Lookup {
    let best = routes
        .iter()
        .enumerate()
        .filter(|(_, (_, matcher))| matcher.check(head).is_ok())
        .min_by_key(|(index, route)| (precedence(route, head), *index));
    if let Some((index, _)) = best {
        return Lookup::Matched(RouteIndex(index.try_into().unwrap()));
    }
    let mut allowed = Vec::new();
    for (_, matcher) in routes {
        match for_all_methods(matcher).check(head) {
            Ok(()) => allowed.extend(matcher.methods().iter()),
            Err(Mismatch::Header(_) | Mismatch::Query(_)) if matcher.methods().takes_all() => {
                return Lookup::NotFound;
            }
            Err(_) => {}
        }
    }
    if allowed.is_empty() {
        return Lookup::NotFound;
    }
    allowed.sort_unstable();
    allowed.dedup();
    Lookup::MethodNotAllowed(MethodSet::parse(&allowed).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_table_finds_what_the_reference_finds(
        routes in prop::collection::vec(route(), 0..30),
        heads in prop::collection::vec(head(), 20),
    ) {
        let table = RouteTable::build(&routes);
        for head in &heads {
            prop_assert_eq!(table.find(&routes, head), reference(&routes, head), "{:?}", head);
        }
    }

    #[test]
    fn precedence_is_a_total_order(
        routes in prop::collection::vec(route(), 3),
        head in head(),
    ) {
        let [a, b, c] = [0, 1, 2].map(|i| precedence(&routes[i], &head));
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }

    #[test]
    fn routes_with_the_same_criteria_take_the_same_requests(
        a in route(),
        b in route(),
        heads in prop::collection::vec(head(), 20),
    ) {
        prop_assert!(a.1.same_criteria(&a.1));
        prop_assert_eq!(a.1.same_criteria(&b.1), b.1.same_criteria(&a.1));
        if a.1.same_criteria(&b.1) {
            for head in &heads {
                prop_assert_eq!(a.1.check(head).is_ok(), b.1.check(head).is_ok());
            }
        }
    }

    #[test]
    fn a_host_that_matches_has_a_precedence(route in route(), head in head()) {
        let rejected = route.1.check(&head) == Err(Mismatch::Host);
        prop_assert_eq!(precedence(&route, &head).is_none(), rejected);
    }
}
