//! Extensions of service manifests: from XML to the labels of a service.

use discovery_core::Labels;
use discovery_servicefabric::ClusterCalls;
use discovery_servicefabric::extension::{
    DeclaredLabels, DeclaredTypes, Enlisted, ExtensionLabels, LabelledBy, LabelsProvider,
    Parameters, ServiceLabels,
};
use discovery_servicefabric::model::{
    Parameter, Property, PropertyKind, PropertyValue, ServiceType,
};
use discovery_servicefabric::testing::FakeCluster;

use crate::input::{check_wording, paused, text};

/// The most labels of a type, and the most that properties of a name may add.
const MAX_LABELS: usize = 5_000;
/// The longest key of a label that is declared.
const MAX_KEY: usize = 1_024;
/// The longest value.
const MAX_VALUE: usize = 64 << 10;

/// What everything is called here.
const TYPE: &str = "WebType";
const APPLICATION_TYPE: (&str, &str) = ("ShopType", "1.0");
const SERVICE: (&str, &str) = ("fabric:/Shop/Web", "Shop~Web");

/// A document type definition. None is allowed.
const DEFINITION: &str = "<!DOCTYPE Labels [<!ENTITY e \"x\">]>";

/// Lines that say what is around the XML, an empty line, and the XML:
///
/// ```text
/// manifest                  (the XML is a service manifest; else it is the content of an extension)
/// extension YARP            (the name of the extension; default YARP-preview)
/// parameter Host=a.example  (of the application)
/// property YARP.Enable=true (of the service's name)
///
/// <Labels …
/// ```
///
/// * Labels are not many, have keys and values of bounded length, and no key twice, in whatever case its prefix is.
/// * A definition of entities is refused wherever the XML is right without it.
/// * What the gateway sends as the content of an extension means what it means in the manifest.
/// * A service is enlisted exactly if its labels say so; parameters and properties are what the rules make of them.
pub fn servicefabric_extension(data: &[u8]) {
    let text = text(data);
    let case = Case::read(&text);
    paused().block_on(check(&case));
}

#[derive(Default)]
struct Case<'a> {
    is_manifest: bool,
    extension: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    properties: Vec<(&'a str, &'a str)>,
    xml: &'a str,
}

impl<'a> Case<'a> {
    fn read(text: &'a str) -> Self {
        let (head, xml) = text.split_once("\n\n").unwrap_or(("", text));
        let mut case = Self {
            extension: "YARP-preview",
            xml,
            ..Self::default()
        };
        for line in head.lines() {
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let pair = rest.split_once('=').unwrap_or((rest, ""));
            match what {
                "manifest" => case.is_manifest = true,
                "extension" => case.extension = rest,
                "parameter" => case.parameters.push(pair),
                "property" => case.properties.push(pair),
                _ => {}
            }
        }
        case
    }
}

async fn check(case: &Case<'_>) {
    let declared = if case.is_manifest {
        from_manifest(case.xml).await
    } else {
        from_value(case.extension, case.xml).await
    };
    let declared = declared.get(TYPE);
    if let Some(declared) = declared {
        check_declared(declared);
    }
    let defined = format!("{DEFINITION}{}", case.xml);
    let defined = if case.is_manifest {
        from_manifest(&defined).await
    } else {
        from_value("YARP", &defined).await
    };
    let defined = defined.get(TYPE).expect("what cannot be read is said");
    assert_eq!(defined.labels, None);
    assert!(defined.problems.has_errors());
    let Some(declared) = declared else { return };
    if !case.is_manifest && declared.labels.is_some() {
        check_in_manifest(case, declared).await;
    }
    let first = labels_of(case, declared).await;
    assert_eq!(labels_of(case, declared).await, first);
    check_service(case, declared, &first);
}

/// What is declared keeps to its bounds.
fn check_declared(declared: &DeclaredLabels) {
    assert!(declared.labels.is_some() || declared.problems.has_errors());
    declared.problems.iter().for_each(check_wording);
    let Some(labels) = &declared.labels else {
        return;
    };
    assert!(labels.len() <= MAX_LABELS);
    for (key, value) in labels.iter() {
        assert!(!key.is_empty() && key.len() <= MAX_KEY, "{key}");
        assert!(value.len() <= MAX_VALUE);
    }
    check_prefixes(labels);
}

/// Two keys that differ only in the case of the prefix would be one label twice.
fn check_prefixes(labels: &Labels) {
    for key in labels.keys() {
        let prefix = key.get(..5).unwrap_or_default();
        let as_written = prefix == "YARP." || !prefix.eq_ignore_ascii_case("YARP.");
        assert!(as_written, "{key}");
    }
}

/// The same extension in a manifest.
async fn check_in_manifest(case: &Case<'_>, declared: &DeclaredLabels) {
    // A declaration and a mark are only ever at the beginning of a document.
    if case.xml.contains("<?xml") || case.xml.contains('\u{feff}') {
        return;
    }
    let manifest = format!(
        "<ServiceManifest xmlns=\"http://schemas.microsoft.com/2011/01/fabric\"><ServiceTypes>\
         <StatelessServiceType ServiceTypeName=\"{TYPE}\"><Extensions><Extension Name=\"{}\">{}</Extension>\
         </Extensions></StatelessServiceType></ServiceTypes></ServiceManifest>",
        case.extension, case.xml,
    );
    let found = from_manifest(&manifest).await;
    let found = found.get(TYPE).expect("the extension is there");
    let too_deep = |text: String| text.contains("nested");
    if found
        .problems
        .errors()
        .any(|problem| too_deep(problem.to_string()))
    {
        return;
    }
    assert_eq!(**found, *declared);
}

/// What became of parameters and properties.
fn check_service(case: &Case<'_>, declared: &DeclaredLabels, found: &ServiceLabels) {
    found.problems.iter().for_each(check_wording);
    let Some(before) = &declared.labels else {
        assert_eq!(found.enlisted, Enlisted::Unknown);
        return;
    };
    let is_true = |key: &str| {
        let value = found.labels.get(key);
        value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    };
    let enlisted = if is_true("YARP.Enable") {
        Enlisted::Yes
    } else {
        Enlisted::No
    };
    assert_eq!(found.enlisted, enlisted);
    check_prefixes(&found.labels);
    assert!(found.labels.len() <= before.len() + case.properties.len());
    for key in before.keys() {
        assert!(found.labels.contains_key(key), "{key} is lost");
    }
    if !found.dynamic {
        assert_eq!(found.labels.len(), before.len());
        return;
    }
    for (name, value) in &case.properties {
        let others = case
            .properties
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        if name.starts_with("YARP.") && others.count() == 1 {
            assert_eq!(found.labels.get(*name).map(String::as_str), Some(*value));
        }
    }
}

async fn from_value(extension: &str, value: &str) -> DeclaredTypes {
    let cluster = FakeCluster::new();
    let extensions = vec![(extension, value.to_owned())];
    declared(&cluster, Some(extensions)).await
}

async fn from_manifest(manifest: &str) -> DeclaredTypes {
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .manifests
            .insert("Pkg".to_owned(), manifest.to_owned());
    });
    declared(&cluster, None).await
}

/// What the type declares when the gateway sends these extensions, or none at all.
async fn declared(cluster: &FakeCluster, sent: Option<Vec<(&str, String)>>) -> DeclaredTypes {
    let (name, version) = APPLICATION_TYPE;
    cluster.edit(|contents| {
        contents.service_type_with(name, version, TYPE, sent);
    });
    let types: Vec<ServiceType> = cluster
        .service_types(name, version)
        .await
        .expect("the cluster does not fail");
    ExtensionLabels::new()
        .declared(cluster, name, version, &types)
        .await
        .expect("the cluster does not fail")
}

async fn labels_of(case: &Case<'_>, declared: &DeclaredLabels) -> ServiceLabels {
    let (service, service_id) = SERVICE;
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        let properties = case.properties.iter().map(|(name, value)| {
            let mut text = PropertyValue::default();
            text.kind = PropertyKind::String;
            text.data = (*value).into();
            let mut property = Property::default();
            (*name).clone_into(&mut property.name);
            property.value = Some(text);
            property
        });
        contents
            .properties
            .insert(service_id.to_owned(), properties.collect());
    });
    let own: Vec<Parameter> = case
        .parameters
        .iter()
        .map(|(key, value)| {
            let mut parameter = Parameter::default();
            (*key).clone_into(&mut parameter.key);
            (*value).clone_into(&mut parameter.value);
            parameter
        })
        .collect();
    let parameters = Parameters::new(&own, &[]);
    let labelled = LabelledBy::new(service, service_id, declared, &parameters);
    ExtensionLabels::new()
        .labels(&cluster, labelled)
        .await
        .expect("the cluster does not fail")
}
