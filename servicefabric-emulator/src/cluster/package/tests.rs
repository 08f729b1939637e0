use super::*;
use crate::cluster::{ApplicationCreation, Cluster, PartitionScheme, ServiceKind, ServiceScale};
use crate::topology::Topology;

/// A package in the form of the vendor's templates.
const APPLICATION: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<ApplicationManifest xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns="http://schemas.microsoft.com/2011/01/fabric"
    ApplicationTypeName="ShopType" ApplicationTypeVersion="1.0.0">
  <Parameters>
    <Parameter Name="Web_InstanceCount" DefaultValue="-1" />
    <Parameter Name="Host" DefaultValue="shop.example" />
  </Parameters>
  <ServiceManifestImport>
    <ServiceManifestRef ServiceManifestName="WebPkg" ServiceManifestVersion="1.0.1" />
    <ConfigOverrides />
  </ServiceManifestImport>
  <DefaultServices>
    <Service Name="Web" ServicePackageActivationMode="ExclusiveProcess" ServiceDnsName="web.shop">
      <StatelessService ServiceTypeName="WebType" InstanceCount="[web_instancecount]">
        <SingletonPartition />
        <PlacementConstraints>(NodeType == Node)</PlacementConstraints>
      </StatelessService>
    </Service>
    <Service Name="Cart">
      <StatefulService ServiceTypeName="CartType" TargetReplicaSetSize="3" MinReplicaSetSize="2">
        <UniformInt64Partition PartitionCount="2" LowKey="0" HighKey="9" />
      </StatefulService>
    </Service>
  </DefaultServices>
</ApplicationManifest>"#;

const SERVICE: &str = r#"<ServiceManifest Name="WebPkg" Version="1.0.1" xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <ServiceTypes>
    <StatelessServiceType ServiceTypeName="WebType" UseImplicitHost="true">
      <Extensions>
        <Extension Name="YARP-preview">
          <Labels xmlns="http://schemas.microsoft.com/2015/03/fabact-no-schema">
            <Label Key="YARP.Enable">true</Label>
            <Label Key="YARP.Routes.web.Hosts">[Host]</Label>
          </Labels>
        </Extension>
      </Extensions>
    </StatelessServiceType>
    <StatefulServiceType ServiceTypeName="CartType" HasPersistedState="true" />
  </ServiceTypes>
  <CodePackage Name="Code" Version="1.0.1">
    <EntryPoint><ExeHost><Program>Web.exe</Program></ExeHost></EntryPoint>
  </CodePackage>
  <ConfigPackage Name="Config" Version="1.0.1" />
  <Resources>
    <Endpoints><Endpoint Protocol="http" Name="ServiceEndpoint" Type="Input" Port="8080" PathSuffix="shop" /></Endpoints>
  </Resources>
</ServiceManifest>"#;

fn package(application: &str, service: &str) -> Result<ApplicationType, PackageError> {
    ApplicationType::from_package(|file| match file {
        "ApplicationManifest.xml" => Some(application.to_owned()),
        "WebPkg/ServiceManifest.xml" => Some(service.to_owned()),
        _ => None,
    })
}

fn web(application: &str) -> FabricName {
    FabricName::parse(&format!("{application}/Web")).unwrap()
}

#[test]
fn a_package_is_read_provisioned_and_its_default_services_are_created() {
    let read = package(APPLICATION, SERVICE).unwrap();
    assert_eq!((&*read.name, &*read.version), ("ShopType", "1.0.0"));
    assert_eq!(read.default_parameters["Host"], "shop.example");
    let (manifest, web_type) = read.service_type("WebType").unwrap();
    assert_eq!(web_type.listeners, ["ServiceEndpoint"]);
    assert_eq!(manifest.endpoints[0].path, "/shop");
    assert_eq!(manifest.code_packages[0].program, "Web.exe");
    let labels = &web_type.extensions[0].xml;
    assert!(
        labels.starts_with("<Labels ") && labels.ends_with("</Labels>"),
        "{labels}"
    );

    let mut cluster = Cluster::new(&Topology::default()).unwrap();
    cluster.provision_type(read).unwrap();
    let name = FabricName::parse("fabric:/Shop").unwrap();
    let creation = ApplicationCreation::new(name, "ShopType", "1.0.0");
    cluster.create_application(creation).unwrap();
    let service = cluster.service(&web("fabric:/Shop")).unwrap();
    let ServiceScale::Stateless { instance_count, .. } = service.scale else {
        panic!("it is stateless")
    };
    assert_eq!((instance_count, &*service.dns_name), (-1, "web.shop"));
    assert_eq!(service.placement_constraints, "(NodeType == Node)");
    let cart = FabricName::parse("fabric:/Shop/Cart").unwrap();
    let cart = cluster.service(&cart).unwrap();
    assert_eq!(cart.kind, ServiceKind::Stateful);
    assert_eq!(
        cart.scheme,
        PartitionScheme::Int64Range {
            low: 0,
            high: 9,
            count: 2
        }
    );
    // The manifest is returned as it was written.
    assert_eq!(
        cluster.application_manifest("ShopType", "1.0.0").unwrap(),
        APPLICATION
    );
    assert_eq!(
        cluster
            .service_manifest("ShopType", "1.0.0", "WebPkg")
            .unwrap(),
        SERVICE
    );
}

#[test]
fn an_application_whose_default_services_make_no_sense_is_not_created() {
    let mut cluster = Cluster::new(&Topology::default()).unwrap();
    cluster
        .provision_type(package(APPLICATION, SERVICE).unwrap())
        .unwrap();
    let name = FabricName::parse("fabric:/Shop").unwrap();
    for (count, expected) in [
        ("many", "InstanceCount is `many`"),
        ("-7", "InstanceCount is -1"),
    ] {
        let mut creation = ApplicationCreation::new(name.clone(), "ShopType", "1.0.0");
        creation
            .parameters
            .insert("Web_InstanceCount".to_owned(), count.to_owned());
        let error = cluster.create_application(creation).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
        assert!(cluster.application(&name).is_none());
        assert!(cluster.service(&web("fabric:/Shop")).is_none());
    }
}

#[test]
fn what_is_wrong_with_a_package_is_said_with_its_file() {
    let application = |from: &str, to: &str| package(&APPLICATION.replacen(from, to, 1), SERVICE);
    let service = |from: &str, to: &str| package(APPLICATION, &SERVICE.replacen(from, to, 1));
    let cases = [
        (
            application("<Parameters>", "<Parameters"),
            "ApplicationManifest.xml: this is not XML",
        ),
        (
            application("2011/01/fabric", "other"),
            "the root element is not `ApplicationManifest`",
        ),
        (
            application("ApplicationTypeName=", "Name="),
            "no `ApplicationTypeName`",
        ),
        (
            application("\"WebPkg\"", "\"../Web\""),
            "is not the name of a service manifest",
        ),
        (
            application("\"WebPkg\"", "\"Other\""),
            "Other/ServiceManifest.xml: the package has no such file",
        ),
        (
            application("\"1.0.1\"", "\"2\""),
            "WebPkg/ServiceManifest.xml: this is `WebPkg` in version `1.0.1`",
        ),
        (
            application("Name=\"Host\"", "Name=\"web_InstanceCount\""),
            "is declared twice",
        ),
        (
            application("[web_instancecount]", "[Typo]"),
            "the parameter `Typo` is not declared",
        ),
        (
            application("\"WebType\"", "\"WebTyp\""),
            "which no service manifest declares",
        ),
        (
            application("StatefulService ", "StatelessService "),
            "ApplicationManifest.xml: this is not XML",
        ),
        (
            application("\"CartType\"", "\"WebType\""),
            "its type `WebType` is Stateless",
        ),
        (
            service("StatefulServiceType ", "StatefulServiceGroupType "),
            "not a kind of services",
        ),
        (service("<EntryPoint>", "<Other>"), "this is not XML"),
        (
            service("<Program>Web.exe</Program>", ""),
            "has no `EntryPoint`",
        ),
        (service("\"8080\"", "\"80800\""), "the port `80800`"),
        (service("\"CartType\"", "\"WebType\""), "is declared twice"),
    ];
    for (result, expected) in cases {
        let error = result.expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let long = format!("{APPLICATION}{}", " ".repeat(MAX_MANIFEST));
    let error = package(&long, SERVICE).unwrap_err();
    assert!(error.to_string().contains("more than"), "{error}");
}

#[test]
fn uploads_are_listed_provisioned_and_removed() {
    let mut cluster = Cluster::new(&Topology::default()).unwrap();
    let files: [(&str, &[u8]); 4] = [
        ("Shop/ApplicationManifest.xml", APPLICATION.as_bytes()),
        ("Shop/WebPkg/ServiceManifest.xml", SERVICE.as_bytes()),
        ("Shop/WebPkg/Code/Web.exe", &[0xFF; 10]),
        ("Shop/WebPkg/Code/_.dir", &[]),
    ];
    for (path, content) in files {
        cluster.upload(path, content.len() as u64, content).unwrap();
    }
    let root = cluster.stored("").unwrap();
    assert_eq!(root.folders, [("Shop".to_owned(), 4)]);
    let shop = cluster.stored("Shop").unwrap();
    assert_eq!(shop.folders, [("Shop/WebPkg".to_owned(), 3)]);
    assert_eq!(shop.files[0].0, "Shop/ApplicationManifest.xml");
    assert_eq!(
        cluster.stored("Shop/WebPkg/Code/Web.exe").unwrap().files[0]
            .1
            .size,
        10
    );
    assert_eq!(cluster.stored("Sho"), None);

    cluster.provision("Shop").unwrap();
    assert!(
        cluster
            .provision("Shop")
            .unwrap_err()
            .message
            .contains("is provisioned")
    );
    cluster.delete_upload("Shop").unwrap();
    assert_eq!(cluster.stored("").unwrap(), Default::default());
    assert!(cluster.delete_upload("Shop").is_err());
    // The uploaded files stay, and can be provisioned again.
    cluster.unprovision("ShopType", "1.0.0").unwrap();
    cluster.provision("ShopType/1.0.0").unwrap();

    for path in ["", "/", "a//b", "a/../b", "a/./b", "a\u{7}"] {
        assert!(cluster.upload(path, 0, &[]).is_err(), "{path:?}");
    }
    let error = cluster.upload("X/ApplicationManifest.xml", 3, &[0xFF, 0xFF, 0xFF]);
    assert!(error.unwrap_err().message.contains("UTF-8"));
    let utf16: Vec<u8> = [0xFEFF_u16]
        .into_iter()
        .chain(APPLICATION.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    cluster
        .upload("Wide/ApplicationManifest.xml", utf16.len() as u64, &utf16)
        .unwrap();
    let error = cluster.provision("Wide").unwrap_err();
    assert!(
        error.message.contains("WebPkg/ServiceManifest.xml"),
        "it is read: {error}"
    );
}

#[test]
fn a_full_store_says_so_and_forgets_what_is_removed() {
    let mut cluster = Cluster::new(&Topology::default()).unwrap();
    let manifest = " ".repeat(MAX_MANIFEST);
    let upload = |cluster: &mut Cluster, at: usize| {
        let path = format!("p{at}/ServiceManifest.xml");
        cluster.upload(&path, manifest.len() as u64, manifest.as_bytes())
    };
    for at in 0..64 {
        upload(&mut cluster, at).unwrap();
    }
    upload(&mut cluster, 5).expect("it takes the place of itself");
    assert!(
        upload(&mut cluster, 64)
            .unwrap_err()
            .message
            .contains("full")
    );
    cluster.delete_upload("p0").unwrap();
    upload(&mut cluster, 64).unwrap();
    let error = cluster
        .upload("x/ServiceManifest.xml", 2 << 20, &[])
        .unwrap_err();
    assert!(error.message.contains("more than"), "{error}");
}

proptest::proptest! {
    /// A damaged manifest is rejected, or gives a type that can be provisioned and then used or rejected.
    #[test]
    fn a_manifest_in_pieces_does_no_harm(
        is_service in proptest::bool::ANY, from in 0_usize..2000, len in 0_usize..60, put in "[<>/\"=\\[\\]a-z0-9 -]{0,12}"
    ) {
        let whole = if is_service { SERVICE } else { APPLICATION };
        let place = |at: usize| (0..=at.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at));
        let (from, to) = (place(from).unwrap_or(0), place(from + len).unwrap_or(0));
        let cut = format!("{}{put}{}", &whole[..from.min(to)], &whole[to..]);
        let read = match is_service {
            true => package(APPLICATION, &cut),
            false => package(&cut, SERVICE),
        };
        if let Ok(read) = read {
            let (name, version) = (read.name.clone(), read.version.clone());
            let mut cluster = Cluster::new(&Topology::default()).unwrap();
            if cluster.provision_type(read).is_ok() {
                let application = FabricName::parse("fabric:/Shop").unwrap();
                let creation = ApplicationCreation::new(application.clone(), &name, &version);
                let created = cluster.create_application(creation).is_ok();
                proptest::prop_assert_eq!(cluster.application(&application).is_some(), created);
            }
        }
    }
}
