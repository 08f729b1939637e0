use std::time::Duration;

use serde_json::{Value, from_str, json, to_value};

use super::*;

fn read<T: for<'de> serde::Deserialize<'de>>(value: &Value) -> Result<T, String> {
    from_str(&value.to_string()).map_err(|error| error.to_string())
}

#[test]
fn a_replica_has_one_id_under_either_name() {
    let cases = [
        (json!({"ServiceKind": "Stateful", "ReplicaId": "7"}), 7),
        (json!({"ServiceKind": "Stateless", "InstanceId": "8"}), 8),
        (
            json!({"ServiceKind": "Stateless", "InstanceId": 8, "ReplicaId": "0"}),
            8,
        ),
        (
            json!({"ServiceKind": "Stateful", "InstanceId": "0", "ReplicaId": 9}),
            9,
        ),
        (
            json!({"ServiceKind": 2, "ReplicaId": "-9223372036854775808"}),
            i64::MIN,
        ),
        (
            json!({"ServiceKind": 1, "ReplicaId": null, "InstanceId": " 9223372036854775807 "}),
            i64::MAX,
        ),
        (json!({}), 0),
    ];
    for (wire, id) in cases {
        assert_eq!(read::<Replica>(&wire).unwrap().replica_id, id, "{wire}");
    }
    for wrong in [
        json!({"ReplicaId": "seven"}),
        json!({"ReplicaId": "9223372036854775808"}),
        json!({"ReplicaId": 9_223_372_036_854_775_808_u64}),
        json!({"ReplicaId": 1.5}),
        json!({"ReplicaId": [1]}),
    ] {
        read::<Replica>(&wrong).unwrap_err();
    }
}

#[test]
fn unknown_words_and_old_numbers_are_understood() {
    let cases = [
        (json!("Ready"), ReplicaStatus::Ready),
        (json!(3), ReplicaStatus::Ready),
        (json!(null), ReplicaStatus::Invalid),
        (json!("Melted"), ReplicaStatus::Other("Melted".into())),
        (json!(17), ReplicaStatus::Other("17".into())),
        (json!(-1), ReplicaStatus::Other("-1".into())),
        (json!(65535), ReplicaStatus::Other("65535".into())),
    ];
    for (wire, status) in cases {
        assert_eq!(read::<ReplicaStatus>(&wire).unwrap(), status, "{wire}");
    }
    assert_eq!(
        read::<HealthState>(&json!(65535)).unwrap(),
        HealthState::Unknown
    );
    assert_eq!(read::<HealthState>(&json!(3)).unwrap(), HealthState::Error);
    assert_eq!(
        read::<ServiceKind>(&json!(1)).unwrap(),
        ServiceKind::Stateless
    );
    assert_eq!(
        read::<ServiceKind>(&json!(2)).unwrap(),
        ServiceKind::Stateful
    );
    assert_eq!(
        read::<PartitionKind>(&json!(2)).unwrap(),
        PartitionKind::Int64Range
    );
    assert_eq!(
        read::<ReplicaRole>(&json!(4)).unwrap(),
        ReplicaRole::ActiveSecondary
    );
    read::<ReplicaStatus>(&json!({})).unwrap_err();
    read::<ReplicaStatus>(&json!(true)).unwrap_err();
}

#[test]
fn every_field_may_be_null_or_missing() {
    let application = json!({
        "Id": null, "Name": "fabric:/App", "TypeName": null, "TypeVersion": "1", "Status": null,
        "Parameters": null, "HealthState": null, "Unheard": {"Of": [1, 2]},
    });
    let application: Application = read(&application).unwrap();
    assert_eq!(application.name, "fabric:/App");
    assert_eq!(application.health_state, HealthState::Unknown);
    assert_eq!(application.parameters, []);

    let partition: Partition = read(&json!({
        "ServiceKind": "Stateful", "PartitionStatus": null, "HealthState": "Ok",
        "PartitionInformation": {"ServicePartitionKind": "Int64Range", "Id": "p", "LowKey": "-5", "HighKey": 5, "Name": null},
        "LastQuorumLossDurationInSeconds": "0",
    }))
    .unwrap();
    let information = partition.partition_information;
    assert_eq!(
        (information.low_key, information.high_key),
        (Some(-5), Some(5))
    );
    assert_eq!(
        read::<Partition>(&json!({"PartitionInformation": null})).unwrap(),
        Partition::default()
    );
    assert_eq!(
        read::<ServiceType>(&json!({"ServiceTypeDescription": null})).unwrap(),
        ServiceType::default()
    );
    assert_eq!(read::<Service>(&json!({})).unwrap(), Service::default());
}

#[test]
fn whether_a_type_keeps_state_is_said_in_two_ways() {
    let cases = [
        (json!({"IsStateful": true}), true),
        (json!({"IsStateful": false, "Kind": "Stateless"}), false),
        (json!({"Kind": "Stateful"}), true),
        (json!({"Kind": 2}), true),
        (json!({"IsStateful": null, "Kind": "Stateless"}), false),
        (json!({}), false),
    ];
    for (wire, stateful) in cases {
        let description: ServiceTypeDescription = read(&wire).unwrap();
        assert_eq!(description.is_stateful, stateful, "{wire}");
    }
    let extensions = |wire| read::<ServiceTypeDescription>(&wire).unwrap().extensions;
    assert_eq!(extensions(json!({})), None);
    assert_eq!(extensions(json!({"Extensions": null})), None);
    assert_eq!(extensions(json!({"Extensions": []})), Some(Vec::new()));
}

#[test]
fn pages_are_objects_or_bare_lists() {
    let page = |wire: Value| {
        read::<Page<Parameter>>(&wire).map(|page| (page.items.len(), page.continuation_token))
    };
    let item = json!({"Key": "a", "Value": "b"});
    assert_eq!(page(json!([item, item])), Ok((2, None)));
    assert_eq!(
        page(json!({"ContinuationToken": "", "Items": [item]})),
        Ok((1, None))
    );
    assert_eq!(
        page(json!({"ContinuationToken": null, "Items": []})),
        Ok((0, None))
    );
    assert_eq!(
        page(json!({"Items": [], "ContinuationToken": "t"})),
        Ok((0, Some("t".to_owned())))
    );
    assert_eq!(
        page(json!({"IsConsistent": true, "Properties": [item]})),
        Ok((1, None))
    );
    for wrong in [
        json!({}),
        json!({"ContinuationToken": "t"}),
        json!(null),
        json!("x"),
        json!({"Items": {}}),
        json!({"ContinuationToken": null, "Items": null}),
        json!({"Items": [], "Properties": []}),
    ] {
        page(wrong.clone()).expect_err(&wrong.to_string());
    }
}

#[test]
fn lists_are_bounded() {
    let longest = format!("[{}{{}}]", "{},".repeat(99_999));
    assert_eq!(
        from_str::<Page<Parameter>>(&longest).unwrap().items.len(),
        100_000
    );
    let longer = format!("[{}{{}}]", "{},".repeat(100_000));
    let error = from_str::<Page<Parameter>>(&longer)
        .unwrap_err()
        .to_string();
    assert!(error.contains("more than 100000 items"), "{error}");
    let nested = format!(r#"{{"Parameters":{longer}}}"#);
    from_str::<Application>(&nested).unwrap_err();
    let nested = format!(r#"{{"Extensions":{longer}}}"#);
    from_str::<ServiceTypeDescription>(&nested).unwrap_err();
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let deep = "[".repeat(200_000);
    from_str::<Page<Replica>>(&deep).unwrap_err();
    from_str::<Page<Property>>(&format!(r#"[{{"Value":{{"Data":{deep}"#)).unwrap_err();
    from_str::<ClusterHealthChunk>(&format!(r#"{{"Unknown":{deep}"#)).unwrap_err();
}

#[test]
fn only_texts_are_texts() {
    let text = |wire: Value| {
        read::<Property>(&json!({"Name": "n", "Value": wire}))
            .unwrap()
            .as_text()
            .map(str::to_owned)
    };
    assert_eq!(
        text(json!({"Kind": "String", "Data": "x"})).as_deref(),
        Some("x")
    );
    assert_eq!(text(json!({"Kind": 4, "Data": "x"})).as_deref(), Some("x"));
    assert_eq!(text(json!({"Kind": "Guid", "Data": "x"})), None);
    assert_eq!(text(json!({"Kind": "Binary", "Data": [1, 2]})), None);
    assert_eq!(text(json!({"Kind": "String", "Data": 1})), None);
    assert_eq!(text(json!(null)), None);
}

#[test]
fn health_is_reported_in_the_words_of_the_gateway() {
    let mut health = HealthInformation::new("YARP", "DynamicConfig", HealthState::Warning);
    assert_eq!(
        to_value(&health).unwrap(),
        json!({"SourceId": "YARP", "Property": "DynamicConfig", "HealthState": "Warning", "RemoveWhenExpired": false})
    );
    health.description = "hi".to_owned();
    health.remove_when_expired = true;
    let times = [
        (Duration::from_secs(90), Some("PT0H1M30S")),
        (Duration::from_millis(65_500), Some("PT0H1M5.500S")),
        (Duration::from_secs(90_000), Some("PT25H0M0S")),
        (Duration::MAX, None),
    ];
    for (time, text) in times {
        health.time_to_live = Some(time);
        let value = to_value(&health).unwrap();
        assert_eq!(
            value
                .get("TimeToLiveInMilliSeconds")
                .and_then(Value::as_str),
            text,
            "{time:?}"
        );
        assert_eq!(value["Description"], "hi");
        assert_eq!(value["RemoveWhenExpired"], true);
    }
}

#[test]
fn the_health_chunk_names_every_replica_or_says_that_it_does_not() {
    let chunk = |partition_total: Value| {
        json!({
            "HealthState": "Ok",
            "ApplicationHealthStateChunks": {"TotalCount": "1", "Items": [{
                "ApplicationName": "fabric:/App", "HealthState": "Ok",
                "ServiceHealthStateChunks": {"Items": [
                    {"ServiceName": "fabric:/App/Web", "PartitionHealthStateChunks": {"TotalCount": partition_total, "Items": [
                        {"PartitionId": "p2", "ReplicaHealthStateChunks": {"Items": [
                            {"ReplicaOrInstanceId": "9", "HealthState": "Ok"}, {"ReplicaOrInstanceId": 3}]}},
                        {"PartitionId": "p1", "ReplicaHealthStateChunks": null}]}},
                    {"ServiceName": "fabric:/App/Api"}]},
            }]},
        })
    };
    let read = |wire: &Value| read::<ClusterHealthChunk>(wire).unwrap().replica_ids();
    let services = read(&chunk(json!(2))).unwrap();
    assert_eq!(
        services,
        [
            crate::ServiceReplicas::new("fabric:/App/Api", vec![]),
            crate::ServiceReplicas::new(
                "fabric:/App/Web",
                vec![("p1".to_owned(), vec![]), ("p2".to_owned(), vec![3, 9])]
            ),
        ]
    );
    assert_eq!(read(&chunk(json!(3))), None, "one partition was left out");
    assert_eq!(read(&json!({"HealthState": "Ok"})), None);
    let query: Value = from_str(ClusterHealthChunk::QUERY).unwrap();
    assert_eq!(
        query["ApplicationFilters"][0]["ServiceFilters"][0]["PartitionFilters"][0]["ReplicaFilters"]
            [0]["HealthStateFilter"],
        65535
    );
}

#[test]
fn values_of_parameters_are_not_shown() {
    let parameter = Parameter {
        key: "DbPassword".to_owned(),
        value: "hunter2".to_owned(),
    };
    let application = Application {
        parameters: vec![parameter.clone()],
        ..Default::default()
    };
    let application_type = ApplicationType {
        default_parameter_list: vec![parameter.clone()],
        ..Default::default()
    };
    let parameters = crate::extension::Parameters::new(&[parameter], &[]);
    for shown in [
        format!("{application:?}"),
        format!("{application_type:#?}"),
        format!("{parameters:?}"),
    ] {
        assert!(shown.contains("DbPassword"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
