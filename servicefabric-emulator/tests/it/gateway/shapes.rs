//! The JSON keys of the cluster, nodes, types and applications, one by one.

use serde_json::json;

use super::{Gateway, expect_wide, keys, text};

#[tokio::test]
async fn the_cluster() {
    let gateway = Gateway::start().await;
    let version = gateway.get("/$/GetClusterVersion").await;
    assert!(text(&version.json["Version"]).starts_with("9.1."));
    let manifest = gateway.get("/$/GetClusterManifest").await;
    assert!(text(&manifest.json["Manifest"]).contains("<ClusterManifest"));
    let metadata = gateway.get("/$/GetAadMetadata").await;
    assert_eq!(metadata.json["type"], "aad");
    assert_eq!(
        keys(&metadata.json["metadata"]),
        [
            "authority",
            "client",
            "cluster",
            "login",
            "redirect",
            "tenant"
        ]
    );
}

#[tokio::test]
async fn nodes() {
    let gateway = Gateway::start().await;
    let nodes = gateway.items("/Nodes").await;
    assert_eq!(nodes.len(), 3);
    let node = &nodes[0];
    assert_eq!(
        keys(node),
        [
            "CodeVersion",
            "ConfigVersion",
            "FaultDomain",
            "HealthState",
            "Id",
            "InstanceId",
            "IpAddressOrFQDN",
            "IsNodeByNodeUpgradeInProgress",
            "IsSeedNode",
            "IsStopped",
            "Name",
            "NodeDeactivationInfo",
            "NodeDownAt",
            "NodeDownTimeInSeconds",
            "NodeStatus",
            "NodeTags",
            "NodeUpAt",
            "NodeUpTimeInSeconds",
            "Type",
            "UpgradeDomain",
        ]
    );
    assert_eq!(node["Name"], "_Node_0");
    assert_eq!(
        (&node["NodeStatus"], &node["HealthState"]),
        (&json!("Up"), &json!("Ok"))
    );
    assert_eq!(node["NodeUpTimeInSeconds"], "600");
    assert_eq!(node["NodeDownAt"], "0001-01-01T00:00:00.000Z");
    assert_eq!(
        node["NodeDeactivationInfo"]["NodeDeactivationIntent"],
        "Invalid"
    );
    assert_eq!(text(&node["Id"]["Id"]).len(), 32);
    expect_wide(&node["InstanceId"]);
    assert_eq!(gateway.get("/Nodes/_Node_0").await.json, *node);
}

#[tokio::test]
async fn application_types() {
    let gateway = Gateway::start().await;
    let types = gateway.items("/ApplicationTypes").await;
    let found: Vec<_> = types
        .iter()
        .map(|found| (text(&found["Name"]), text(&found["Version"])))
        .collect();
    let expected = [
        ("MeterType", "1.0.0"),
        ("ShopType", "1.0.0"),
        ("ShopType", "2.0.0"),
    ];
    assert_eq!(
        found,
        expected.map(|(name, version)| (name.to_owned(), version.to_owned()))
    );
    assert_eq!(
        types[1],
        json!({
            "Name": "ShopType", "Version": "1.0.0", "Status": "Available", "StatusDetails": "",
            "DefaultParameterList": [{"Key": "Host", "Value": "shop.invalid"}],
            "ApplicationTypeDefinitionKind": "ServiceFabricApplicationPackage",
        })
    );
    for (query, count) in [
        ("ShopType", 2),
        ("ShopType?ApplicationTypeVersion=2.0.0", 1),
        ("ShopType?ApplicationTypeVersion=9", 0),
        ("NoType", 0),
        ("ShopType?ApplicationTypeDefinitionKindFilter=2", 0),
        ("ShopType?ApplicationTypeDefinitionKindFilter=1", 2),
    ] {
        let path = format!("/ApplicationTypes/{query}");
        assert_eq!(gateway.items(&path).await.len(), count, "{path}");
    }
    let bare = gateway
        .items("/ApplicationTypes?ExcludeApplicationParameters=true")
        .await;
    assert!(bare[1].get("DefaultParameterList").is_none());
}

#[tokio::test]
async fn service_types() {
    let gateway = Gateway::start().await;
    let path = "/ApplicationTypes/ShopType/$/GetServiceTypes";
    let reply = gateway
        .get(&format!("{path}?ApplicationTypeVersion=1.0.0"))
        .await;
    let types = reply.json.as_array().expect("a bare array");
    assert_eq!(types.len(), 2);
    let web = types
        .iter()
        .find(|found| found["ServiceTypeDescription"]["ServiceTypeName"] == "WebType")
        .expect("it is declared");
    assert_eq!(
        keys(web),
        [
            "IsServiceGroup",
            "ServiceManifestName",
            "ServiceManifestVersion",
            "ServiceTypeDescription"
        ]
    );
    let description = &web["ServiceTypeDescription"];
    assert_eq!(description["Kind"], "Stateless");
    assert_eq!(description["IsStateful"], false);
    assert_eq!(description["UseImplicitHost"], false);
    assert!(description.get("HasPersistedState").is_none());
    assert_eq!(description["Extensions"][0]["Key"], "YARP-preview");
    let labels = text(&description["Extensions"][0]["Value"]);
    assert!(labels.starts_with("<Labels xmlns="), "{labels}");
    assert!(labels.contains("YARP.Enable"), "{labels}");
    let one = gateway
        .get(&format!("{path}/WebType?ApplicationTypeVersion=1.0.0"))
        .await;
    assert_eq!(one.json, *web);
    let manifest = gateway
        .get("/ApplicationTypes/ShopType/$/GetServiceManifest?ApplicationTypeVersion=1.0.0&ServiceManifestName=WebPkg")
        .await;
    assert!(text(&manifest.json["Manifest"]).contains(&labels[..10]));
    let manifest = gateway
        .get("/ApplicationTypes/ShopType/$/GetApplicationManifest?ApplicationTypeVersion=1.0.0")
        .await;
    assert!(text(&manifest.json["Manifest"]).contains("ApplicationTypeName=\"ShopType\""));
}

#[tokio::test]
async fn applications() {
    let gateway = Gateway::start().await;
    let reply = gateway.get("/Applications/Shop").await;
    assert_eq!(
        reply.json,
        json!({
            "Id": "Shop", "Name": "fabric:/Shop", "TypeName": "ShopType", "TypeVersion": "1.0.0",
            "Status": "Ready", "Parameters": [{"Key": "Host", "Value": "shop.example"}],
            "HealthState": "Ok", "ApplicationDefinitionKind": "ServiceFabricApplicationDescription",
        })
    );
    let bare = gateway
        .get("/Applications/Shop?ExcludeApplicationParameters=true")
        .await;
    assert!(bare.json.get("Parameters").is_none());
    for (query, count) in [
        ("", 2),
        ("?ApplicationTypeName=ShopType", 1),
        ("?ApplicationTypeName=NoType", 0),
        ("?ApplicationDefinitionKindFilter=0", 2),
        ("?ApplicationDefinitionKindFilter=1", 2),
        ("?ApplicationDefinitionKindFilter=2", 0),
        ("?ApplicationDefinitionKindFilter=65535", 2),
    ] {
        let path = format!("/Applications{query}");
        assert_eq!(gateway.items(&path).await.len(), count, "{path}");
    }
    for query in [
        "?ApplicationDefinitionKindFilter=all",
        "?ExcludeApplicationParameters=maybe",
        "?MaxResults=-1",
        "?MaxResults=many",
    ] {
        let reply = gateway.get(&format!("/Applications{query}")).await;
        reply.expect_error(400, "E_INVALIDARG");
    }
}

#[tokio::test]
async fn older_gateways_say_it_otherwise() {
    use servicefabric_emulator::gateway::Dialect;
    let gateway = Gateway::of(super::builder().dialect(Dialect::Runtime64)).await;
    let types = gateway
        .get("/ApplicationTypes/ShopType/$/GetServiceTypes?ApplicationTypeVersion=1.0.0")
        .await;
    assert!(
        types.json[0]["ServiceTypeDescription"]
            .get("Kind")
            .is_none()
    );
    let carts = gateway.items("/Services/Shop~Cart/$/GetPartitions").await;
    assert_eq!(carts[0]["LastQuorumLossDurationInSeconds"], "0");
    assert!(carts[0].get("LastQuorumLossDuration").is_none());
}
