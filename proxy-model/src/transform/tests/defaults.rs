use http::header::{AUTHORIZATION, FORWARDED, HOST};
use http::{HeaderName, HeaderValue, StatusCode};

use super::compiled;
use crate::transform::{
    ForwardedAction, HeaderChange, HeaderCopy, NodeFormat, NodeName, NodePort, RequestTransform,
    ResponseCondition, SetOrAppend, Transforms, XForwardedPart,
};

fn x_forwarded(transforms: &Transforms) -> Vec<(String, XForwardedPart, ForwardedAction)> {
    let of = |transform: &RequestTransform| match transform {
        RequestTransform::XForwarded(x) => Some((x.name().to_string(), x.part(), x.action())),
        _ => None,
    };
    transforms.request().iter().filter_map(of).collect()
}

fn removed(transforms: &Transforms) -> Vec<&str> {
    let of = |transform: &'_ RequestTransform| match transform {
        RequestTransform::Remove(name) => Some(name.clone()),
        _ => None,
    };
    let names = transforms.request().iter().filter_map(of);
    names
        .map(|name| match name.as_str() {
            "forwarded" => "forwarded",
            "x-forwarded-for" => "x-forwarded-for",
            "x-forwarded-prefix" => "x-forwarded-prefix",
            "x-forwarded-host" => "x-forwarded-host",
            "x-forwarded-proto" => "x-forwarded-proto",
            other => panic!("{other}"),
        })
        .collect()
}

#[test]
fn without_configuration_forwarding_headers_are_set_and_the_host_is_replaced() {
    // G01
    let transforms = compiled(&[]);
    assert!(!transforms.original_host());
    assert_eq!(
        x_forwarded(&transforms),
        [
            (
                "x-forwarded-for".into(),
                XForwardedPart::For,
                ForwardedAction::Set
            ),
            (
                "x-forwarded-prefix".into(),
                XForwardedPart::Prefix,
                ForwardedAction::Set
            ),
            (
                "x-forwarded-host".into(),
                XForwardedPart::Host,
                ForwardedAction::Set
            ),
            (
                "x-forwarded-proto".into(),
                XForwardedPart::Proto,
                ForwardedAction::Set
            ),
        ]
    );
    assert_eq!(removed(&transforms), ["forwarded"]);
    assert_eq!(transforms.request().len(), 5);
    assert_eq!(transforms.request_copy(), &HeaderCopy::All);
    assert!(transforms.target().is_empty());
    assert!(transforms.response().is_empty() && transforms.trailers().is_empty());
    assert_eq!(
        format!("{transforms:?}"),
        format!("{:?}", Transforms::default())
    );
}

#[test]
fn forwarding_headers_are_switched_off() {
    // G02
    let transforms = compiled(&[
        &[("RequestHeadersCopy", "False")],
        &[("X-Forwarded", "Off")],
    ]);
    assert_eq!(transforms.request_copy(), &HeaderCopy::None);
    assert!(transforms.request().is_empty());
    assert!(!transforms.original_host());
}

#[test]
fn each_forwarding_header_has_an_action_of_its_own() {
    let transforms = compiled(&[&[
        ("x-forwarded", "Append"),
        ("For", "Remove"),
        ("Proto", "Off"),
        ("HeaderPrefix", "X-From-"),
    ]]);
    assert_eq!(
        x_forwarded(&transforms),
        [
            (
                "x-from-for".into(),
                XForwardedPart::For,
                ForwardedAction::Remove
            ),
            (
                "x-from-prefix".into(),
                XForwardedPart::Prefix,
                ForwardedAction::Append
            ),
            (
                "x-from-host".into(),
                XForwardedPart::Host,
                ForwardedAction::Append
            ),
        ]
    );
    assert_eq!(removed(&transforms), ["forwarded"]);
}

#[test]
fn forwarded_takes_the_place_of_the_x_forwarded_headers() {
    // H32
    let transforms = compiled(&[&[
        ("Forwarded", "by, for,host"),
        ("ForFormat", "ipandport"),
        ("Action", "Append"),
    ]]);
    let RequestTransform::Forwarded(forwarded) = &transforms.request()[0] else {
        panic!("{transforms:?}");
    };
    assert!(forwarded.host() && !forwarded.proto());
    let ip = NodeFormat {
        name: NodeName::Ip,
        port: NodePort::Port,
    };
    assert_eq!(forwarded.r#for(), Some(ip));
    assert_eq!(forwarded.by(), Some(NodeFormat::default()));
    assert_eq!(forwarded.action(), ForwardedAction::Append);
    assert_eq!(
        removed(&transforms),
        [
            "x-forwarded-for",
            "x-forwarded-prefix",
            "x-forwarded-host",
            "x-forwarded-proto"
        ]
    );
    let off = compiled(&[&[("Forwarded", "for"), ("Action", "Off")]]);
    assert!(off.request().is_empty());
}

#[test]
fn headers_are_parsed_when_they_are_compiled() {
    let transforms = compiled(&[
        &[("RequestHeader", "Host"), ("Set", "CustomHost")],
        &[("RequestHeader", "X-Empty"), ("Append", "")],
        &[("RequestHeaderRouteValue", "X-Id"), ("Set", "id")],
        &[("RequestHeaderRemove", "Authorization")],
        &[("ClientCert", "X-Client-Cert")],
        &[("RequestHeaderOriginalHost", "true")],
        &[("X-Forwarded", "Off")],
    ]);
    assert!(transforms.original_host());
    assert_eq!(
        transforms.request(),
        [
            RequestTransform::Header {
                name: HOST,
                value: HeaderValue::from_static("CustomHost"),
                action: SetOrAppend::Set,
            },
            RequestTransform::Header {
                name: HeaderName::from_static("x-empty"),
                value: HeaderValue::from_static(""),
                action: SetOrAppend::Append,
            },
            RequestTransform::RouteValue {
                name: HeaderName::from_static("x-id"),
                parameter: "id".into(),
                action: SetOrAppend::Set,
            },
            RequestTransform::Remove(AUTHORIZATION),
            RequestTransform::ClientCert(HeaderName::from_static("x-client-cert")),
        ]
    );
    assert!(!removed_contains(&transforms, &FORWARDED));
}

fn removed_contains(transforms: &Transforms, name: &HeaderName) -> bool {
    transforms
        .request()
        .contains(&RequestTransform::Remove(name.clone()))
}

#[test]
fn responses_change_on_success_unless_it_says_otherwise() {
    // G30
    let transforms = compiled(&[
        &[("ResponseHeader", "X-A"), ("Append", "1")],
        &[("ResponseHeaderRemove", "X-B"), ("When", "failure")],
        &[("ResponseTrailer", "X-C"), ("Set", "2"), ("When", "Always")],
        &[("ResponseTrailerRemove", "X-D")],
        &[("ResponseHeadersCopy", "false")],
        &[("ResponseTrailersAllowed", "X-E; x-f ;")],
    ]);
    let header = HeaderName::from_static;
    let [a, b] = transforms.response() else {
        panic!()
    };
    assert_eq!(a.condition(), ResponseCondition::Success);
    assert_eq!(
        a.change(),
        &HeaderChange::Append(header("x-a"), HeaderValue::from_static("1"))
    );
    assert_eq!(b.condition(), ResponseCondition::Failure);
    assert_eq!(b.change(), &HeaderChange::Remove(header("x-b")));
    let [c, d] = transforms.trailers() else {
        panic!()
    };
    assert_eq!(c.condition(), ResponseCondition::Always);
    assert_eq!(
        c.change(),
        &HeaderChange::Set(header("x-c"), HeaderValue::from_static("2"))
    );
    assert_eq!(d.condition(), ResponseCondition::Success);
    assert_eq!(transforms.response_copy(), &HeaderCopy::None);
    assert!(transforms.trailers_copy().allows(&header("x-e")));
    assert!(transforms.trailers_copy().allows(&header("x-f")));
    assert!(!transforms.trailers_copy().allows(&header("x-a")));
}

#[test]
fn a_list_of_allowed_headers_turns_copying_off() {
    // G18
    let transforms = compiled(&[
        &[("RequestHeadersAllowed", "header1;header2")],
        &[("RequestHeadersAllowed", "TE")],
    ]);
    for (name, allowed) in [
        ("header1", true),
        ("header2", true),
        ("te", true),
        ("header3", false),
    ] {
        assert_eq!(
            transforms
                .request_copy()
                .allows(&HeaderName::from_static(name)),
            allowed
        );
    }
}

#[test]
fn copying_beside_a_list_is_pointed_out() {
    let (transforms, problems) = super::compile(&[
        &[("ResponseHeadersAllowed", "ETag")],
        &[("ResponseHeadersCopy", "true")],
    ]);
    let problem = problems.iter().next().unwrap();
    assert_eq!(problem.code, "conflicting_transforms");
    assert_eq!(
        problem.pointer,
        "/Routes/r/Transforms/1/ResponseHeadersCopy"
    );
    let transforms = transforms.unwrap();
    assert!(transforms.response_copy().allows(&http::header::ETAG));
    assert!(!transforms.response_copy().allows(&AUTHORIZATION));
}

#[test]
fn success_ends_at_400() {
    for (status, success) in [
        (101, true),
        (200, true),
        (399, true),
        (400, false),
        (502, false),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(ResponseCondition::Success.holds(status), success);
        assert_eq!(ResponseCondition::Failure.holds(status), !success);
        assert!(ResponseCondition::Always.holds(status));
    }
}
