use super::*;

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
