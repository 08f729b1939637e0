//! Tests that the model and Envoy choose the same route for a request.

use std::sync::LazyLock;

use proptest::prelude::*;
use proxy_model::Snapshot;
use proxy_model::matching::Lookup;
use xds_types::pb::envoy::config::route::v3::VirtualHost;

use super::envoy::{Request, find};
use super::{bridged, hosts};

/// Routes with one feature each, for all pairs that precedence distinguishes.
const ROUTES: &str = r#"
    "any": {"Match":{"Path":"/{**rest}"}},
    "first": {"Order":-1,"Match":{"Path":"/first/{**rest}"}},
    "host": {"Match":{"Hosts":["a.test"]}},
    "port": {"Match":{"Hosts":["a.test:81"]}},
    "any-port": {"Match":{"Hosts":["*:82"],"Path":"/p/{**rest}"}},
    "under": {"Match":{"Hosts":["*.a.test","B.test"]}},
    "deeper": {"Match":{"Hosts":["*.x.a.test:81"]}},
    "path": {"Match":{"Path":"/p/{id}"}},
    "path-host": {"Match":{"Hosts":["*.a.test"],"Path":"/p/{id}"}},
    "post": {"Match":{"Path":"/p/{id}","Methods":["POST","purge"]}},
    "header": {"Match":{"Path":"/p/{id}","Headers":[{"Name":"X-Kind","Values":["one","Two words"]}]}},
    "prefix": {"Match":{"Path":"/p/{id}","Headers":[{"Name":"x-kind","Values":["pre"],"Mode":"HeaderPrefix","IsCaseSensitive":true},{"Name":"x-no","Mode":"NotExists"}]}},
    "contains": {"Match":{"Path":"/c","Headers":[{"Name":"x-kind","Values":["mid"],"Mode":"Contains"}]}},
    "not": {"Match":{"Path":"/c","Headers":[{"Name":"x-kind","Values":["mid","end"],"Mode":"NotContains"},{"Name":"x-more","Mode":"Exists"}]}},
    "cookie": {"Match":{"Path":"/c","Headers":[{"Name":"cookie","Values":["a=1"]},{"Name":"x-1","Mode":"Exists"},{"Name":"x-2","Mode":"Exists"}]}},
    "query": {"Match":{"Path":"/q","QueryParameters":[{"Name":"Br","Values":["a b","c&d"]}]}},
    "query-part": {"Match":{"Path":"/q","QueryParameters":[{"Name":"part","Values":["Mid"],"Mode":"Contains"},{"Name":"e","Mode":"Exists"}]}},
    "query-not": {"Match":{"Path":"/qn","QueryParameters":[{"Name":"x","Values":["1"],"Mode":"NotContains"}]}},
    "query-prefix": {"Match":{"Path":"/q","QueryParameters":[{"Name":"p","Values":["ä"],"Mode":"Prefix","IsCaseSensitive":true}]}}
"#;

/// The compiled routes, and the same routes as Envoy's virtual hosts.
static TABLE: LazyLock<(Snapshot, Vec<VirtualHost>)> = LazyLock::new(|| {
    let routes = ROUTES.replace("purge", "PURGE");
    let (snapshot, bridged) = bridged(&format!(r#"{{"Routes":{{{routes}}}}}"#));
    assert!(bridged.problems.is_empty(), "{}", bridged.problems);
    let hosts = hosts(&bridged);
    (snapshot, hosts)
});

fn compare(requests: impl IntoIterator<Item = Request>) {
    let (snapshot, hosts) = &*TABLE;
    for request in requests {
        let model = match snapshot.find(&request) {
            Lookup::Matched(index) => Some(snapshot.route_at(index).id().as_str().to_owned()),
            // Where the proxy lists the allowed methods, Envoy finds nothing.
            Lookup::MethodNotAllowed(_) | Lookup::NotFound => None,
        };
        let envoy = find(hosts, &request).map(|route| route.name.clone());
        assert_eq!(envoy, model, "{request:?}");
    }
}

#[test]
fn a_request_goes_to_the_same_route() {
    let get = Request::get;
    let post = |target: &str| Request {
        method: "POST".into(),
        ..get("other.test", target)
    };
    compare([
        get("other.test", "/x"),
        get("a.test", "/x"),
        get("A.Test", "/first"),
        get("a.test:81", "/x"),
        get("a.test:9999", "/x"),
        get("other.test:82", "/p/7"),
        get("y.a.test", "/p/7"),
        get("b.test:8080", "/p/7"),
        get("y.x.a.test:81", "/x"),
        get("y.x.a.test", "/x"),
        post("/p/7"),
        Request {
            method: "post".into(),
            ..post("/p/7")
        },
        Request {
            method: "PURGE".into(),
            ..post("/p/7")
        },
        get("o", "/p/7").with("x-kind", "ONE"),
        get("o", "/p/7").with("x-kind", "zero, \"two words\""),
        get("o", "/p/7").with("x-kind", "\"zero, one\""),
        get("o", "/p/7")
            .with("x-kind", "zero")
            .with("x-kind", "one"),
        get("o", "/p/7").with("x-kind", "prefix"),
        get("o", "/p/7").with("x-kind", "Prefix"),
        get("o", "/p/7").with("x-kind", "a, \"pre fix\""),
        get("o", "/p/7").with("x-kind", ",\"pre\"\",one\""),
        get("o", "/p/7").with("x-kind", "\"pre\"x\""),
        get("o", "/p/7").with("x-kind", "\"pre\"x\",one"),
        get("o", "/p/7").with("x-kind", "\"pre\"x\"y, z\", one"),
        get("o", "/p/7").with("x-kind", "\"pre"),
        get("o", "/p/7").with("x-kind", "prefix").with("x-no", ""),
        get("o", "/p/7").with("x-kind", "prefix").with("x-no", "1"),
        get("o", "/c").with("x-kind", "aMIDb"),
        get("o", "/c").with("x-more", "1"),
        get("o", "/c").with("x-more", "1").with("x-kind", "the end"),
        get("o", "/c")
            .with("cookie", "b=2; A=1")
            .with("x-1", "1")
            .with("x-2", "2"),
        get("o", "/c")
            .with("cookie", "b=2; a=12")
            .with("x-1", "1")
            .with("x-2", "2"),
        get("o", "/q?br=A+b"),
        get("o", "/q?x=1&%42r=a%20b"),
        get("o", "/q?br=x&br=c%26d"),
        get("o", "/q?br=a+bc"),
        get("o", "/q?part=aMiDb&e=1"),
        get("o", "/q?part=aMiDb&e="),
        get("o", "/q?p=%C3%A4x"),
        get("o", "/q?p=%C3%84x"),
        get("o", "/qn"),
        get("o", "/qn?x=2"),
        get("o", "/qn?x=2&X=31"),
    ]);
}

proptest! {
    #[test]
    fn any_request_goes_to_the_same_route(
        host in prop::sample::select(vec!["a.test", "B.TEST", "y.a.test", "y.x.a.test", "o", "xa.test"]),
        port in prop::sample::select(vec!["", ":80", ":81", ":82"]),
        path in prop::sample::select(vec!["/", "/p/1", "/P/1/", "/p/1/2", "/first/x", "/c", "/q", "/qn", "/x"]),
        query in "(\\?((br|part|p|x|e)=(a b|mid|1|%61|é)?&?){0,3})?",
        method in prop::sample::select(vec!["GET", "POST", "PURGE"]),
        kind in prop::option::of("[a-z]{0,3}(one|pre|mid|end)?( {0,2},[ \"]{0,2}(one|pre)[\" ]{0,2}){0,2}(,x)?"),
    ) {
        let query = query.replace(' ', "+");
        let mut request = Request::get(&format!("{host}{port}"), &format!("{path}{query}"));
        request.method = method.into();
        request.headers.extend(kind.map(|kind| ("x-kind".to_owned(), kind.trim().to_owned())));
        compare([request]);
    }
}
