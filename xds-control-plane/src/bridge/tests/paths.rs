//! Paths: the same ones match, and they are rewritten alike.

use proptest::prelude::*;
use proxy_model::transform::{RequestTarget, path_and_query};

use super::super::DIFFERS;
use super::envoy::{Request, find, rewritten};
use super::{bridged, hosts};

/// Templates with an equivalent in Envoy, each with paths that it must not match.
const TEMPLATES: [&str; 17] = [
    "/",
    "/api",
    "/api/users",
    "/API/{**rest}",
    "/{**rest}",
    "/api/{id}",
    "/api/{id}/edit",
    "/api/{id?}",
    "/api/{id=7}/{**rest}",
    "/api/v{version}/x",
    "/files/{name}.{extension}",
    "/files/{name}.{extension?}",
    "/api/{name:alpha}",
    "/app/{**path:nonfile}",
    "/app/{**path:file}",
    "/a b/{id}",
    "/ü:x/{**rest}",
];

const PATHS: [&str; 37] = [
    "/",
    "/api",
    "/api/",
    "/API",
    "/apis",
    "/api//",
    "/api/users",
    "/api/users/",
    "/api/uSers/x",
    "/api/7",
    "/api/7/",
    "/api/7/edit",
    "/api/7/edit/",
    "/api//edit",
    "/api/v1/x",
    "/api/v/x",
    "/files/a.b",
    "/files/a.b.c",
    "/files/a.",
    "/files/a",
    "/files/.a",
    "/files/a..b",
    "/api/01234567-89ab-cdef-0123-456789abcdef",
    "/api/0123456789abcdef0123456789ABCDEF",
    "/api/abc",
    "/api/ab1",
    "/api/a",
    "/api/abcde",
    "/api/%C3%BC%C3%BC",
    "/app",
    "/app/a/b",
    "/app/a.b/c",
    "/app/a/b.js",
    "/a%20b/1",
    "/%C3%9C:x",
    "/%c3%bc%3Ax/a%2Fb",
    "/api/a%2Fb",
];

#[test]
fn the_same_paths_match() {
    for template in TEMPLATES {
        let json = format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"{template}"}}}}}},"Clusters":{{"c":{{}}}}}}"#
        );
        let (snapshot, bridged) = bridged(&json);
        assert!(
            bridged.problems.is_empty(),
            "{template}: {}",
            bridged.problems
        );
        let hosts = hosts(&bridged);
        for path in PATHS {
            let request = Request::get("a.test", path);
            let model = snapshot.routes()[0].matcher().path().matches(path);
            assert_eq!(
                find(&hosts, &request).is_some(),
                model,
                "{template} {path} {hosts:?}"
            );
        }
    }
}

#[test]
fn characters_are_counted_however_they_are_sent() {
    for constraint in ["length(2,4)", "length(3)", "minlength(3)", "maxlength(3)"] {
        let json =
            format!(r#"{{"Routes":{{"r":{{"Match":{{"Path":"/{{name:{constraint}}}"}}}}}}}}"#);
        let (snapshot, bridged) = bridged(&json);
        let hosts = hosts(&bridged);
        for name in ["a", "ab", "abc", "abcde", "a%20c", "a%2Eb", "a/b"] {
            let path = format!("/{name}");
            let model = snapshot.routes()[0].matcher().path().matches(&path);
            let envoy = find(&hosts, &Request::get("a.test", &path)).is_some();
            assert_eq!(envoy, model, "{constraint} {name}");
        }
        assert_eq!(&*bridged.problems.iter().next().unwrap().code, DIFFERS);
    }
}

/// Route templates, transforms and the path of the destination's address.
const REWRITES: [(&str, &str, &str); 18] = [
    ("/{**rest}", "", "/"),
    ("/{**rest}", "", "/base"),
    ("/{**rest}", "", "/base/"),
    ("/{**rest}", r#"{"PathPrefix":"/v2"}"#, "/"),
    ("/{**rest}", r#"{"PathPrefix":"/v2/"}"#, "/base/"),
    (
        "/{**rest}",
        r#"{"PathPrefix":"/v2"},{"PathPrefix":"/v1"}"#,
        "/",
    ),
    ("/{**rest}", r#"{"PathSet":"/a b"}"#, "/"),
    (
        "/{**rest}",
        r#"{"PathSet":"/x"},{"PathPrefix":"/v2"}"#,
        "/base",
    ),
    ("/{**rest}", r#"{"PathRemovePrefix":"/api"}"#, "/"),
    ("/api/{**rest}", r#"{"PathRemovePrefix":"/api"}"#, "/"),
    ("/api/{**rest}", r#"{"PathRemovePrefix":"/api"}"#, "/base"),
    (
        "/{**rest}",
        r#"{"PathRemovePrefix":"/api"},{"PathPrefix":"/v2"}"#,
        "/",
    ),
    (
        "/{**rest}",
        r#"{"PathRemovePrefix":"/api"},{"PathPrefix":"/v2/"}"#,
        "/base",
    ),
    ("/{**rest}", r#"{"PathRemovePrefix":"/a%20b"}"#, "/"),
    (
        "/api/{id}/{**rest}",
        r#"{"PathPattern":"/new/{**rest}"}"#,
        "/",
    ),
    (
        "/api/{id}/{**rest}",
        r#"{"PathPattern":"/new/{id}/x/{**rest}"}"#,
        "/base",
    ),
    ("/api/{id}/{**rest}", r#"{"PathPattern":"/{id}/a\\b"}"#, "/"),
    (
        "/api/{id}/{**rest}",
        r#"{"PathPattern":"/n/{id}"},{"PathPrefix":"/p"}"#,
        "/",
    ),
];

const REWRITTEN: [&str; 15] = [
    "/",
    "/x",
    "/api",
    "/api/",
    "/API/users?q=1",
    "/apis",
    "/api/7",
    "/api/7/",
    "/api/7/a/b/",
    "/api/7/a%2Fb",
    "/a%20b/c",
    "/A%20B",
    "/api//x",
    "/x?a=b/c",
    "/api/%41/x",
];

#[test]
fn paths_are_rewritten_alike() {
    let mut compared = 0;
    for (template, transforms, base) in REWRITES {
        let json = format!(
            r#"{{"Routes":{{"r":{{"ClusterId":"c","Match":{{"Path":"{template}"}},"Transforms":[{transforms}]}}}},
                "Clusters":{{"c":{{"Destinations":{{"d":{{"Address":"http://10.0.0.1{base}"}}}}}}}}}}"#
        );
        let (snapshot, bridged) = bridged(&json);
        assert!(bridged.problems.is_empty(), "{json}: {}", bridged.problems);
        let hosts = hosts(&bridged);
        let route = &snapshot.routes()[0];
        let address = snapshot.clusters()[0].destinations()[0].address();
        for target in REWRITTEN {
            let request = Request::get("a.test", target);
            let (path, query) = match target.split_once('?') {
                Some((path, query)) => (path, Some(query)),
                None => (target, None),
            };
            let Some(values) = route.matcher().path().capture(path) else {
                continue;
            };
            let mut wanted = RequestTarget {
                method: "GET".into(),
                path: path.into(),
                query: query.map(Into::into),
            };
            route.transforms().rewrite(&mut wanted, &values);
            let wanted = path_and_query(address, &wanted.path, wanted.query.as_deref());
            // What has nothing left and no path before it is the root for both.
            let found = find(&hosts, &request).unwrap();
            assert_eq!(rewritten(found, target), wanted, "{json} {target}");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
}

proptest! {
    #[test]
    fn any_path_matches_for_both_or_for_none(
        template in prop::sample::select(&TEMPLATES[..]),
        segments in prop::collection::vec("(api|files|app|[a-z0-9.]{0,4}|%2F|v1|x)", 0..5),
        slash in any::<bool>(),
    ) {
        let path = format!("/{}{}", segments.join("/"), if slash { "/" } else { "" });
        let json = format!(
            r#"{{"Routes":{{"r":{{"Match":{{"Path":"{template}"}}}}}}}}"#
        );
        let (snapshot, bridged) = bridged(&json);
        let model = snapshot.routes()[0].matcher().path().matches(&path);
        let envoy = find(&hosts(&bridged), &Request::get("a", &path)).is_some();
        prop_assert_eq!(envoy, model, "{} {}", template, path);
    }
}
