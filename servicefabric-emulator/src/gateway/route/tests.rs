use http::Method;

use super::*;

fn find(method: &str, path: &str) -> Result<(&'static str, Parameters), NoRoute> {
    let method: Method = method.parse().unwrap();
    Router::new()
        .find(&method, path)
        .map(|(route, parameters)| (route.template, parameters))
}

#[test]
fn paths_find_their_templates() {
    for (method, path, template, places) in [
        ("GET", "/", "/", &[][..]),
        ("GET", "/Nodes", "/Nodes", &[]),
        ("GET", "/Nodes/", "/Nodes", &[]),
        (
            "GET",
            "/Nodes/_Node_0",
            "/Nodes/{node}",
            &[("node", "_Node_0")],
        ),
        ("GET", "/$/GetClusterVersion", "/$/GetClusterVersion", &[]),
        ("GET", "/%24/GetClusterVersion", "/$/GetClusterVersion", &[]),
        (
            "GET",
            "/Applications/App~Sub",
            "/Applications/{application*}",
            &[("application", "App~Sub")],
        ),
        (
            "GET",
            "/Applications/App/Sub/$/GetServices",
            "/Applications/{application*}/$/GetServices",
            &[("application", "App/Sub")],
        ),
        (
            "GET",
            "/Applications/App/$/GetServices/App~Svc%20x/",
            "/Applications/{application*}/$/GetServices/{service*}",
            &[("application", "App"), ("service", "App~Svc x")],
        ),
        (
            "GET",
            "/Applications/App/$/GetServices/App/Svc",
            "/Applications/{application*}/$/GetServices/{service*}",
            &[("service", "App/Svc")],
        ),
        (
            "GET",
            "/Applications/App%2FSub",
            "/Applications/{application*}",
            &[("application", "App/Sub")],
        ),
        (
            "POST",
            "/Applications/App/$/GetServices/$/Create",
            "/Applications/{application*}/$/GetServices/$/Create",
            &[("application", "App")],
        ),
        (
            "POST",
            "/Applications/$/Create",
            "/Applications/$/Create",
            &[],
        ),
        (
            "POST",
            "/Nodes/N/$/GetApplications/A~B/$/GetCodePackages/$/Restart",
            "/Nodes/{node}/$/GetApplications/{application*}/$/GetCodePackages/$/Restart",
            &[("node", "N"), ("application", "A~B")],
        ),
        ("DELETE", "/Names/a/b", "/Names/{name*}", &[("name", "a/b")]),
    ] {
        let (found, parameters) = find(method, path).unwrap_or_else(|_| panic!("{method} {path}"));
        assert_eq!(found, template, "{method} {path}");
        for (place, value) in places {
            assert_eq!(parameters.get(place), *value, "{method} {path}");
        }
    }
}

#[test]
fn what_has_no_template_is_told_apart() {
    for (method, path, expected) in [
        ("GET", "/nodes", NoRoute::Unknown),
        ("GET", "/Explorer/index.html", NoRoute::Unknown),
        ("GET", "/Nodes//", NoRoute::Shape),
        ("GET", "/Nodes/N/$/getApplications", NoRoute::Shape),
        ("GET", "/Nodes/a/b", NoRoute::Shape),
        ("GET", "/Applications/a//b", NoRoute::Shape),
        ("GET", "/Applications/$/GetServices", NoRoute::Shape),
        ("POST", "/Nodes", NoRoute::Shape),
        ("PATCH", "/Nodes", NoRoute::Shape),
        ("GET", "/Nodes/%ff", NoRoute::Encoding),
    ] {
        assert_eq!(find(method, path).unwrap_err(), expected, "{method} {path}");
    }
}

#[test]
fn versions_are_checked_against_the_call() {
    let (route, _) = {
        let router = Router::new();
        let (route, parameters) = router
            .find(&Method::POST, "/Partitions/p/$/MovePrimaryReplica")
            .unwrap();
        (*route, parameters)
    };
    assert!(route.version(Some("6.5")).is_ok());
    assert!(route.version(Some("9.1")).is_ok());
    for asked in [None, Some("6.4"), Some("9.2"), Some("x"), Some("")] {
        assert!(route.version(asked).is_err(), "{asked:?}");
    }
}

#[test]
fn no_two_templates_of_a_verb_are_the_same() {
    let router = Router::new();
    let mut seen = std::collections::BTreeSet::new();
    for (_, route) in &router.routes {
        let verb = format!("{:?}", route.verb);
        assert!(seen.insert((verb, route.template)), "{}", route.template);
    }
}
