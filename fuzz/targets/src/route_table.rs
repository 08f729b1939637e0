//! Many routes, and the choice of the matching one.

use proxy_model::compiled::RouteIndex;
use proxy_model::matching::{
    HostPattern, Lookup, MethodSet, Mismatch, PathTemplate, RequestHost, RouteMatcher,
    RouteMatcherParts, RouteTable,
};

use crate::input::{Head, text};

/// Maximum number of routes. Each is compared with each request, so their product is bounded.
const MAX_ROUTES: usize = 64;
const MAX_REQUESTS: usize = 64;

/// Fuzzes routes, `order|template|host,host|METHOD,METHOD`, followed by an empty line and requests,
/// `METHOD authority path`.
///
/// The table returns the same as a comparison with every route in the order of precedence.
pub fn route_table(data: &[u8]) {
    let text = text(data);
    let mut lines = text.lines();
    let routes: Vec<_> = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .filter_map(route)
        .take(MAX_ROUTES)
        .collect();
    let table = RouteTable::build(&routes);
    for head in lines.filter_map(request).take(MAX_REQUESTS) {
        assert_eq!(
            table.find(&routes, &head),
            one_by_one(&routes, &head),
            "{head:?}"
        );
    }
}

fn route(line: &str) -> Option<(i32, RouteMatcher)> {
    let mut fields = line.split('|');
    let order = fields.next()?.parse().unwrap_or_default();
    let path = PathTemplate::parse(fields.next()?).ok()?;
    let list = |text: &str| -> Vec<String> {
        let items = text.split(',').filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    let hosts = list(fields.next().unwrap_or_default());
    let hosts = hosts.iter().map(|host| HostPattern::parse(host));
    let methods = list(fields.next().unwrap_or_default());
    let parts = RouteMatcherParts {
        path,
        hosts: hosts.collect::<Result<_, _>>().ok()?,
        methods: MethodSet::parse(&methods).ok()?,
        ..RouteMatcherParts::default()
    };
    Some((order, RouteMatcher::new(parts)))
}

fn request(line: &str) -> Option<Head<'_>> {
    let mut words = line.splitn(3, ' ');
    Some(Head {
        method: words.next()?,
        authority: words.next()?,
        path: words.next()?,
        ..Head::default()
    })
}

/// The expected result, found by a linear search.
fn one_by_one(routes: &[(i32, RouteMatcher)], head: &Head<'_>) -> Lookup {
    let host = RequestHost::parse(head.authority, head.is_https);
    let mut best = None;
    let mut allowed: Vec<&str> = Vec::new();
    for (position, (order, matcher)) in routes.iter().enumerate() {
        match matcher.check(head) {
            Ok(()) => {
                let rank = (matcher.precedence(*order, &host), position);
                assert!(
                    rank.0.is_some(),
                    "a route that takes a request has a precedence"
                );
                if best.is_none_or(|best| rank < best) {
                    best = Some(rank);
                }
            }
            Err(Mismatch::Method) => allowed.extend(matcher.methods().iter()),
            Err(_) => {}
        }
    }
    if let Some((_, position)) = best {
        let position = u32::try_from(position).expect("there are few");
        return Lookup::Matched(RouteIndex(position));
    }
    allowed.sort_unstable();
    allowed.dedup();
    match MethodSet::parse(&allowed) {
        Ok(methods) if !allowed.is_empty() => Lookup::MethodNotAllowed(methods),
        Ok(_) => Lookup::NotFound,
        Err(errors) => panic!("methods of a set make a set: {errors:?}"),
    }
}
