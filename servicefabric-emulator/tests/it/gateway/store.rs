//! The image store, and packages that are deployed from it.

use servicefabric_emulator::cluster::ApplicationType;
use servicefabric_emulator::gateway::Emulator;
use servicefabric_emulator::topology::Topology;

use super::{Gateway, SETTLED, builder, text};

const APPLICATION: &str = r#"<ApplicationManifest ApplicationTypeName="PackedType" ApplicationTypeVersion="3.0"
  xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <Parameters><Parameter Name="Count" DefaultValue="2" /></Parameters>
  <ServiceManifestImport><ServiceManifestRef ServiceManifestName="FrontPkg" ServiceManifestVersion="3.0" /></ServiceManifestImport>
  <DefaultServices><Service Name="Front">
    <StatelessService ServiceTypeName="FrontType" InstanceCount="[Count]"><SingletonPartition /></StatelessService>
  </Service></DefaultServices>
</ApplicationManifest>"#;

const SERVICE: &str = r#"<ServiceManifest Name="FrontPkg" Version="3.0" xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <ServiceTypes><StatelessServiceType ServiceTypeName="FrontType">
    <Extensions><Extension Name="YARP-preview"><Labels xmlns="http://schemas.microsoft.com/2015/03/fabact-no-schema"><Label Key="YARP.Enable">true</Label></Labels></Extension></Extensions>
  </StatelessServiceType></ServiceTypes>
  <CodePackage Name="Code" Version="3.0"><EntryPoint><ExeHost><Program>front</Program></ExeHost></EntryPoint></CodePackage>
  <Resources><Endpoints><Endpoint Name="http" Protocol="http" /></Endpoints></Resources>
</ServiceManifest>"#;

impl Gateway {
    async fn upload(&self, path: &str, content: &str) {
        let path = format!("/ImageStore/{path}?api-version=6.1&timeout=60");
        let reply = self.send_as_written("PUT", &path, content).await;
        reply.expect_empty(200);
    }
}

#[tokio::test]
async fn a_package_is_uploaded_provisioned_and_runs() {
    let gateway = Gateway::start().await;
    // Larger than the limit of any other body.
    let program = "x".repeat(5 << 20);
    gateway
        .upload("Packed/ApplicationManifest.xml", APPLICATION)
        .await;
    gateway
        .upload("Packed/FrontPkg/ServiceManifest.xml", SERVICE)
        .await;
    gateway.upload("Packed/FrontPkg/Code/front", &program).await;
    gateway.upload("Packed/FrontPkg/_.dir", "").await;

    let root = gateway.get("/ImageStore").await;
    assert_eq!(root.json["StoreFolders"][0]["StoreRelativePath"], "Packed");
    assert_eq!(root.json["StoreFolders"][0]["FileCount"], "4");
    let file = gateway.get("/ImageStore/Packed/FrontPkg/Code/front").await;
    assert_eq!(
        file.json["StoreFiles"][0]["FileSize"],
        (5 << 20).to_string()
    );

    let provision =
        r#"{"Kind":"ImageStorePath","Async":false,"ApplicationTypeBuildPath":"Packed"}"#;
    let path = "/ApplicationTypes/$/Provision";
    gateway.post(path, provision).await.expect_empty(200);
    gateway
        .post(path, provision)
        .await
        .expect_error(409, "FABRIC_E_APPLICATION_TYPE_ALREADY_EXISTS");
    let create = r#"{"Name":"fabric:/Packed","TypeName":"PackedType","TypeVersion":"3.0","ParameterList":[{"Key":"Count","Value":"3"}]}"#;
    gateway
        .post("/Applications/$/Create", create)
        .await
        .expect_empty(201);
    gateway.emulator.advance(SETTLED);
    let partition = gateway.partition("Packed~Front").await;
    let replicas = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    assert_eq!(replicas.len(), 3);
    assert!(
        replicas
            .iter()
            .all(|replica| replica["ReplicaStatus"] == "Ready")
    );
    let types = gateway
        .get("/ApplicationTypes/PackedType/$/GetServiceTypes?ApplicationTypeVersion=3.0")
        .await;
    let extension = &types.json[0]["ServiceTypeDescription"]["Extensions"][0];
    assert_eq!(extension["Key"], "YARP-preview");
    assert!(text(&extension["Value"]).starts_with("<Labels "));

    gateway
        .send("DELETE", "/ImageStore/Packed", "")
        .await
        .expect_empty(200);
    for method in ["GET", "DELETE"] {
        let reply = gateway.send(method, "/ImageStore/Packed", "").await;
        reply.expect_error(404, "FABRIC_E_FILE_NOT_FOUND");
    }
}

#[tokio::test]
async fn a_package_that_is_wrong_is_rejected_with_the_reason() {
    let gateway = Gateway::start().await;
    gateway
        .upload("Broken/ApplicationManifest.xml", APPLICATION)
        .await;
    let provision = r#"{"ApplicationTypeBuildPath":"Broken"}"#;
    let reply = gateway
        .post("/ApplicationTypes/$/Provision", provision)
        .await;
    reply.expect_error(400, "E_INVALIDARG");
    let message = text(&reply.json["Error"]["Message"]);
    assert!(
        message.contains("FrontPkg/ServiceManifest.xml"),
        "{message}"
    );
    let reply = gateway.send("PUT", "/ImageStore/a/../b", "").await;
    reply.expect_error(400, "E_INVALIDARG");
}

#[tokio::test]
async fn what_is_told_of_the_dns_is_kept() {
    let gateway = Gateway::start().await;
    let service = r#"{"ServiceKind":"Stateless","ServiceName":"fabric:/Shop/Named","ServiceTypeName":"WebType",
        "PartitionDescription":{"PartitionScheme":"Singleton"},"InstanceCount":1,"ServiceDnsName":"named.shop"}"#;
    let path = "/Applications/Shop/$/GetServices/$/Create";
    gateway.post(path, service).await.expect_empty(202);
    let described = gateway.get("/Services/Shop~Named/$/GetDescription").await;
    assert_eq!(described.json["ServiceDnsName"], "named.shop");
}

fn packed() -> ApplicationType {
    let read = ApplicationType::from_package(|file| match file {
        "ApplicationManifest.xml" => Some(APPLICATION.to_owned()),
        "FrontPkg/ServiceManifest.xml" => Some(SERVICE.to_owned()),
        _ => None,
    });
    read.expect("it is right")
}

#[tokio::test]
async fn a_package_is_deployed_from_the_beginning() {
    let gateway = Gateway::of(builder().package(packed())).await;
    let partition = gateway.partition("Packed~Front").await;
    let replicas = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    assert_eq!(replicas.len(), 2);
    let twice = builder().package(packed()).package(packed()).start().await;
    let error = twice.expect_err("it is there already").to_string();
    assert!(error.contains("`PackedType` 3.0"), "{error}");
}

/// Returns the ids of all instances of a cluster on the real clock.
async fn ids() -> Vec<String> {
    let emulator = Emulator::builder(Topology::default())
        .package(packed())
        .listen("127.0.0.1:0")
        .speed(1000.0);
    let gateway = Gateway::of(emulator).await;
    let partition = gateway.partition("Packed~Front").await;
    let replicas = gateway
        .items(&format!("/Partitions/{partition}/$/GetReplicas"))
        .await;
    replicas
        .iter()
        .map(|replica| text(&replica["InstanceId"]))
        .collect()
}

/// The ids of instances change with a restart. Clients that compare ids would otherwise take new instances
/// for old ones.
#[tokio::test]
async fn instances_of_a_cluster_that_is_started_again_have_other_ids() {
    let (first, second) = (ids().await, ids().await);
    assert_eq!(first.len(), 2);
    assert!(
        first.iter().all(|id| !second.contains(id)),
        "{first:?} {second:?}"
    );
    assert!(first.iter().chain(&second).all(|id| id.len() == 18));
}
