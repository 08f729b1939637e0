//! Names and their properties.

use serde_json::{Value, json};

use super::{Gateway, keys, text};

#[tokio::test]
async fn properties_of_every_kind_come_back() {
    let gateway = Gateway::start().await;
    let path = "/Names/Shop~Web/$/GetProperty";
    for (name, value) in [
        ("string", json!({"Kind": "String", "Data": "true"})),
        (
            "int64",
            json!({"Kind": "Int64", "Data": "-9223372036854775808"}),
        ),
        ("double", json!({"Kind": "Double", "Data": 1.5})),
        ("binary", json!({"Kind": "Binary", "Data": [0, 255]})),
        (
            "guid",
            json!({"Kind": "Guid", "Data": "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}),
        ),
    ] {
        let body = json!({"PropertyName": name, "Value": value, "CustomTypeId": "mine"});
        let put = gateway.send("PUT", path, &body.to_string()).await;
        put.expect_empty(200);
        let found = gateway
            .get(&format!("{path}?PropertyName={name}"))
            .await
            .json;
        assert_eq!(found["Name"], name);
        assert_eq!(found["Value"], value);
        let metadata = &found["Metadata"];
        assert_eq!(
            keys(metadata),
            [
                "CustomTypeId",
                "LastModifiedUtcTimestamp",
                "Parent",
                "SequenceNumber",
                "SizeInBytes",
                "TypeId",
            ]
        );
        assert_eq!(metadata["Parent"], "fabric:/Shop/Web");
        assert_eq!(metadata["CustomTypeId"], "mine");
        assert_eq!(metadata["TypeId"], value["Kind"]);
    }
    let gone = gateway
        .send("DELETE", &format!("{path}?PropertyName=double"), "")
        .await;
    gone.expect_empty(200);
    let listed = gateway.get("/Names/Shop~Web/$/GetProperties").await.json;
    assert_eq!(
        keys(&listed),
        ["ContinuationToken", "IsConsistent", "Properties"]
    );
    assert_eq!(listed["Properties"].as_array().map(Vec::len), Some(4));
    assert!(listed["Properties"][0].get("Value").is_none());
    let listed = gateway
        .get("/Names/Shop~Web/$/GetProperties?IncludeValues=true")
        .await
        .json;
    assert_eq!(listed["Properties"][0]["Value"]["Kind"], "Binary");
}

#[tokio::test]
async fn values_that_are_none_are_rejected() {
    let gateway = Gateway::start().await;
    for body in [
        json!({"PropertyName": "x"}),
        json!({"Value": {"Kind": "String", "Data": ""}}),
        json!({"PropertyName": "x", "Value": {"Kind": "Text", "Data": ""}}),
        json!({"PropertyName": "x", "Value": {"Kind": "Int64", "Data": "1.5"}}),
        json!({"PropertyName": "x", "Value": {"Kind": "Binary", "Data": [256]}}),
        json!([]),
    ] {
        let reply = gateway
            .send("PUT", "/Names/Shop~Web/$/GetProperty", &body.to_string())
            .await;
        reply.expect_error(400, "E_INVALIDARG");
    }
}

#[tokio::test]
async fn names_are_created_listed_and_deleted() {
    let gateway = Gateway::start().await;
    for (name, status) in [
        ("fabric:/Extra/a", 201),
        ("fabric:/Extra/b", 201),
        ("fabric:/Extra/b", 409),
        ("Extra", 400),
    ] {
        let reply = gateway.post("/Names/$/Create", json!({"Name": name})).await;
        assert_eq!(reply.status, status, "{name}: {}", reply.json);
    }
    let below = gateway.get("/Names/Extra/$/GetSubNames").await.json;
    assert_eq!(
        below,
        json!({"ContinuationToken": "", "IsConsistent": true, "SubNames": ["fabric:/Extra/a", "fabric:/Extra/b"]})
    );
    let parent = gateway.send("DELETE", "/Names/Extra", "").await;
    parent.expect_error(409, "FABRIC_E_NAME_NOT_EMPTY");
    gateway
        .send("DELETE", "/Names/Extra~a", "")
        .await
        .expect_empty(200);
    gateway.get("/Names/Extra~a").await.expect_empty(404);
}

#[tokio::test]
async fn batches_are_done_as_a_whole_or_not_at_all() {
    let gateway = Gateway::start().await;
    let path = "/Names/Shop~Web/$/GetProperties/$/SubmitBatch";
    let value = json!({"Kind": "String", "Data": "1"});
    let done = gateway
        .post(
            path,
            json!({"Operations": [
                {"Kind": "CheckExists", "PropertyName": "a", "Exists": false},
                {"Kind": "Put", "PropertyName": "a", "Value": value},
                {"Kind": "Get", "PropertyName": "a", "IncludeValue": true},
            ]}),
        )
        .await;
    assert_eq!(done.status, 200);
    assert_eq!(done.json["Kind"], "Successful");
    assert_eq!(keys(&done.json["Properties"]), ["2"]);
    assert_eq!(done.json["Properties"]["2"]["Value"], value);
    let failed = gateway
        .post(
            path,
            json!({"Operations": [
                {"Kind": "Delete", "PropertyName": "a"},
                {"Kind": "CheckValue", "PropertyName": "b", "Value": value},
            ]}),
        )
        .await;
    assert_eq!(failed.status, 409);
    assert_eq!(
        keys(&failed.json),
        ["ErrorMessage", "Kind", "OperationIndex"]
    );
    assert_eq!(failed.json["Kind"], "Failed");
    assert_eq!(failed.json["OperationIndex"], 1);
    let still = gateway
        .get("/Names/Shop~Web/$/GetProperty?PropertyName=a")
        .await;
    assert_eq!(still.status, 200);
    let wrong: Value = json!({"Operations": [{"Kind": "Guess", "PropertyName": "a"}]});
    gateway
        .post(path, wrong)
        .await
        .expect_error(400, "E_INVALIDARG");
    assert_eq!(text(&still.json["Name"]), "a");
}
