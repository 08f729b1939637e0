//! The form of requests, and the limits of responses.

use azure_loadbalancer::arm::{ArmErrorKind, ArmOptions, Precondition};
use azure_loadbalancer::resources::ArmId;
use serde_json::{Value, json};

use crate::arm::script::{Script, answer};

const ADDRESSES: &str =
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses";

#[tokio::test(start_paused = true)]
async fn no_name_leads_to_another_resource() {
    for name in ["..", ".", "", "../x", "..\t", ".\n.", "x/../../y"] {
        let script = Script::new(Vec::new());
        let id = ArmId::new(format!("{ADDRESSES}/{name}"));
        let error = script
            .client()
            .put::<Value>(&id, &json!({}), Precondition::IsNew)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ArmErrorKind::Rejected, "{name:?}");
        assert!(script.asked().is_empty(), "{name:?}");
    }
    // A name that only looks like a path when decoded is sent as a name.
    for (name, sent) in [
        ("%2e%2e", "%252e%252e"),
        (".%2E", ".%252E"),
        (
            "..\\networkSecurityGroups\\nsg",
            "..%5CnetworkSecurityGroups%5Cnsg",
        ),
        ("a?b#c d", "a%3Fb%23c%20d"),
    ] {
        let script = Script::new(vec![answer(200, &[], "{}")]);
        let id = ArmId::new(format!("{ADDRESSES}/{name}"));
        script
            .client()
            .put::<Value>(&id, &json!({}), Precondition::IsNew)
            .await
            .unwrap();
        let asked = script.asked();
        assert_eq!(asked[0].request.uri().path(), format!("{ADDRESSES}/{sent}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_has_an_end() {
    let page = |next: &str| {
        answer(
            200,
            &[],
            &json!({ "value": [], "nextLink": next }).to_string(),
        )
    };
    let script = Script::new(
        (0..10)
            .map(|turn| page(if turn % 2 == 0 { "/p2" } else { "/p1" }))
            .collect(),
    );
    let mut options = ArmOptions::default();
    options.max_pages = 10;
    let client = script.builder().options(options).build().unwrap();
    let error = client.list::<Value>(ADDRESSES).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::Malformed);
    assert!(error.to_string().contains("more than 10 pages"), "{error}");
    assert_eq!(script.asked().len(), 10);

    for (items, bytes, expected) in [
        (2, 1_000_000, "more than 2 items"),
        (100, 50, "more than 50 bytes"),
    ] {
        let one = || {
            json!({ "value": [{ "name": "a-name-of-twenty-one" }, {}], "nextLink": "/next" })
                .to_string()
        };
        let script = Script::new(vec![answer(200, &[], &one()), answer(200, &[], &one())]);
        let mut options = ArmOptions::default();
        (options.max_items, options.max_list_bytes) = (items, bytes);
        let client = script.builder().options(options).build().unwrap();
        let error = client.list::<Value>(ADDRESSES).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
