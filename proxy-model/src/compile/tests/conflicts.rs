//! Routes that take each other's requests.

use super::*;
use crate::RequestHead;
use crate::matching::Lookup;

/// A GET of this host and path, with these headers.
struct Get(
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

impl RequestHead for Get {
    fn method(&self) -> &'static str {
        "GET"
    }

    fn path(&self) -> &str {
        self.1
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn authority(&self) -> &str {
        self.0
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        for (_, value) in self.2.iter().filter(|(known, _)| *known == name) {
            if !each(value.as_bytes()) {
                return;
            }
        }
    }
}

fn path(path: &str) -> Value {
    json!({ "Match": { "Path": path } })
}

fn hosts(hosts: Value) -> Value {
    json!({ "Match": { "Hosts": hosts } })
}

/// Routes `a`, `b` … in this order.
fn routes(routes: &[Value]) -> Value {
    let named = routes.iter().zip('a'..);
    let named: serde_json::Map<_, _> = named.map(|(r, id)| (id.to_string(), r.clone())).collect();
    json!({ "Routes": named })
}

/// The id of the route that takes a request.
fn taker(snapshot: &Snapshot, request: &Get) -> String {
    match snapshot.find(request) {
        Lookup::Matched(index) => snapshot.route_at(index).id().to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_routes_that_match_the_same_the_first_serves_and_the_second_is_pointed_out() {
    const PLAIN: &[(&str, &str)] = &[];
    for (first, second, request) in [
        // The host in any case.
        (
            hosts(json!(["orders.local"])),
            hosts(json!(["ORDERS.Local"])),
            Get("orders.local", "/any", PLAIN),
        ),
        // The same shape of the path.
        (path("/x/{id}"), path("X/{name}"), Get("h", "/x/1", PLAIN)),
        (
            path("/x/{**a}"),
            path("/x/{**b}"),
            Get("h", "/x/1/2", PLAIN),
        ),
        (
            path("/x/{id:int}/y"),
            path("/x/{key:int}/Y/"),
            Get("h", "/x/7/y", PLAIN),
        ),
        // Catch-alls, in all their forms.
        (
            path("/{**catch-all}"),
            path("/{**rest}"),
            Get("h", "/any", PLAIN),
        ),
        (path("/{**all}"), path("{*all}"), Get("h", "/", PLAIN)),
        (
            hosts(json!(["h"])),
            json!({ "Match": { "Hosts": ["h"], "Path": "/{**rest}" } }),
            Get("h", "/any", PLAIN),
        ),
        // The same order, written or not.
        (
            json!({ "Order": 0, "Match": { "Path": "/" } }),
            path("/"),
            Get("h", "/", PLAIN),
        ),
        // Lists in another order.
        (
            json!({ "Match": { "Hosts": ["a", "b"], "Methods": ["GET", "PUT"] } }),
            json!({ "Match": { "Hosts": ["B", "A"], "Methods": ["put", "get"] } }),
            Get("b", "/any", PLAIN),
        ),
        // The same conditions.
        (
            json!({ "Match": { "Path": "/", "Headers": [{ "Name": "X-Version", "Values": ["v1"] }] } }),
            json!({ "Match": { "Path": "/", "Headers": [{ "Name": "x-version", "Values": ["v1"] }] } }),
            Get("h", "/", &[("x-version", "v1")]),
        ),
    ] {
        // The first route serves, independent of its name and its spelling.
        for pair in [[first.clone(), second.clone()], [second, first]] {
            let snapshot = warned(routes(&pair), "duplicate_route_criteria", "/Routes/b");
            assert_eq!(taker(&snapshot, &request), "a", "{pair:?}");
        }
    }
}

#[test]
fn a_route_that_shares_some_hosts_with_another_is_pointed_out() {
    let pair = [hosts(json!(["x", "y", "z"])), hosts(json!(["w", "Y"]))];
    let snapshot = warned(routes(&pair), "overlapping_route_criteria", "/Routes/b");
    for (host, expected) in [("x", "a"), ("y", "a"), ("w", "b")] {
        assert_eq!(taker(&snapshot, &Get(host, "/", &[])), expected, "{host}");
    }
    // All that the second has, the first has as well.
    let pair = [hosts(json!(["x", "y", "*.z"])), hosts(json!(["*.Z", "x"]))];
    warned(routes(&pair), "duplicate_route_criteria", "/Routes/b");
}

#[test]
fn problems_name_both_routes_and_what_is_lost() {
    let message = |value: Value| {
        let (_, problems) = compile(value).unwrap();
        let all: Vec<_> = problems
            .iter()
            .map(|p| (&*p.pointer, &*p.message))
            .collect();
        assert_eq!(all.len(), 1, "{problems}");
        format!("{}: {}", all[0].0, all[0].1)
    };
    assert_eq!(
        message(routes(&[path("/x/{a}"), path("/x/{b}")])),
        "/Routes/b: the route matches the same requests as `a`, which comes first and takes them all"
    );
    assert_eq!(
        message(routes(&[
            hosts(json!(["x"])),
            hosts(json!(["y"])),
            hosts(json!(["y", "x"])),
        ])),
        "/Routes/c: the route matches the same requests as `a` and `b`, which come first and take them all"
    );
    assert_eq!(
        message(routes(&[
            hosts(json!(["v", "w", "x", "y", "z"])),
            hosts(json!(["Z", "Y", "X", "W", "V", "u"])),
        ])),
        "/Routes/b: the route's requests to `v`, `w`, `x` and 2 more match `a` as well, which comes first and takes them"
    );
}

#[test]
fn each_route_has_one_problem_however_many_are_the_same() {
    let all = vec![path("/{**rest}"); 20];
    let (snapshot, problems) = compile(routes(&all)).unwrap();
    let places: Vec<_> = problems.iter().map(|problem| &*problem.pointer).collect();
    assert_eq!(places.len(), 19);
    assert!(problems.iter().all(|p| p.message.contains("as `a`,")));
    assert_eq!(taker(&snapshot, &Get("h", "/", &[])), "a");
}

#[test]
fn routes_of_which_one_is_more_specific_are_no_conflict() {
    for (first, second) in [
        (path("/x"), path("/y")),
        (path("/x/{a}"), path("/x/{**a}")),
        (path("/{a:int}"), path("/{a}")),
        (json!({ "Order": 1, "Match": { "Path": "/" } }), path("/")),
        (
            path("/x"),
            json!({ "Match": { "Path": "/x", "Methods": ["GET"] } }),
        ),
        // A host, and a catch-all for every host.
        (hosts(json!(["h"])), path("/{**rest}")),
        (hosts(json!(["a.z"])), hosts(json!(["*.z"]))),
        (hosts(json!(["h"])), hosts(json!(["h:80"]))),
        (
            path("/"),
            json!({ "Match": { "Path": "/", "Headers": [{ "Name": "X-Version", "Values": ["v1"] }] } }),
        ),
        (
            json!({ "Match": { "Path": "/", "Headers": [{ "Name": "X-Version", "Values": ["v2"] }] } }),
            json!({ "Match": { "Path": "/", "Headers": [{ "Name": "X-Version", "Values": ["v1"] }] } }),
        ),
    ] {
        accepted(routes(&[first.clone(), second.clone()]));
        accepted(routes(&[second, first]));
    }
}
