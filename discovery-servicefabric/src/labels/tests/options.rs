//! Tests of default routes and of paths that begin with the name of a service.

use serde_json::json;

use super::traffic::{Routing, get};
use super::*;

const DEFAULT_ROUTE: (&str, &str) = ("YARP.Backend.ServiceFabric.DefaultRoute", "true");
const PREFIX: (&str, &str) = ("YARP.Backend.ServiceFabric.PathPrefix", "true");

#[test]
fn a_service_without_routes_may_be_served_under_its_name() {
    assert_eq!(good(&YarpLabels::default(), &web(&[])).routes.len(), 0);
    let options = LabelOptions::default().with_default_route(true);
    for (parser, labels) in [
        (YarpLabels::default(), &[DEFAULT_ROUTE][..]),
        (YarpLabels::new(options.clone()), &[]),
        // The name is in front already.
        (YarpLabels::new(options.clone().with_path_prefix(true)), &[]),
    ] {
        let config = good(&parser, &web(labels));
        assert_eq!(route_ids(&config), ["fabric%3A%2FApp%2FWeb:default"]);
        let route = serde_json::to_value(&config.routes[0]).unwrap();
        let expected = json!({
            "ClusterId": "fabric:/App/Web",
            "Match": { "Path": "/App/Web/{**catch-all}" },
            "Transforms": [{ "PathRemovePrefix": "/App/Web" }],
        });
        assert_eq!(route, expected);
        let routing = Routing::of(&config);
        for (path, expected) in [
            ("/App/Web", "fabric:/App/Web"),
            ("/app/web/x/y", "fabric:/App/Web"),
            ("/App/Website", "404"),
            ("/", "404"),
        ] {
            assert_eq!(routing.cluster(&get(path)), expected, "{path}");
        }
    }
    let off = ("YARP.Backend.ServiceFabric.DefaultRoute", "false");
    assert_eq!(
        good(&YarpLabels::new(options.clone()), &web(&[off]))
            .routes
            .len(),
        0
    );
    let own = ("YARP.Routes.r.Path", "/r");
    assert_eq!(
        route_ids(&good(&YarpLabels::new(options), &web(&[own]))),
        ["fabric%3A%2FApp%2FWeb:r"]
    );
}

#[test]
fn a_name_is_a_path_whatever_is_in_it() {
    let options = LabelOptions::default().with_default_route(true);
    let mut described = web(&[]);
    described.name = "fabric:/a/{b}/svc x".into();
    let config = good(&YarpLabels::new(options), &described);
    let routing = Routing::of(&config);
    assert_eq!(
        routing.cluster(&get("/a/%7Bb%7D/svc%20x/y")),
        "fabric:/a/{b}/svc x"
    );
    assert_eq!(routing.cluster(&get("/a/c/svc%20x/y")), "404");
}

#[test]
fn paths_may_begin_with_the_name() {
    let parsed = good(
        &YarpLabels::default(),
        &web(&[
            PREFIX,
            ("YARP.Routes.a.Path", "/api/{id}"),
            ("YARP.Routes.a.Transforms.[0].PathPrefix", "/v1"),
            ("YARP.Routes.b.Path", "x"),
            ("YARP.Routes.c.Hosts", "c.example"),
        ]),
    );
    let paths: Vec<_> = parsed
        .routes
        .values()
        .map(|r| r.r#match.path.as_deref().unwrap())
        .collect();
    assert_eq!(
        paths,
        ["/App/Web/api/{id}", "/App/Web/x", "/App/Web/{**catch-all}"]
    );
    let transforms = serde_json::to_value(&parsed.routes[0].transforms).unwrap();
    assert_eq!(
        transforms,
        json!([{ "PathRemovePrefix": "/App/Web" }, { "PathPrefix": "/v1" }])
    );
}

/// Problems are reported at the label's own position, although an added transform precedes it.
#[test]
fn positions_of_transforms_are_those_of_labels() {
    let told = rejected(&web(&[
        PREFIX,
        ("YARP.Routes.a.Path", "/"),
        ("YARP.Routes.a.Transforms.[0].PathPrefix", "/v1"),
        ("YARP.Routes.a.Transforms.[5].PathPrefx", "/v1"),
    ]));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("error at /YARP.Routes.a.Transforms.[5].PathPrefx: "),
        "{told:?}"
    );
}
