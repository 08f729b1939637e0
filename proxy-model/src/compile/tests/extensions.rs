use super::*;

use crate::config::TransformConfig;

/// Transforms and policies of the program, beside those that are built in.
#[test]
fn the_program_registers_transforms_and_policies() {
    let check = |entry: &TransformConfig| match entry.values().next() {
        Some(value) if value == "good" => Ok(()),
        _ => Err("it is not good".to_owned()),
    };
    let options = options()
        .with_transform("Mine", check)
        .with_available_destinations_policies(["AtHalf"]);
    let with = |transforms: Value| config(route(json!({ "Transforms": transforms })));
    let good = json!([{ "PathPrefix": "/x" }, { "mine": "good" }, { "Mine": "good" }]);
    let (snapshot, _) = Snapshot::compile(with(good), &options).unwrap();
    assert_eq!(snapshot.routes()[0].transforms().own(), [1, 2]);
    for (entry, code, message) in [
        (
            json!({ "Mine": "bad" }),
            "invalid_transform_value",
            "`Mine` of the program: it is not good",
        ),
        (
            json!({ "Mime": "good" }),
            "unknown_transform",
            "no transform has the keys `Mime`",
        ),
    ] {
        let problems = Snapshot::compile(with(json!([entry])), &options).unwrap_err();
        assert_eq!(
            found(&problems),
            [(Severity::Error, code, "/Routes/r/Transforms/0")]
        );
        let problem = problems.iter().next().unwrap();
        assert_eq!(problem.message, message);
        let is_slip = code == "unknown_transform";
        assert_eq!(
            problem
                .suggestion
                .as_ref()
                .is_some_and(|text| text.contains("Mine")),
            is_slip
        );
    }
    let policy = cluster(json!({ "HealthCheck": { "AvailableDestinationsPolicy": "athalf" } }));
    let (snapshot, _) = Snapshot::compile(config(policy), &options).unwrap();
    assert_eq!(snapshot.clusters()[0].availability().name(), "AtHalf");
}

#[test]
fn extensions_are_named_in_order_ignoring_case() {
    let registered = options()
        .with_filters(["Audit", "Tag"])
        .with_layers(["Retry", "Trace"]);
    let value = route(json!({
        "Filters": ["tag", "", "AUDIT", "Tag"], "Layers": ["trace", "retry"]
    }));
    let (snapshot, problems) = Snapshot::compile(config(value), &registered).unwrap();
    assert!(problems.is_empty(), "{problems}");
    let route = &snapshot.routes()[0];
    let names = |names: &[std::sync::Arc<str>]| names.join(" ");
    assert_eq!(names(route.filters()), "Tag Audit Tag");
    assert_eq!(names(route.layers()), "Trace Retry");
    assert!(
        accepted(super::route(json!({}))).routes()[0]
            .layers()
            .is_empty()
    );
}

#[test]
fn extensions_that_nobody_registered_are_rejected() {
    for (key, code, kind) in [
        ("Filters", "unknown_filter", "filter"),
        ("Layers", "unknown_layer", "layer"),
    ] {
        let place = format!("/Routes/r/{key}/1");
        let registered = options().with_filters(["Audit"]).with_layers(["Audit"]);
        let value = route(json!({ key: ["audit", "audits"] }));
        let problems = Snapshot::compile(config(value.clone()), &registered).unwrap_err();
        assert_eq!(found(&problems), [(Severity::Error, code, &*place)]);
        let text = problems.to_string();
        let message = format!("`audits` is not a known {kind}; known are `Audit`");
        assert!(text.contains(&message), "{text}");
        assert!(text.contains("did you mean `Audit`?"), "{text}");

        let none = compile(route(json!({ key: ["audit"] }))).unwrap_err();
        assert!(none.to_string().contains("none is registered"), "{none}");
    }
}

/// A name that is known for one kind is unknown for the other.
#[test]
fn filters_and_layers_have_names_of_their_own() {
    rejected_with(
        route(json!({ "Filters": ["retry"] })),
        &options().with_layers(["retry"]),
        "unknown_filter",
        "/Routes/r/Filters/0",
    );
}
