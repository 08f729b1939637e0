use super::*;

#[test]
fn routes_need_an_id() {
    // D01
    rejected(
        json!({ "Routes": { "": { "Match": { "Path": "/" } } } }),
        "missing_route_id",
        "/Routes/",
    );
}

#[test]
fn routes_need_a_host_or_a_path() {
    for criteria in [
        json!({}),
        json!({ "Path": "" }),
        json!({ "Hosts": [] }),
        json!({ "Methods": ["GET"] }),
    ] {
        let problems = compile(matching(criteria)).unwrap_err();
        assert_eq!(
            found(&problems),
            [(Severity::Error, "no_criteria", "/Routes/r/Match")]
        );
        assert!(problems.to_string().contains("/{**catchall}"));
    }
    accepted(matching(json!({ "Hosts": ["a"] })));
}

#[test]
fn hosts() {
    // D04, D05
    for host in [
        "example.com",
        "example.com:80",
        "*.example.com",
        "a-b.b-c.example.com",
        "ünicode",
        "ünicode:443",
        "[::1]:8080",
    ] {
        accepted(matching(json!({ "Hosts": [host] })));
    }
    // D06 differs: punycode is another form of the name.
    for host in ["xn--nicode-2ya", "Xn--nicode-2ya:443", "*.xn--nicode-2ya"] {
        accepted(matching(json!({ "Hosts": ["a", host] })));
    }
    let problems = compile(matching(json!({ "Hosts": ["a", "xn--a"] }))).unwrap_err();
    assert_eq!(
        found(&problems),
        [(Severity::Error, "invalid_host", "/Routes/r/Match/Hosts/1")]
    );
    assert!(
        problems.to_string().contains("write the name in Unicode"),
        "{problems}"
    );
    // D07
    for host in [Value::Null, json!("")] {
        let criteria = json!({ "Path": "/", "Hosts": [host] });
        rejected(matching(criteria), "empty_host", "/Routes/r/Match/Hosts/0");
    }
    rejected(
        matching(json!({ "Hosts": [""] })),
        "empty_host",
        "/Routes/r/Match/Hosts/0",
    );
}

#[test]
fn paths() {
    // D08
    for path in ["/a/", "a/{b}", "/{**all}"] {
        accepted(matching(json!({ "Path": path })));
    }
    // Accepted as in YARP, but hardly ever meant.
    for path in ["/a/**", "/a/*", "/c/:id"] {
        let place = "/Routes/r/Match/Path";
        warned(matching(json!({ "Path": path })), "literal_pattern", place);
    }
    for path in ["/{", "/{a}/{a}", "/{**a}/b", "/{a:nope}"] {
        rejected(
            matching(json!({ "Path": path })),
            "invalid_path",
            "/Routes/r/Match/Path",
        );
    }
}

#[test]
fn methods() {
    // D10
    for methods in [
        json!(["get"]),
        json!(["gEt", "put"]),
        json!(["gEt", "put", "POST", "traCE", "PATCH", "DELETE", "Head"]),
    ] {
        accepted(matching(json!({ "Path": "/", "Methods": methods })));
    }
    // D11
    for method in ["", "gett"] {
        let criteria = json!({ "Path": "/", "Methods": ["POST", method] });
        rejected(
            matching(criteria),
            "invalid_method",
            "/Routes/r/Match/Methods/1",
        );
    }
    let twice = json!({ "Path": "/", "Methods": ["GET", "get"] });
    rejected(
        matching(twice),
        "invalid_method",
        "/Routes/r/Match/Methods/1",
    );
}

#[test]
fn headers_and_query_parameters() {
    // D13, D16; null is rejected by the reader.
    for key in ["Headers", "QueryParameters"] {
        for (rule, code, below) in [
            (
                json!({ "Name": "", "Values": ["a"] }),
                "missing_name",
                "Name",
            ),
            (json!({ "Values": ["a"] }), "missing_name", "Name"),
            (json!({ "Name": "n" }), "missing_values", "Values"),
            (
                json!({ "Name": "n", "Values": [] }),
                "missing_values",
                "Values",
            ),
            (
                json!({ "Name": "n", "Values": ["a", ""] }),
                "empty_value",
                "Values/1",
            ),
            (
                json!({ "Name": "n", "Values": ["a", null] }),
                "empty_value",
                "Values/1",
            ),
            (
                json!({ "Name": "n", "Mode": "Exists", "Values": ["a"] }),
                "unexpected_values",
                "Values",
            ),
        ] {
            let criteria = json!({ "Path": "/", key: [{ "Name": "x", "Mode": "Exists" }, rule] });
            rejected(
                matching(criteria),
                code,
                &format!("/Routes/r/Match/{key}/1/{below}"),
            );
        }
    }
    let criteria = json!({ "Path": "/", "Headers": [{ "Name": "a b", "Mode": "NotExists" }] });
    rejected(
        matching(criteria),
        "invalid_header_name",
        "/Routes/r/Match/Headers/0/Name",
    );
}

#[test]
fn policies_that_the_program_registers() {
    let registered = options()
        .with_authorization_policies(["Staff"])
        .with_cors_policies(["Partners"])
        .with_rate_limiter_policies(["Slow"])
        .with_timeout_policies(["Long"])
        .with_output_cache_policies(["Hour"]);
    for (key, reserved, name, code) in [
        // D17, D18
        (
            "AuthorizationPolicy",
            &["defaulT", "anonymouS"] as &[_],
            "stafF",
            "unknown_authorization_policy",
        ),
        // D20, D21
        (
            "CorsPolicy",
            &["defaulT", "disAble"],
            "PARTNERS",
            "unknown_cors_policy",
        ),
        // D26
        (
            "RateLimiterPolicy",
            &["Default", "Disable"],
            "slow",
            "unknown_rate_limiter_policy",
        ),
        // D23
        (
            "TimeoutPolicy",
            &["disable"],
            "long",
            "unknown_timeout_policy",
        ),
        (
            "OutputCachePolicy",
            &[],
            "hour",
            "unknown_output_cache_policy",
        ),
    ] {
        let place = format!("/Routes/r/{key}");
        for written in [Value::Null, json!("")]
            .into_iter()
            .chain(reserved.iter().map(|r| json!(r)))
        {
            accepted(route(json!({ key: written })));
        }
        rejected(route(json!({ key: "unknown" })), code, &place);
        let (_, problems) =
            Snapshot::compile(config(route(json!({ key: name }))), &registered).unwrap();
        assert!(problems.is_empty());
        rejected_with(route(json!({ key: "unknown" })), &registered, code, &place);
    }
    // D23: YARP's documentation has it, its validator does not.
    rejected(
        route(json!({ "TimeoutPolicy": "Default" })),
        "unknown_timeout_policy",
        "/Routes/r/TimeoutPolicy",
    );
}

#[test]
fn reserved_names_are_not_for_programs() {
    // D19, D21, D26
    for (key, name, options) in [
        (
            "AuthorizationPolicy",
            "default",
            options().with_authorization_policies(["Default"]),
        ),
        (
            "AuthorizationPolicy",
            "Anonymous",
            options().with_authorization_policies(["ANONYMOUS"]),
        ),
        (
            "CorsPolicy",
            "Default",
            options().with_cors_policies(["Default"]),
        ),
        (
            "CorsPolicy",
            "Disable",
            options().with_cors_policies(["Disable"]),
        ),
        (
            "RateLimiterPolicy",
            "Disable",
            options().with_rate_limiter_policies(["Disable"]),
        ),
    ] {
        let value = route(json!({ key: name }));
        rejected_with(
            value,
            &options,
            "reserved_policy_name",
            &format!("/Routes/r/{key}"),
        );
        let unused = Snapshot::compile(config(route(json!({}))), &options);
        assert!(unused.is_ok(), "only a route that uses it is rejected");
    }
}

#[test]
fn an_unknown_policy_gets_the_nearest_as_suggestion() {
    let options = options().with_authorization_policies(["staff"]);
    let value = route(json!({ "AuthorizationPolicy": "staf" }));
    let problems = Snapshot::compile(config(value), &options).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.suggestion.as_deref(), Some("did you mean `staff`?"));
    assert_eq!(
        problem.message,
        "`staf` is not a known authorization policy; known are `Default`, `Anonymous` and `staff`"
    );
}

#[test]
fn timeouts() {
    let snapshot = accepted(route(json!({ "Timeout": "00:00:20" })));
    assert_eq!(
        snapshot.routes()[0].timeout(),
        Some(std::time::Duration::from_secs(20))
    );
    rejected(
        route(json!({ "Timeout": "0s" })),
        "not_positive",
        "/Routes/r/Timeout",
    );
    // D25
    let both = route(json!({ "Timeout": "1s", "TimeoutPolicy": "Disable" }));
    rejected(both, "conflicting_timeouts", "/Routes/r/Timeout");
    let whole = json!({ "Timeout": "1s", "TimeoutIncludesBody": true });
    assert!(accepted(route(whole)).routes()[0].timeout_includes_body());
    let without = json!({ "TimeoutIncludesBody": true, "TimeoutPolicy": "Disable" });
    warned(
        route(without),
        "without_effect",
        "/Routes/r/TimeoutIncludesBody",
    );
}

#[test]
fn body_limits() {
    for (written, expected) in [
        (Value::Null, BodyLimit::Server),
        (json!(-1), BodyLimit::Unlimited),
        (json!(0), BodyLimit::Bytes(0)),
        (json!(11), BodyLimit::Bytes(11)),
    ] {
        let snapshot = accepted(route(json!({ "MaxRequestBodySize": written })));
        assert_eq!(snapshot.routes()[0].body_limit(), expected);
    }
    rejected(
        route(json!({ "MaxRequestBodySize": -2 })),
        "out_of_range",
        "/Routes/r/MaxRequestBodySize",
    );
}

#[test]
fn several_errors_in_one_route_are_reported_together() {
    // D46
    let problems = compile(route(json!({
        "Match": { "Path": "/{", "Hosts": ["xn--a"], "Methods": ["gett"] },
        "CorsPolicy": "x",
        "Transforms": [{ "Nope": "1" }],
    })))
    .unwrap_err();
    let codes: Vec<_> = problems.iter().map(|p| &*p.code).collect();
    assert_eq!(
        codes,
        [
            "invalid_path",
            "invalid_host",
            "invalid_method",
            "unknown_transform",
            "unknown_cors_policy"
        ]
    );
}

#[test]
fn a_route_may_lead_nowhere() {
    let snapshot = accepted(route(json!({})));
    assert_eq!(snapshot.routes()[0].target(), &RouteTarget::None);
    accepted(route(json!({ "ClusterId": "" })));
    // A38
    let value = json!({
        "Routes": { "r": { "ClusterId": "ordres", "Match": { "Path": "/" } } },
        "Clusters": { "Orders": {} },
    });
    let snapshot = warned(value.clone(), "unknown_cluster", "/Routes/r/ClusterId");
    assert_eq!(
        snapshot.routes()[0].target(),
        &RouteTarget::Missing(ClusterId::new("ordres"))
    );
    let (_, problems) = compile(value).unwrap();
    assert_eq!(
        problems.iter().next().unwrap().suggestion.as_deref(),
        Some("did you mean `Orders`?")
    );
}

#[test]
fn clusters_are_found_ignoring_case() {
    let snapshot = accepted(json!({
        "Routes": { "r": { "ClusterId": "ORDERS", "Match": { "Path": "/" } } },
        "Clusters": { "Carts": {}, "Orders": {} },
    }));
    assert_eq!(
        snapshot.routes()[0].target(),
        &RouteTarget::Cluster(ClusterIndex(1))
    );
}

fn weighted(shares: Value) -> Value {
    json!({
        "Routes": { "r": { "WeightedClusters": shares, "Match": { "Path": "/" } } },
        "Clusters": { "a": {}, "b": {} },
    })
}

#[test]
fn clusters_share_a_route_by_weight() {
    let share = |id: &str, weight: u32| json!({ "ClusterId": id, "Weight": weight });
    let snapshot = accepted(weighted(json!([share("B", 90), { "ClusterId": "a" }])));
    let RouteTarget::Weighted(targets) = snapshot.routes()[0].target() else {
        panic!();
    };
    let parts: Vec<_> = targets.iter().map(|t| (t.cluster(), t.weight())).collect();
    assert_eq!(
        parts,
        [(Some(ClusterIndex(1)), 90), (Some(ClusterIndex(0)), 1)]
    );

    let place = "/Routes/r/WeightedClusters";
    rejected(weighted(json!([])), "no_weight", place);
    rejected(
        weighted(json!([share("a", 0), share("b", 0)])),
        "no_weight",
        place,
    );
    rejected(
        weighted(json!([share("a", 1), share("A", 1)])),
        "duplicate_cluster",
        &format!("{place}/1/ClusterId"),
    );
    rejected(
        weighted(json!([share("", 1)])),
        "missing_cluster_id",
        &format!("{place}/0/ClusterId"),
    );
    rejected(
        weighted(json!([share("a", 1_000_001)])),
        "out_of_range",
        &format!("{place}/0/Weight"),
    );
    warned(
        weighted(json!([share("x", 1)])),
        "unknown_cluster",
        &format!("{place}/0/ClusterId"),
    );
    let mut both = weighted(json!([share("a", 1)]));
    both["Routes"]["r"]["ClusterId"] = json!("a");
    rejected(both, "conflicting_clusters", place);
}

#[test]
fn problems_of_transforms_point_into_the_route() {
    let transforms = json!([{ "PathSet": "/" }, {}]);
    rejected(
        route(json!({ "Transforms": transforms })),
        "unknown_transform",
        "/Routes/r/Transforms/1",
    );
}

#[test]
fn transforms_that_use_what_the_path_does_not_have_are_pointed_out() {
    let with = |transform: Value| json!({ "Routes": { "r": { "Match": { "Path": "/{id}/{**rest}" }, "Transforms": [transform] } } });
    for (transform, below) in [
        (json!({ "PathPattern": "/{ID}/{rets}" }), "PathPattern"),
        (json!({ "QueryRouteParameter": "q", "Set": "rets" }), "Set"),
        (
            json!({ "RequestHeaderRouteValue": "X", "Append": "rets" }),
            "Append",
        ),
    ] {
        let place = format!("/Routes/r/Transforms/0/{below}");
        warned(with(transform.clone()), "unknown_route_parameter", &place);
        let (_, problems) = compile(with(transform)).unwrap();
        assert!(
            problems.to_string().contains("did you mean `rest`?"),
            "{problems}"
        );
    }
    accepted(with(json!({ "PathPattern": "/new/{Rest}" })));
    // Without a path a route has the parameter `catchall`.
    accepted(json!({ "Routes": { "r": {
        "Match": { "Hosts": ["a"] }, "Transforms": [{ "PathPattern": "/new/{**catchall}" }],
    } } }));
}

#[test]
fn preflight_is_accepted_with_a_cors_policy() {
    let criteria = json!({ "Path": "/", "Methods": ["GET"] });
    let with =
        accepted(json!({ "Routes": { "r": { "Match": criteria, "CorsPolicy": "Default" } } }));
    assert!(with.routes()[0].matcher().accepts_preflight());
    let without = accepted(matching(criteria));
    assert!(!without.routes()[0].matcher().accepts_preflight());
}
