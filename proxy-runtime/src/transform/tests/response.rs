//! Headers and trailers of responses.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{answered, config, values};
use crate::transform::{CompiledTransforms, TrailerPlan};

#[test]
fn g21_to_g27_response_headers() {
    let set = |when: &str| format!(r#"{{ "ResponseHeader": "x-a", "Set": "new"{when} }}"#);
    let append = |when: &str| format!(r#"{{ "ResponseHeader": "x-a", "Append": "new"{when} }}"#);
    let remove = |when: &str| format!(r#"{{ "ResponseHeaderRemove": "x-a"{when} }}"#);
    let success = r#", "When": "Success""#;
    let failure = r#", "When": "failure""#;
    let always = r#", "When": "Always""#;
    for (case, transforms, given, status, expected) in [
        (
            "G21",
            set(success),
            &[] as &[&str],
            200,
            &["new"] as &[&str],
        ),
        ("G21", set(success), &[], 399, &["new"]),
        ("G21", set(success), &[], 400, &[]),
        ("G23", set(always), &[], 400, &["new"]),
        ("G23", set(always), &["start"], 200, &["new"]),
        ("G24", set(failure), &[], 502, &["new"]),
        ("G24", set(failure), &[], 200, &[]),
        ("G25", append(success), &["start"], 200, &["start", "new"]),
        ("G25", append(success), &["start"], 400, &["start"]),
        ("G26", remove(success), &["start"], 200, &[]),
        ("G26", remove(success), &["start"], 404, &["start"]),
        ("G27", remove(failure), &["start"], 200, &["start"]),
        ("G27", remove(failure), &["start"], 404, &[]),
        ("G30", set(""), &[], 200, &["new"]),
        ("G30", set(""), &[], 404, &[]),
    ] {
        let config = config("/{**all}", &transforms, "");
        let given: Vec<_> = given.iter().map(|value| ("x-a", *value)).collect();
        let headers = answered(&config, status, &given);
        assert_eq!(values(&headers, "x-a"), expected, "{case} {status}");
    }
}

#[test]
fn g23_g24_changes_are_made_when_no_destination_answered() {
    let config = config(
        "/{**all}",
        r#"{ "ResponseHeader": "x-always", "Set": "new", "When": "Always" },
           { "ResponseHeader": "x-failure", "Set": "new", "When": "Failure" },
           { "ResponseHeader": "x-success", "Set": "new" },
           { "ResponseHeadersCopy": "false" }"#,
        "",
    );
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("text/plain"));
    let plan = CompiledTransforms::of(&config.routes()[0], None);
    plan.change_response(StatusCode::BAD_GATEWAY, &mut headers);
    let mut names: Vec<_> = headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-type", "x-always", "x-failure"]);
}

#[test]
fn fields_of_the_connection_stay_whoever_has_made_the_response() {
    let config = config(
        "/{**all}",
        r#"{ "ResponseHeader": "connection", "Set": "x-a", "When": "Always" },
           { "ResponseHeader": "x-a", "Append": "new", "When": "Always" },
           { "ResponseTrailer": "content-length", "Set": "1", "When": "Always" },
           { "ResponseTrailer": "x-a", "Append": "new", "When": "Always" }"#,
        "",
    );
    let plan = CompiledTransforms::of(&config.routes()[0], None);
    let mut own = HeaderMap::new();
    plan.change_response(StatusCode::BAD_GATEWAY, &mut own);
    let forwarded = answered(&config, 200, &[]);
    let mut trailers = HeaderMap::new();
    let changes = plan.trailers.as_ref().unwrap();
    changes.apply(StatusCode::OK, &mut trailers);
    for changed in [own, forwarded, trailers] {
        assert_eq!(changed.keys().collect::<Vec<_>>(), ["x-a"]);
    }
}

#[test]
fn g29_response_trailers() {
    let set =
        |when: &str| format!(r#"{{ "ResponseTrailer": "x-a", "Set": "new", "When": "{when}" }}"#);
    for (when, status, expected) in [
        ("Success", 200, true),
        ("Success", 400, false),
        ("Failure", 200, false),
        ("Failure", 400, true),
    ] {
        let config = config("/{**all}", &set(when), "");
        let mut trailers = HeaderMap::new();
        let plan = TrailerPlan::of(config.routes()[0].transforms()).unwrap();
        plan.apply(StatusCode::from_u16(status).unwrap(), &mut trailers);
        assert_eq!(trailers.contains_key("x-a"), expected, "{when} {status}");
    }
}

#[test]
fn responses_and_trailers_can_be_filtered() {
    let config = config(
        "/{**all}",
        r#"{ "ResponseHeadersAllowed": "a;connection" }, { "ResponseTrailersCopy": "false" }"#,
        "",
    );
    let transforms = config.routes()[0].transforms();
    let given = [("a", "1"), ("b", "2"), ("connection", "close")];
    let headers = answered(&config, 200, &given);
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["a"]);
    let trailers =
        given.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
    let mut trailers: HeaderMap = trailers.into_iter().collect();
    let plan = TrailerPlan::of(transforms).unwrap();
    plan.apply(StatusCode::OK, &mut trailers);
    assert!(trailers.is_empty());
}
