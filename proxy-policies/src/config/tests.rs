use proxy_model::json::parse_document;

use super::*;

fn problems(text: &str) -> Vec<(String, String)> {
    let document = parse_document(text).unwrap();
    let mut problems = Problems::new();
    read(&document, &mut problems);
    let all = problems.iter();
    all.map(|p| (p.pointer.clone(), p.code.to_string()))
        .collect()
}

fn of(kind: &str, policy: &str) -> Vec<(String, String)> {
    let found = problems(&format!(r#"{{"Policies":{{"{kind}":{{"p":{policy}}}}}}}"#));
    let place = format!("/Policies/{kind}/p");
    found
        .into_iter()
        .map(|(pointer, code)| {
            let below = pointer.strip_prefix(&place);
            (below.unwrap_or(&pointer).to_owned(), code)
        })
        .collect()
}

#[test]
fn every_mistake_is_reported_where_it_is() {
    let mut wrong = Vec::new();
    for (kind, policy, expected) in [
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1}"#,
            &[][..],
        ),
        ("RateLimiter", r"{}", &[("", "missing_key")]),
        ("RateLimiter", "7", &[("", "wrong_type")]),
        (
            "RateLimiter",
            r#"{"Kind":"Fixed","PermitLimit":0}"#,
            &[("/Kind", "unknown_value")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow"}"#,
            &[("", "missing_key"), ("", "missing_key")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":0,"Window":"0s"}"#,
            &[
                ("/PermitLimit", "out_of_range"),
                ("/Window", "out_of_range"),
            ],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"400d"}"#,
            &[("/Window", "out_of_range")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1,"Window":"1s","MaxPartitions":5}"#,
            &[("/Window", "no_effect"), ("/MaxPartitions", "no_effect")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"SlidingWindow","PermitLimit":1,"Window":"10ms","SegmentsPerWindow":20}"#,
            &[("/SegmentsPerWindow", "out_of_range")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"Header"},"QueueLimt":1}"#,
            &[("/Partition", "missing_key"), ("/QueueLimt", "unknown_key")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"Header","Name":"a b"}}"#,
            &[("/Partition/Name", "invalid_header_name")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1,"Partition":{"By":"Address","Name":"a"}}"#,
            &[("/Partition/Name", "no_effect")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1,"RejectionStatusCode":200}"#,
            &[("/RejectionStatusCode", "out_of_range")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m",
                "Shared":{"Address":"redis://[::1]","Password":"p","Database":3,"Timeout":"1s","Replicas":3}}"#,
            &[],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"Concurrency","PermitLimit":1,"QueueLimit":1,"Shared":{"Address":"redis://a:1"}}"#,
            &[("/QueueLimit", "no_effect"), ("/Shared", "no_effect")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Username":"u","Timeout":"2s","Replicas":0}}"#,
            &[
                ("/Shared", "missing_key"),
                ("/Shared/Timeout", "out_of_range"),
                ("/Shared", "missing_key"),
                ("/Shared/Replicas", "out_of_range"),
            ],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"redis://u:p@a"}}"#,
            &[("/Shared/Address", "invalid_address")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"rediss://a/1"}}"#,
            &[("/Shared/Address", "invalid_address")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"rediss://a","CaFile":"ca.pem"}}"#,
            &[],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"rediss://a"}}"#,
            &[("/Shared", "missing_key")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"redis://a","CaFile":"ca.pem"}}"#,
            &[("/Shared/CaFile", "no_effect")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"redis-sentinel://a:26379/main"}}"#,
            &[("/Shared/Address", "unsupported")],
        ),
        (
            "RateLimiter",
            r#"{"Kind":"FixedWindow","PermitLimit":1,"Window":"1m","Shared":{"Address":"redis://a:1,b:1"}}"#,
            &[("/Shared/Address", "unsupported")],
        ),
        ("Cors", r#"{"Origins":["https://a.example"]}"#, &[]),
        (
            "Cors",
            r#"{"Origins":["*"],"Methods":["*"],"Headers":["*"]}"#,
            &[],
        ),
        ("Cors", r"{}", &[("", "missing_key")]),
        (
            "Cors",
            r#"{"Origins":["a.example"]}"#,
            &[("/Origins/0", "invalid_origin"), ("", "missing_key")],
        ),
        (
            "Cors",
            r#"{"Origins":["https://a.example","*"]}"#,
            &[("/Origins/1", "invalid_origin")],
        ),
        (
            "Cors",
            r#"{"Origins":["https://*.a.example"]}"#,
            &[("/Origins", "invalid_origin")],
        ),
        (
            "Cors",
            r#"{"AllowAnyOrigin":true,"AllowCredentials":true}"#,
            &[("/AllowCredentials", "insecure_cors")],
        ),
        (
            "Cors",
            r#"{"AllowAnyOrigin":true,"Origins":["https://a.example"]}"#,
            &[("/Origins", "no_effect")],
        ),
        (
            "Cors",
            r#"{"AllowAnyOrigin":true,"Methods":["P T"]}"#,
            &[("/Methods/0", "invalid_method")],
        ),
        (
            "Cors",
            r#"{"AllowAnyOrigin":true,"PreflightMaxAge":"500ms"}"#,
            &[("/PreflightMaxAge", "out_of_range")],
        ),
        (
            "Authorization",
            r#"{"Networks":{"Allow":[]}}"#,
            &[("/Networks/Allow", "missing_key")],
        ),
        ("Authorization", r"{}", &[("", "missing_key")]),
        (
            "Authorization",
            r#"{"Networks":{}}"#,
            &[("/Networks", "missing_key")],
        ),
        (
            "Authorization",
            r#"{"Networks":{"Allow":["10.1.0.0/8","x",7]}}"#,
            &[
                ("/Networks/Allow/0", "invalid_network"),
                ("/Networks/Allow/1", "invalid_network"),
                ("/Networks/Allow/2", "wrong_type"),
            ],
        ),
        (
            "Authorization",
            r#"{"Basic":{}}"#,
            &[("/Basic", "missing_key")],
        ),
        (
            "Authorization",
            r#"{"Basic":{"Realm":"a\"b","Users":{"a:b":"secret"}}}"#,
            &[
                ("/Basic/Realm", "invalid_realm"),
                (concat!("/Basic", "/Users", "/a:b"), "invalid_user"),
                (concat!("/Basic", "/Users", "/a:b"), "invalid_password_hash"),
            ],
        ),
        (
            "Authorization",
            r#"{"Networks":{"Deny":["::1"]},"ClaimHeaders":{"Host":"name"}}"#,
            &[
                ("/ClaimHeaders", "no_effect"),
                ("/ClaimHeaders/Host", "invalid_header_name"),
            ],
        ),
        ("Timeout", r#"{"Timeout":"30s"}"#, &[]),
        ("Timeout", r"{}", &[("", "missing_key")]),
        (
            "Timeout",
            r#"{"Timeout":30}"#,
            &[("/Timeout", "invalid_time_span")],
        ),
    ] {
        let found = of(kind, policy);
        let found: Vec<_> = found.iter().map(|(at, code)| (&**at, &**code)).collect();
        if found != expected {
            wrong.push(format!("{kind} {policy}: {found:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_with_a_meaning_of_their_own_are_rejected() {
    let text = r#"{"policies":{
        "Authorization":{"anonymous":{"Networks":{"Deny":["::1"]}}},
        "Cors":{"Disable":{"Origins":["*"]}},
        "RateLimiter":{"Default":{"Kind":"Concurrency","PermitLimit":1},"a b":{"Kind":"Concurrency","PermitLimit":1}},
        "Timeout":{"Disable":{"Timeout":"1s"}},
        "Discovered":{},
        "OutputCache":{}}}"#;
    let pair = |pointer: &str, code: &str| (pointer.to_owned(), code.to_owned());
    assert_eq!(
        problems(text),
        [
            pair("/policies/Authorization/anonymous", "reserved_policy_name"),
            pair("/policies/Cors/Disable", "reserved_policy_name"),
            pair("/policies/RateLimiter/Default", "reserved_policy_name"),
            pair("/policies/RateLimiter/a b", "invalid_policy_name"),
            pair("/policies/Timeout/Disable", "reserved_policy_name"),
            pair("/policies/OutputCache", "unknown_key"),
        ]
    );
    assert_eq!(problems("{}"), []);
}

/// A text that is no hash may be the password itself.
#[test]
fn problems_do_not_show_secrets() {
    let text = r#"{"Policies":{"Authorization":{"p":{"Basic":{"Users":{"ann":"hunter2"}}}}}}"#;
    let document = parse_document(text).unwrap();
    let mut problems = Problems::new();
    let policies = read(&document, &mut problems);
    assert!(problems.has_errors());
    let shown = format!("{problems} {problems:?} {policies:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// A policy with a mistake is there by its name, so that routes that name it have no problem of their own.
#[test]
fn a_mistake_has_no_follow_up() {
    let text = r#"{"Policies":{"RateLimiter":{"p":{"Kind":"x"}}}}"#;
    let document = parse_document(text).unwrap();
    let mut problems = Problems::new();
    let policies = read(&document, &mut problems);
    assert!(policies.get(PolicyKind::RateLimiter, "P").is_some());
    assert_eq!(problems.len(), 1);
}
