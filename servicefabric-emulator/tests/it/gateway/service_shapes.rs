//! The JSON keys of services and the entities below them, one by one.

use serde_json::{Value, json};

use super::{Gateway, expect_wide, keys, text};

#[tokio::test]
async fn services() {
    let gateway = Gateway::start().await;
    let path = "/Applications/Shop/$/GetServices";
    let web = gateway.get(&format!("{path}/Shop~Web")).await.json;
    assert_eq!(
        web,
        json!({
            "Id": "Shop~Web", "ServiceKind": "Stateless", "Name": "fabric:/Shop/Web",
            "TypeName": "WebType", "ManifestVersion": "1.0.0", "HealthState": "Ok",
            "ServiceStatus": "Active", "IsServiceGroup": false,
        })
    );
    let cart = gateway.get(&format!("{path}/Shop~Cart")).await.json;
    assert_eq!(cart["ServiceKind"], "Stateful");
    assert_eq!(cart["HasPersistedState"], true);
    let of_type = gateway
        .items(&format!("{path}?ServiceTypeName=WebType"))
        .await;
    assert_eq!(of_type.len(), 2);
    let name = gateway.get("/Services/Shop~Web/$/GetApplicationName").await;
    assert_eq!(name.json, json!({"Id": "Shop", "Name": "fabric:/Shop"}));
}

#[tokio::test]
async fn descriptions_of_services() {
    let gateway = Gateway::start().await;
    let web = gateway
        .get("/Services/Shop~Web/$/GetDescription")
        .await
        .json;
    assert_eq!(web["ServiceKind"], "Stateless");
    assert_eq!(web["InstanceCount"], 2);
    assert_eq!(
        web["PartitionDescription"],
        json!({"PartitionScheme": "Singleton"})
    );
    assert_eq!(web["ServicePackageActivationMode"], "SharedProcess");
    let cart = gateway
        .get("/Services/Shop~Cart/$/GetDescription")
        .await
        .json;
    assert_eq!(
        cart["PartitionDescription"],
        json!({"PartitionScheme": "UniformInt64Range", "Count": 2, "LowKey": "0", "HighKey": "99"})
    );
    assert_eq!(
        (&cart["TargetReplicaSetSize"], &cart["HasPersistedState"]),
        (&json!(3), &json!(true))
    );
    let regions = gateway
        .get("/Services/Shop~Regions/$/GetDescription")
        .await
        .json;
    assert_eq!(
        regions["PartitionDescription"],
        json!({"PartitionScheme": "Named", "Count": 2, "Names": ["eu", "us"]})
    );
}

#[tokio::test]
async fn partitions() {
    let gateway = Gateway::start().await;
    let web = &gateway.items("/Services/Shop~Web/$/GetPartitions").await[0];
    let id = text(&web["PartitionInformation"]["Id"]);
    assert_eq!(
        *web,
        json!({
            "ServiceKind": "Stateless", "HealthState": "Ok", "PartitionStatus": "Ready",
            "PartitionInformation": {"ServicePartitionKind": "Singleton", "Id": id},
            "InstanceCount": 2, "MinInstanceCount": web["MinInstanceCount"], "MinInstancePercentage": 0,
        })
    );
    assert_eq!(gateway.get(&format!("/Partitions/{id}")).await.json, *web);
    let name = gateway
        .get(&format!("/Partitions/{id}/$/GetServiceName"))
        .await;
    assert_eq!(
        name.json,
        json!({"Id": "Shop~Web", "Name": "fabric:/Shop/Web"})
    );

    let carts = gateway.items("/Services/Shop~Cart/$/GetPartitions").await;
    let mut ranges: Vec<_> = carts
        .iter()
        .map(|cart| &cart["PartitionInformation"])
        .map(|found| (text(&found["LowKey"]), text(&found["HighKey"])))
        .collect();
    ranges.sort_unstable();
    let expected = [("0", "49"), ("50", "99")];
    assert_eq!(
        ranges,
        expected.map(|(low, high)| (low.to_owned(), high.to_owned()))
    );
    assert_eq!(
        keys(&carts[0]),
        [
            "AuxiliaryReplicaCount",
            "HealthState",
            "LastQuorumLossDuration",
            "MinReplicaSetSize",
            "PartitionInformation",
            "PartitionStatus",
            "PrimaryEpoch",
            "ServiceKind",
            "TargetReplicaSetSize",
        ]
    );
    assert_eq!(carts[0]["LastQuorumLossDuration"], "PT0H0M0S");
    let regions = gateway
        .items("/Services/Shop~Regions/$/GetPartitions")
        .await;
    let mut names: Vec<_> = regions
        .iter()
        .map(|region| text(&region["PartitionInformation"]["Name"]))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["eu", "us"]);
}

#[tokio::test]
async fn replicas_and_instances() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let path = format!("/Partitions/{partition}/$/GetReplicas");
    let instances = gateway.items(&path).await;
    assert_eq!(instances.len(), 2);
    let instance = &instances[0];
    assert_eq!(
        keys(instance),
        [
            "Address",
            "HealthState",
            "InstanceId",
            "LastInBuildDurationInSeconds",
            "NodeName",
            "ReplicaStatus",
            "ServiceKind",
        ]
    );
    expect_wide(&instance["InstanceId"]);
    expect_wide(&instance["LastInBuildDurationInSeconds"]);
    assert_eq!(instance["ReplicaStatus"], "Ready");
    let address: Value = serde_json::from_str(&text(&instance["Address"])).expect("JSON in JSON");
    assert_eq!(keys(&address["Endpoints"]), ["http", "https"]);
    assert!(text(&address["Endpoints"]["https"]).starts_with("https://"));
    let id = text(&instance["InstanceId"]);
    assert_eq!(gateway.get(&format!("{path}/{id}")).await.json, *instance);

    let partition = gateway.partition("Shop~Cart").await;
    let replicas = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    assert_eq!(replicas.len(), 3);
    let mut roles: Vec<_> = replicas
        .iter()
        .map(|replica| text(&replica["ReplicaRole"]))
        .collect();
    roles.sort_unstable();
    assert_eq!(roles, ["ActiveSecondary", "ActiveSecondary", "Primary"]);
    expect_wide(&replicas[0]["ReplicaId"]);
    assert!(replicas[0].get("InstanceId").is_none());
}

#[tokio::test]
async fn resolved_partitions() {
    let gateway = Gateway::start().await;
    let path = "/Services/Shop~Web/$/ResolvePartition";
    let web = gateway.get(path).await.json;
    assert_eq!(
        keys(&web),
        ["Endpoints", "Name", "PartitionInformation", "Version"]
    );
    assert_eq!(web["Name"], "fabric:/Shop/Web");
    assert_eq!(web["Endpoints"].as_array().map(Vec::len), Some(2));
    assert_eq!(keys(&web["Endpoints"][0]), ["Address", "Kind"]);
    assert_eq!(web["Endpoints"][0]["Kind"], "Stateless");
    let version = text(&web["Version"]);
    let again = gateway
        .get(&format!(
            "{path}?PartitionKeyType=1&PreviousRspVersion={version}"
        ))
        .await;
    assert_eq!(again.status, 200);

    let cart = "/Services/Shop~Cart/$/ResolvePartition?PartitionKeyType=2&PartitionKeyValue";
    let low = gateway.get(&format!("{cart}=49")).await.json;
    assert_eq!(low["PartitionInformation"]["HighKey"], "49");
    let kinds: Vec<_> = low["Endpoints"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|endpoint| text(&endpoint["Kind"]))
        .collect();
    assert_eq!(
        kinds,
        ["StatefulPrimary", "StatefulSecondary", "StatefulSecondary"]
    );
    let named = "/Services/Shop~Regions/$/ResolvePartition?PartitionKeyType=3&PartitionKeyValue";
    let eu = gateway.get(&format!("{named}=eu")).await.json;
    assert_eq!(eu["PartitionInformation"]["Name"], "eu");
    for (path, code) in [
        (format!("{cart}=100"), "FABRIC_E_INVALID_PARTITION_KEY"),
        (format!("{cart}=x"), "FABRIC_E_INVALID_PARTITION_KEY"),
        (format!("{named}=mars"), "FABRIC_E_INVALID_PARTITION_KEY"),
        (
            "/Services/Shop~Cart/$/ResolvePartition".to_owned(),
            "FABRIC_E_INVALID_PARTITION_KEY",
        ),
        (format!("{path}?PartitionKeyType=4"), "E_INVALIDARG"),
        (
            "/Services/Shop~Regions/$/ResolvePartition?PartitionKeyType=3".to_owned(),
            "E_INVALIDARG",
        ),
    ] {
        let reply = gateway.get(&path).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{path}");
    }
}

#[tokio::test]
async fn what_is_deployed() {
    let gateway = Gateway::start().await;
    let partition = gateway.partition("Shop~Web").await;
    let node = text(&gateway.replica(&partition).await["NodeName"]);
    let applications = gateway
        .items(&format!("/Nodes/{node}/$/GetApplications"))
        .await;
    let shop = applications
        .iter()
        .find(|found| found["Name"] == "fabric:/Shop")
        .expect("it is deployed where its instances are");
    assert_eq!(
        keys(shop),
        [
            "HealthState",
            "Id",
            "LogDirectory",
            "Name",
            "Status",
            "TempDirectory",
            "TypeName",
            "TypeVersion",
            "WorkDirectory",
        ]
    );
    assert_eq!(
        (&shop["Status"], &shop["HealthState"]),
        (&json!("Active"), &json!("Unknown"))
    );
    let path = format!("/Nodes/{node}/$/GetApplications/Shop");
    let one = gateway
        .get(&format!("{path}?IncludeHealthState=true"))
        .await;
    assert_eq!(one.json["HealthState"], "Ok");

    let packages = gateway
        .get(&format!("{path}/$/GetServicePackages/WebPkg"))
        .await
        .json;
    assert_eq!(
        packages,
        json!([{"Name": "WebPkg", "Version": "1.0.0", "Status": "Active", "ServicePackageActivationId": ""}])
    );
    let none = gateway
        .get(&format!("{path}/$/GetServicePackages/NoPkg"))
        .await;
    none.expect_empty(204);

    let code = gateway
        .get(&format!(
            "{path}/$/GetCodePackages?ServiceManifestName=WebPkg"
        ))
        .await
        .json;
    assert_eq!(
        keys(&code[0]),
        [
            "HostIsolationMode",
            "HostType",
            "MainEntryPoint",
            "Name",
            "RunFrequencyInterval",
            "ServiceManifestName",
            "ServicePackageActivationId",
            "SetupEntryPoint",
            "Status",
            "Version",
        ]
    );
    let main = &code[0]["MainEntryPoint"];
    assert_eq!(main["Status"], "Started");
    expect_wide(&main["ProcessId"]);
    assert_eq!(
        main["CodePackageEntryPointStatistics"]["ActivationCount"],
        "1"
    );

    let types = gateway
        .get(&format!("{path}/$/GetServiceTypes/WebType"))
        .await
        .json;
    assert_eq!(types[0]["Status"], "Registered");
    let replicas = gateway
        .get(&format!("{path}/$/GetReplicas?PartitionId={partition}"))
        .await
        .json;
    assert_eq!(replicas.as_array().map(Vec::len), Some(1));
    assert_eq!(
        keys(&replicas[0]),
        [
            "Address",
            "CodePackageName",
            "HostProcessId",
            "InstanceId",
            "PartitionId",
            "ReplicaStatus",
            "ServiceKind",
            "ServiceManifestName",
            "ServiceName",
            "ServicePackageActivationId",
            "ServiceTypeName",
        ]
    );
    assert_eq!(replicas[0]["HostProcessId"], main["ProcessId"]);
}
