//! Tests of names and properties.

use super::*;
use crate::cluster::testing::{SHOP, cluster, name};
use crate::cluster::{ErrorCode, PageRequest};

const WEB: &str = "fabric:/Shop/Web";

#[test]
fn names_of_applications_and_services_are_there_by_themselves() {
    let mut cluster = cluster(SHOP);
    assert!(cluster.name_exists(&name("fabric:/Shop")));
    assert!(cluster.name_exists(&name(WEB)));
    let found = cluster
        .sub_names(&name("fabric:/Shop"), true, &PageRequest::default())
        .unwrap();
    let found: Vec<&str> = found.names.iter().map(|found| found.as_str()).collect();
    assert_eq!(found, ["fabric:/Shop/Store", "fabric:/Shop/Web"]);
    cluster.delete_service(&name(WEB)).unwrap();
    assert!(!cluster.name_exists(&name(WEB)));
}

#[test]
fn names_are_created_with_those_above_and_deleted_from_below() {
    let mut cluster = cluster(SHOP);
    cluster.create_name(name("fabric:/a/b/c")).unwrap();
    cluster.create_name(name("fabric:/a/b-x")).unwrap();
    let sub = |cluster: &crate::cluster::Cluster, recursive: bool| {
        let found = cluster
            .sub_names(&name("fabric:/a"), recursive, &PageRequest::default())
            .unwrap();
        found
            .names
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(sub(&cluster, false), ["fabric:/a/b", "fabric:/a/b-x"]);
    assert_eq!(
        sub(&cluster, true),
        ["fabric:/a/b", "fabric:/a/b-x", "fabric:/a/b/c"]
    );
    let error = cluster.delete_name(&name("fabric:/a/b")).unwrap_err();
    assert_eq!(error.code, ErrorCode::NameNotEmpty);
    for gone in ["fabric:/a/b/c", "fabric:/a/b", "fabric:/a/b-x", "fabric:/a"] {
        cluster.delete_name(&name(gone)).unwrap();
        assert!(!cluster.name_exists(&name(gone)));
    }
}

#[test]
fn properties_are_put_read_listed_and_deleted() {
    let mut cluster = cluster(SHOP);
    let web = name(WEB);
    for (property, value) in [
        ("b", PropertyValue::String("äß".to_owned())),
        ("a", PropertyValue::Int64(7)),
        ("c", PropertyValue::Double(0.5)),
        ("d", PropertyValue::Binary(vec![1, 2, 3])),
    ] {
        cluster.put_property(&web, property, value, "kind").unwrap();
    }
    let page = cluster.properties(&web, &PageRequest::first(3)).unwrap();
    let names: Vec<&str> = page.items.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let rest = cluster
        .properties(&web, &PageRequest::first(3).after(page.continuation_token))
        .unwrap();
    assert_eq!(
        (rest.items.len(), rest.continuation_token.as_str()),
        (1, "")
    );
    let text = cluster.property(&web, "b").unwrap();
    assert_eq!(
        (
            text.value.size(),
            text.value.kind(),
            text.custom_type.as_str()
        ),
        (6, "String", "kind")
    );
    let before = text.sequence_number;
    cluster
        .put_property(&web, "b", PropertyValue::Guid("x".to_owned()), "")
        .unwrap();
    assert!(cluster.property(&web, "b").unwrap().sequence_number > before);
    cluster.delete_property(&web, "b").unwrap();
    let error = cluster.delete_property(&web, "b").unwrap_err();
    assert_eq!(error.code, ErrorCode::PropertyDoesNotExist);
}

#[test]
fn a_batch_is_done_as_a_whole_or_not_at_all() {
    let mut cluster = cluster(SHOP);
    let web = name(WEB);
    let put = |name: &str, value: i64| PropertyOperation::Put {
        name: name.to_owned(),
        value: PropertyValue::Int64(value),
        custom_type: String::new(),
    };
    let get = PropertyOperation::Get {
        name: "a".to_owned(),
        include_value: true,
    };
    let outcome = cluster.submit_batch(&web, &[put("a", 1), get]).unwrap();
    let BatchOutcome::Done(results) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((results.len(), results[0].operation), (1, 1));
    let sequence_number = results[0].property.sequence_number;

    let checks = [
        PropertyOperation::CheckExists {
            name: "a".to_owned(),
            exists: false,
        },
        PropertyOperation::CheckExists {
            name: "b".to_owned(),
            exists: true,
        },
        PropertyOperation::CheckSequence {
            name: "a".to_owned(),
            sequence_number: 99,
        },
        PropertyOperation::CheckValue {
            name: "a".to_owned(),
            value: PropertyValue::Int64(2),
        },
    ];
    for check in checks {
        let outcome = cluster.submit_batch(
            &web,
            &[
                put("b", 1),
                PropertyOperation::Delete {
                    name: "b".to_owned(),
                },
                put("a", 5),
                check,
            ],
        );
        let BatchOutcome::Failed { operation, error } = outcome.unwrap() else {
            panic!("it is done");
        };
        assert_eq!(operation, 3);
        // The third step has changed the sequence number and the value: the checks must have seen the state
        // before it.
        assert!(
            matches!(error.code, ErrorCode::PropertyCheckFailed),
            "{error}"
        );
        assert_eq!(
            cluster.property(&web, "a").unwrap().value,
            PropertyValue::Int64(1)
        );
        assert_eq!(
            cluster.property(&web, "a").unwrap().sequence_number,
            sequence_number
        );
        assert!(cluster.property(&web, "b").is_err());
    }
    let outcome = cluster
        .submit_batch(
            &web,
            &[PropertyOperation::Delete {
                name: "zz".to_owned(),
            }],
        )
        .unwrap();
    assert!(matches!(outcome, BatchOutcome::Failed { operation: 0, .. }));
    assert_eq!(
        cluster.submit_batch(&web, &[]).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
}

#[test]
fn values_are_bounded_one_by_one_and_together() {
    let mut cluster = cluster(SHOP);
    let web = name(WEB);
    let megabyte = || PropertyValue::Binary(vec![0; 1024 * 1024]);
    for index in 0..16 {
        cluster
            .put_property(&web, &format!("p{index}"), megabyte(), "")
            .unwrap();
    }
    let error = cluster
        .put_property(&web, "more", megabyte(), "")
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ValueTooLarge);
    cluster
        .put_property(&web, "p0", PropertyValue::Int64(1), "")
        .unwrap();
    let long = "x".repeat(801);
    let error = cluster
        .put_property(&web, &long, PropertyValue::Int64(1), "")
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ValueTooLarge);
    let error = cluster
        .put_property(&web, "", PropertyValue::Int64(1), "")
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
}
