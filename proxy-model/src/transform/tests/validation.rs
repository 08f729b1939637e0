use super::{Entries, compile};

/// Code, place and suggestion of each problem.
fn problems(entries: Entries<'_>) -> Vec<(String, String, Option<String>)> {
    let (transforms, problems) = compile(entries);
    assert_eq!(transforms.is_none(), problems.has_errors(), "{problems}");
    problems
        .into_iter()
        .map(|problem| {
            let place = problem
                .pointer
                .strip_prefix("/Routes/r/Transforms")
                .unwrap();
            (
                problem.code.into_owned(),
                place.to_owned(),
                problem.suggestion,
            )
        })
        .collect()
}

fn assert_problem(entry: &[(&str, &str)], code: &str, place: &str, suggestion: Option<&str>) {
    let found = problems(&[entry]);
    let [(found_code, found_place, found_suggestion)] = &found[..] else {
        panic!("{entry:?}: {found:?}");
    };
    assert_eq!((&**found_code, &**found_place), (code, place), "{entry:?}");
    if suggestion.is_some() {
        assert_eq!(found_suggestion.as_deref(), suggestion, "{entry:?}");
    }
}

#[test]
fn unknown_transforms_are_named() {
    // G03
    assert_problem(&[], "unknown_transform", "/0", None);
    assert_problem(
        &[("PathPrefx", "/a")],
        "unknown_transform",
        "/0",
        Some("did you mean `PathPrefix`?"),
    );
    assert_problem(
        &[("Set", "a"), ("When", "Always")],
        "unknown_transform",
        "/0",
        None,
    );
}

#[test]
fn fields_of_one_connection_are_named() {
    const CODE: &str = "connection_header";
    for (entry, place) in [
        (
            &[("RequestHeadersAllowed", "Connection; Accept")][..],
            "/0/RequestHeadersAllowed",
        ),
        (
            &[("ResponseHeadersAllowed", "ETag;keep-alive")],
            "/0/ResponseHeadersAllowed",
        ),
        (
            &[("RequestHeader", "Upgrade"), ("Set", "h2c")],
            "/0/RequestHeader",
        ),
        (
            &[("ResponseHeader", "Keep-Alive"), ("Set", "timeout=5")],
            "/0/ResponseHeader",
        ),
        (
            &[("ResponseHeader", "Connection"), ("Append", "x")],
            "/0/ResponseHeader",
        ),
    ] {
        assert_problem(entry, CODE, place, None);
    }
    assert_eq!(
        problems(&[&[("ResponseHeader", "Keep-Alive-Not"), ("Set", "1")]]),
        []
    );
    assert_eq!(problems(&[&[("ResponseHeaderRemove", "Keep-Alive")]]), []);
}

#[test]
fn keys_that_do_not_belong_are_named() {
    const CODE: &str = "unexpected_transform_key";
    assert_problem(&[("PathSet", "/a"), ("Set", "b")], CODE, "/0/Set", None);
    assert_problem(
        &[("PathPrefix", "/a"), ("PathSet", "/b")],
        CODE,
        "/0/PathPrefix",
        None,
    );
    assert_problem(
        &[("ResponseHeader", "X"), ("Set", "a"), ("Wen", "Always")],
        CODE,
        "/0/Wen",
        Some("did you mean `When`?"),
    );
    assert_problem(
        &[("RequestHeader", "X"), ("Set", "a"), ("Append", "b")],
        CODE,
        "/0/Append",
        None,
    );
    assert_problem(
        &[("RequestHeader", "X"), ("Set", "a"), ("SET", "b")],
        CODE,
        "/0/SET",
        None,
    );
    assert_problem(
        &[("RequestHeader", "X"), ("Set", "a"), ("When", "b")],
        CODE,
        "/0/When",
        None,
    );
    assert_problem(
        &[("Forwarded", "for"), ("ByFormat", "Ip")],
        CODE,
        "/0/ByFormat",
        None,
    );
    let many: Vec<(String, String)> = (0..100_000)
        .map(|i| (i.to_string(), String::new()))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(k, v)| (&**k, &**v)).collect();
    let crowded: Vec<(&str, &str)> = [("PathSet", "/")].into_iter().chain(many.clone()).collect();
    assert_problem(&crowded, CODE, "/0", None);
    assert_problem(&many, "unknown_transform", "/0", None);
}

#[test]
fn missing_partners_are_named() {
    for entry in [
        &[("RequestHeader", "X")] as &[_],
        &[("ResponseTrailer", "X"), ("When", "Always")],
        &[("QueryValueParameter", "q")],
        &[("QueryRouteParameter", "q")],
        &[("HttpMethodChange", "GET")],
    ] {
        assert_problem(entry, "missing_transform_key", "/0", None);
    }
}

#[test]
fn values_are_checked() {
    for (entry, place, suggestion) in [
        (
            &[("RequestHeadersCopy", "yes")] as &[_],
            "/0/RequestHeadersCopy",
            None,
        ),
        (
            &[("RequestHeader", "a b"), ("Set", "x")],
            "/0/RequestHeader",
            None,
        ),
        (
            &[("RequestHeader", ""), ("Set", "x")],
            "/0/RequestHeader",
            None,
        ),
        (&[("RequestHeader", "X"), ("Set", "a\r\nb")], "/0/Set", None),
        (
            &[("RequestHeader", "Host"), ("Append", "a")],
            "/0/Append",
            Some("use `Set`"),
        ),
        (
            &[("RequestHeaderRemove", "a:")],
            "/0/RequestHeaderRemove",
            None,
        ),
        (
            &[("RequestHeadersAllowed", "a;b c;d")],
            "/0/RequestHeadersAllowed",
            None,
        ),
        (&[("ClientCert", "ü")], "/0/ClientCert", None),
        (
            &[("ClientCert", "Host")],
            "/0/ClientCert",
            Some("write `X-Client-Cert`, or what the destination reads"),
        ),
        (
            &[("ClientCert", "Transfer-Encoding")],
            "/0/ClientCert",
            Some("write `X-Client-Cert`, or what the destination reads"),
        ),
        (
            &[("QueryRemoveParameter", "")],
            "/0/QueryRemoveParameter",
            None,
        ),
        (&[("QueryRouteParameter", "q"), ("Set", "")], "/0/Set", None),
        (&[("PathPattern", "/{a")], "/0/PathPattern", None),
        (
            &[("ResponseHeader", "X"), ("Set", "a"), ("When", "Sucess")],
            "/0/When",
            Some("did you mean `Success`?"),
        ),
        // Actions are compared with their case, as in YARP.
        (
            &[("X-Forwarded", "set")],
            "/0/X-Forwarded",
            Some("did you mean `Set`?"),
        ),
        (
            &[("X-Forwarded", "Set"), ("For", "off")],
            "/0/For",
            Some("did you mean `Off`?"),
        ),
        (&[("X-Forwarded", "Set"), ("Proto", "")], "/0/Proto", None),
        (
            &[("Forwarded", "for"), ("Action", "append")],
            "/0/Action",
            Some("did you mean `Append`?"),
        ),
        (&[("Forwarded", "for;proto")], "/0/Forwarded", None),
        (
            &[("Forwarded", " , ")],
            "/0/Forwarded",
            Some("write `for,host,proto`, or `\"Action\": \"Off\"` for no header"),
        ),
        (
            &[("Forwarded", "for,hst")],
            "/0/Forwarded",
            Some("did you mean `host`?"),
        ),
        (
            &[("Forwarded", "for"), ("ForFormat", "Random2")],
            "/0/ForFormat",
            Some("did you mean `Random`?"),
        ),
    ] {
        assert_problem(entry, "invalid_transform_value", place, suggestion);
    }
}

#[test]
fn methods_must_be_tokens() {
    // F29
    for method in [" GET", "GET ", "G;ET", ""] {
        let to = [("HttpMethodChange", "PUT"), ("Set", method)];
        assert_problem(&to, "invalid_transform_value", "/0/Set", None);
        let from = [("HttpMethodChange", method), ("Set", "PUT")];
        assert_problem(
            &from,
            "invalid_transform_value",
            "/0/HttpMethodChange",
            None,
        );
    }
}

#[test]
fn a_prefix_that_makes_no_header_names_is_rejected_once() {
    let entry = [("X-Forwarded", "Set"), ("HeaderPrefix", "a b")];
    assert_problem(&entry, "invalid_transform_value", "/0/HeaderPrefix", None);
}

#[test]
fn framing_is_not_for_transforms() {
    for entry in [
        &[("RequestHeader", "Content-Length"), ("Set", "0")],
        &[
            ("ResponseHeader", "transfer-encoding"),
            ("Append", "chunked"),
        ],
    ] {
        assert_problem(entry, "framing_header", &format!("/0/{}", entry[0].0), None);
        let (transforms, _) = compile(&[entry]);
        let transforms = transforms.unwrap();
        assert_eq!(transforms.request().len(), 5);
        assert!(transforms.response().is_empty());
    }
}

#[test]
fn all_entries_are_checked_before_any_is_rejected() {
    let found = problems(&[
        &[("PathSet", "/fine")],
        &[("Unknown", "x")],
        &[("HttpMethodChange", "G;ET"), ("Set", "P;UT")],
        &[("RequestHeader", "X")],
    ]);
    let places: Vec<&str> = found.iter().map(|(_, place, _)| &**place).collect();
    assert_eq!(places, ["/1", "/2/HttpMethodChange", "/2/Set", "/3"]);
}

#[test]
fn secrets_are_not_repeated() {
    let (_, problems) = compile(&[&[("RequestHeader", "Authorization"), ("Set", "hunter2\n")]]);
    assert!(problems.has_errors());
    assert!(!problems.to_string().contains("hunter2"));
}

#[test]
fn patterns_and_variables_of_other_programs_are_told() {
    for (entry, code, place, suggestion) in [
        (
            &[("RequestHeader", "X-Real-IP"), ("Set", "$remote_addr")][..],
            "literal_variable",
            "/0/Set",
            None,
        ),
        (
            &[
                ("ResponseHeader", "X-Host"),
                ("Append", "{http.request.host}"),
            ],
            "literal_variable",
            "/0/Append",
            None,
        ),
        (
            &[("QueryValueParameter", "ip"), ("Set", "%REQ(:authority)%")],
            "literal_variable",
            "/0/Set",
            None,
        ),
        (
            &[("PathPattern", "/api/*")],
            "literal_pattern",
            "/0/PathPattern",
            Some("write `/api/{**rest}`"),
        ),
        (
            &[("PathRemovePrefix", "/api/{**rest}")],
            "literal_pattern",
            "/0/PathRemovePrefix",
            Some("write `/api`"),
        ),
    ] {
        assert_problem(entry, code, place, suggestion);
    }
    assert_eq!(
        problems(&[&[("RequestHeader", "X-Price"), ("Set", "$100")]]),
        []
    );
}
