//! Extensions of service manifests: from XML to the labels of a service.

use discovery_core::Labels;
use discovery_servicefabric::ClusterCalls;
use discovery_servicefabric::extension::{
    DeclaredLabels, DeclaredTypes, ExtensionLabels, LabelledBy, LabelsProvider, OptIn, Parameters,
    ServiceLabels,
};
use discovery_servicefabric::model::{
    Parameter, Property, PropertyKind, PropertyValue, ServiceType,
};
use discovery_servicefabric::testing::FakeCluster;

use crate::input::{check_wording, paused, text};

/// Maximum number of labels of a type, and of labels added by properties of a name.
const MAX_LABELS: usize = 5_000;
/// Maximum length of the key of a declared label.
const MAX_KEY: usize = 1_024;
/// Maximum length of a value.
const MAX_VALUE: usize = 64 << 10;

/// Names in the tested cluster.
const TYPE: &str = "WebType";
const APPLICATION_TYPE: (&str, &str) = ("ShopType", "1.0");
const SERVICE: (&str, &str) = ("fabric:/Shop/Web", "Shop~Web");

/// A document type definition. It is never allowed.
const DEFINITION: &str = "<!DOCTYPE Labels [<!ENTITY e \"x\">]>";

/// Fuzzes an extension: lines with the context of the XML, an empty line, and the XML.
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
/// * The number of labels and the lengths of keys and values are bounded. No key occurs twice, even
///   with another case of its prefix.
/// * A definition of entities is rejected, even if the XML is valid without it.
/// * The content of an extension has the same meaning from the gateway as in the manifest.
/// * A service is enabled exactly if its labels say so. Parameters and properties follow their
///   rules.
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

/// Asserts the limits of declared labels.
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

/// Asserts that no two keys differ only in the case of the prefix: they would be one label twice.
fn check_prefixes(labels: &Labels) {
    for key in labels.keys() {
        let prefix = key.get(..5).unwrap_or_default();
        let as_written = prefix == "YARP." || !prefix.eq_ignore_ascii_case("YARP.");
        assert!(as_written, "{key}");
    }
}

/// Asserts the same result for the extension inside a manifest.
async fn check_in_manifest(case: &Case<'_>, declared: &DeclaredLabels) {
    // An XML declaration and a byte order mark are valid only at the beginning of a document.
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

/// Asserts the effect of parameters and properties.
fn check_service(case: &Case<'_>, declared: &DeclaredLabels, found: &ServiceLabels) {
    found.problems.iter().for_each(check_wording);
    let Some(before) = &declared.labels else {
        assert_eq!(found.enabled, OptIn::Unknown);
        return;
    };
    let is_true = |key: &str| {
        let value = found.labels.get(key);
        value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    };
    let enabled = if is_true("YARP.Enable") {
        OptIn::Yes
    } else {
        OptIn::No
    };
    assert_eq!(found.enabled, enabled);
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

/// Returns the declarations of the type when the gateway sends these extensions, or none.
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
