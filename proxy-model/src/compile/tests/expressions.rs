use super::*;

/// Routes whose paths are made of their numbers.
fn routes(count: usize, path: impl Fn(usize) -> String) -> Value {
    let routes = (0..count).map(|i| (format!("r{i:03}"), json!({ "Match": { "Path": path(i) } })));
    json!({ "Routes": routes.collect::<serde_json::Map<_, _>>() })
}

#[test]
fn one_expression_may_be_too_large() {
    for path in [
        "/{a:regex(\\w{{100}})}",
        "/{a:regex(((.{{99}}){{99}}){{99}})}",
    ] {
        rejected(
            matching(json!({ "Path": path })),
            "regex_too_large",
            "/Routes/r/Match/Path",
        );
    }
    let value = route(json!({ "Transforms": [{ "PathPattern": "/{a:regex(\\w{{100}})}" }] }));
    let Err(problems) = compile(value) else {
        panic!("accepted");
    };
    let codes: Vec<_> = problems.errors().map(|problem| &*problem.code).collect();
    assert_eq!(codes, ["regex_too_large"]);
}

#[test]
fn equal_expressions_of_many_routes_are_compiled_once() {
    accepted(routes(1_000, |i| {
        format!("/{i}/{{a:regex(^\\w{{{{4}}}}$)}}")
    }));
}

#[test]
fn all_expressions_together_may_be_too_large() {
    let all = |i| format!("/{i}/{{a:regex(^\\w{{{{4}}}}{i}$)}}");
    accepted(routes(20, all));
    let Err(problems) = compile(routes(80, all)) else {
        panic!("accepted");
    };
    let places: Vec<_> = problems
        .errors()
        .map(|problem| (&*problem.code, &*problem.pointer))
        .collect();
    assert_eq!(places.len(), 80 - 64);
    assert_eq!(places[0], ("regex_too_large", "/Routes/r064/Match/Path"));
    let first = problems.iter().next().unwrap();
    assert_eq!(
        first.message,
        "all `regex` constraints together take more than 16 MiB of memory (at byte 4)"
    );
    let (snapshot, _) = Snapshot::compile_isolated(config(routes(80, all)), &options());
    assert_eq!(snapshot.routes().len(), 64);
}
