//! Labels out of XML, parameters and properties. Numbers such as `33` are cases of the table of what is discovered.

use std::sync::Arc;

use proxy_model::Problems;

use super::*;
use crate::calls::CallErrorKind;
use crate::model::{Parameter, Property, PropertyKind, PropertyValue, ServiceTypeDescription};
use crate::testing::{FakeCluster, labels_xml};

const XMLNS: &str = "http://schemas.microsoft.com/2015/03/fabact-no-schema";

fn parameters(own: &[(&str, &str)], defaults: &[(&str, &str)]) -> Parameters {
    let list = |pairs: &[(&str, &str)]| {
        let made = pairs.iter().map(|(key, value)| Parameter {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        });
        made.collect::<Vec<_>>()
    };
    Parameters::new(&list(own), &list(defaults))
}

fn codes(problems: &Problems) -> Vec<String> {
    let told = problems.iter();
    told.map(|p| format!("{} {} {}", p.severity, p.pointer, p.code))
        .collect()
}

fn read(value: &str) -> DeclaredLabels {
    xml::from_values([value].into_iter())
}

fn pairs(labels: &DeclaredLabels) -> Vec<(&str, &str)> {
    let labels = labels.labels.as_ref().expect("readable");
    labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[test]
fn text_is_read_as_dot_net_reads_it() {
    let labels = |inner: &str| format!("<Labels xmlns='{XMLNS}'>{inner}</Labels>");
    let cases = [
        ("<Label Key='a'>x</Label>", vec![("a", "x")]),
        ("<Label Key='a'> x </Label>", vec![("a", " x ")]),
        ("<Label Key='a'>  \n </Label>", vec![("a", "")]),
        ("<Label Key='a'/>", vec![("a", "")]),
        (
            "<Label Key='a'>x<!-- c -->y<?pi z?>z</Label>",
            vec![("a", "xyz")],
        ),
        ("<Label Key='a'><![CDATA[<&>]]></Label>", vec![("a", "<&>")]),
        (
            "<Label Key='a'>&lt;&amp;&#x41;&quot;</Label>",
            vec![("a", "<&A\"")],
        ),
        ("<Label Key='a'>x<b>y</b>z</Label>", vec![("a", "xyz")]),
        ("<Label Key='a &lt; b'>x</Label>", vec![("a < b", "x")]),
        (
            "<!-- c --><?pi?><Other/>text<Label Key='a'>x</Label>",
            vec![("a", "x")],
        ),
        (
            "<Label Key='a'>{**catch-all}</Label>",
            vec![("a", "{**catch-all}")],
        ),
        // The prefix is matched in any case, the rest exactly.
        (
            "<Label Key='yarp.Enable'>x</Label><Label Key='Yarp.enable'>y</Label>",
            vec![("YARP.Enable", "x"), ("YARP.enable", "y")],
        ),
        (
            "<Label Key='yarpx.a'>x</Label><Label Key='ÿarp.a'>y</Label>",
            vec![("yarpx.a", "x"), ("ÿarp.a", "y")],
        ),
    ];
    for (inner, expected) in cases {
        let declared = read(&labels(inner));
        assert_eq!(pairs(&declared), expected, "{inner}");
        assert!(
            declared.problems.is_empty(),
            "{inner}: {}",
            declared.problems
        );
    }
}

#[test]
fn an_extension_may_have_a_declaration_several_elements_and_a_prefix() {
    let one = labels_xml([("a", "1")]);
    for value in [
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n{one}"),
        format!("\u{feff} {one} "),
        format!("<!-- c -->{one}"),
        format!("<f:Labels xmlns:f='{XMLNS}'><f:Label Key='a'>1</f:Label></f:Labels>"),
    ] {
        assert_eq!(pairs(&read(&value)), [("a", "1")], "{value}");
    }
    let two = one + &labels_xml([("b", "2")]);
    assert_eq!(pairs(&read(&two)), [("a", "1"), ("b", "2")]);
}

#[test]
fn what_is_wrong_is_said_and_the_rest_is_read() {
    let labels = |inner: &str| format!("<Labels xmlns='{XMLNS}'>{inner}</Labels>");
    let long = "k".repeat(2000);
    let huge = "v".repeat(70_000);
    let cases = [
        // 44
        (
            labels("<Label Key='a'>1</Label><Label Key='b'>2</Label><Label Key='a'>1</Label>"),
            "error /a duplicate_label",
        ),
        (
            labels("<Label Key='YARP.a'>1</Label><Label Key='Yarp.a'>1</Label>"),
            "error /YARP.a duplicate_label",
        ),
        (labels("<Label>1</Label>"), "error  missing_label_key"),
        (
            labels("<Label Key=''>1</Label>"),
            "error  missing_label_key",
        ),
        (
            labels(&format!("<Label Key='{long}'>1</Label>")),
            "error  label_too_long",
        ),
        (
            labels(&format!("<Label Key='a'>{huge}</Label>")),
            "error /a label_too_long",
        ),
        (
            labels(&"<Label Key='~/x'/>".repeat(2)),
            "error /~0~1x duplicate_label",
        ),
        (
            "<Labels><Label Key='a'>1</Label></Labels>".to_owned(),
            "warning  labels_namespace",
        ),
        (
            labels("<Label xmlns='other' Key='a'>1</Label>"),
            "warning  labels_namespace",
        ),
        (String::new(), "warning  no_labels"),
        ("YARP.Enable=true".to_owned(), "warning  no_labels"),
        ("<Settings/>".to_owned(), "warning  no_labels"),
        (labels(""), "warning  no_labels"),
        (
            labels("<Label key='YARP.Enable'>true</Label>"),
            "error  missing_label_key",
        ),
    ];
    for (value, expected) in cases {
        let declared = read(&value);
        assert_eq!(codes(&declared.problems), [expected], "{value:.100}");
        assert!(declared.labels.is_some());
    }
    let many: String = (0..6000).map(|i| format!("<Label Key='{i}'/>")).collect();
    let declared = read(&labels(&many));
    assert_eq!(codes(&declared.problems), ["error  too_many_labels"]);
    assert_eq!(pairs(&declared).len(), 5000);
}

#[test]
fn xml_that_cannot_be_read_says_so_and_means_nothing() {
    let deep = "<a>".repeat(100) + &"</a>".repeat(100);
    let cases = [
        ("<Labels", "XML"),
        ("</Extension><Extension>", "XML"),
        ("<a></b>", "XML"),
        ("&unknown;", "XML"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><a/>", "document type"),
        (&*deep, "nested"),
        (&"x".repeat(1 << 20), "bytes"),
    ];
    for (value, expected) in cases {
        let declared = read(value);
        assert_eq!(declared.labels, None, "{value:.60}");
        assert_eq!(codes(&declared.problems), ["error  invalid_labels_xml"]);
        let message = &declared.problems.iter().next().unwrap().message;
        assert!(message.contains(expected), "{message}");
    }
}

fn types(extensions: Option<&[(&str, String)]>) -> Vec<ServiceType> {
    let extensions = extensions.map(|extensions| {
        let made = extensions.iter().map(|(key, value)| Extension {
            key: (*key).to_owned(),
            value: value.clone(),
        });
        made.collect()
    });
    let description = ServiceTypeDescription {
        service_type_name: "WebType".to_owned(),
        extensions,
        ..ServiceTypeDescription::default()
    };
    let service_type = ServiceType {
        service_type_description: description,
        service_manifest_name: "Pkg".to_owned(),
        ..ServiceType::default()
    };
    vec![service_type]
}

async fn declared(cluster: &FakeCluster, types: &[ServiceType]) -> DeclaredTypes {
    let labels = ExtensionLabels::new();
    labels.declared(cluster, "T", "1", types).await.unwrap()
}

#[tokio::test]
async fn the_extension_that_counts_most_is_read_and_the_others_are_warned_of() {
    let value = |name: &str| labels_xml([("name", name)]);
    let cases: [(&[&str], Option<&str>, &[&str]); 6] = [
        (&["YARP-preview"], Some("YARP-preview"), &[]),
        (&["Other", "Yarp"], Some("Yarp"), &[]),
        (
            &["Yarp", "YARP"],
            Some("YARP"),
            &["warning  several_extensions"],
        ),
        (
            &["YARP", "Yarp", "YARP-preview"],
            Some("YARP-preview"),
            &["warning  several_extensions"],
        ),
        (&["yarp", "YARP-Preview"], None, &[]),
        (&[], None, &[]),
    ];
    for (names, expected, problems) in cases {
        let extensions: Vec<_> = names.iter().map(|name| (*name, value(name))).collect();
        let declared = declared(&FakeCluster::new(), &types(Some(&extensions))).await;
        let labels = declared.get("WebType");
        let read = labels.map(|labels| pairs(labels)[0].1);
        assert_eq!(read, expected, "{names:?}");
        if let Some(labels) = labels {
            assert_eq!(codes(&labels.problems), problems, "{names:?}");
        }
    }
}

#[tokio::test]
async fn two_extensions_of_one_name_are_one() {
    let extensions = [
        ("YARP", labels_xml([("a", "1"), ("b", "2")])),
        ("YARP", labels_xml([("b", "3"), ("c", "4")])),
    ];
    let declared = declared(&FakeCluster::new(), &types(Some(&extensions))).await;
    assert_eq!(
        pairs(&declared["WebType"]),
        [("a", "1"), ("b", "2"), ("c", "4")]
    );
    assert_eq!(
        codes(&declared["WebType"].problems),
        ["error /b duplicate_label"]
    );
}

#[tokio::test]
async fn a_gateway_that_sends_no_extensions_is_asked_for_the_manifest_once() {
    let cluster = FakeCluster::new();
    let manifest = |inner: &str| {
        format!(
            "\u{feff}<?xml version='1.0'?><ServiceManifest xmlns='http://schemas.microsoft.com/2011/01/fabric'>\
             <ServiceTypes>{inner}</ServiceTypes></ServiceManifest>"
        )
    };
    let extension = |name: &str, value: &str| {
        format!(
            "<Extensions><Extension Name='{name}'>{}</Extension></Extensions>",
            labels_xml([("a", value)])
        )
    };
    let inner = format!(
        "<StatelessServiceType ServiceTypeName='WebType'>{}{}</StatelessServiceType>\
         <AnyElement ServiceTypeName='Other'>{}</AnyElement>\
         <StatefulServiceType ServiceTypeName='Plain'/>",
        extension("Yarp", "less"),
        extension("YARP-preview", "more"),
        extension("YARP", "other"),
    );
    cluster.edit(|contents| {
        contents
            .manifests
            .insert("Pkg".to_owned(), manifest(&inner));
    });
    let mut all = types(None);
    for name in ["Other", "Plain", "Unlisted"] {
        let mut more = types(None).remove(0);
        more.service_type_description.service_type_name = name.to_owned();
        all.push(more);
    }
    let declared = declared(&cluster, &all).await;
    assert_eq!(declared.len(), 2);
    assert_eq!(pairs(&declared["WebType"]), [("a", "more")]);
    assert_eq!(
        codes(&declared["WebType"].problems),
        ["warning  several_extensions"]
    );
    assert_eq!(pairs(&declared["Other"]), [("a", "other")]);
    assert_eq!(cluster.calls("service_manifest"), 1);

    cluster.fail("service_manifest", CallErrorKind::Busy);
    let labels = ExtensionLabels::new();
    let failed = labels.declared(&cluster, "T", "1", &all).await;
    assert_eq!(failed.unwrap_err().kind(), CallErrorKind::Busy);
}

#[test]
fn parameters_replace_whole_values_only() {
    let parameters = parameters(
        &[("Host", "a.example"), ("HOST", "late"), ("Empty", "")],
        &[("Host", "z"), ("Lb", "RoundRobin"), ("Nested", "[Host]")],
    );
    let cases = [
        // 33, 34
        ("[Host]", "a.example", None),
        ("[hOST]", "a.example", None),
        ("[Lb]", "RoundRobin", None),
        ("[Empty]", "", None),
        // One step only.
        ("[Nested]", "[Host]", None),
        ("x[Host]", "x[Host]", None),
        ("[Host] ", "[Host] ", None),
        ("[]", "[]", None),
        ("[", "[", None),
        ("]", "]", None),
        ("", "", None),
        ("[No]", "", Some(None)),
        ("[Hosst]", "", Some(Some("did you mean `[Host]`?"))),
        ("[[Host]]", "", Some(Some("did you mean `[Host]`?"))),
    ];
    for (value, expected, problem) in cases {
        let labels: Labels = [("k".to_owned(), value.to_owned())].into();
        let mut problems = Problems::new();
        let replaced = parameters.replaced(&Arc::new(labels), &mut problems);
        assert_eq!(replaced["k"], expected, "{value}");
        let told = problems.iter().next();
        assert_eq!(
            told.map(|problem| problem.suggestion.as_deref()),
            problem,
            "{value}"
        );
        if told.is_some() {
            assert_eq!(codes(&problems), ["warning /k unknown_parameter"]);
        }
    }
}

async fn labels_of(
    cluster: &FakeCluster,
    labels: &[(&str, &str)],
    own: &[(&str, &str)],
) -> ServiceLabels {
    let made = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let declared = DeclaredLabels::new(made.collect());
    let parameters = parameters(own, &[]);
    let by = LabelledBy::new("fabric:/App/Web", "App~Web", &declared, &parameters);
    ExtensionLabels::new().labels(cluster, by).await.unwrap()
}

#[tokio::test]
async fn a_service_asks_to_be_served_with_a_label() {
    for (labels, own, expected) in [
        // 2
        (&[("a", "b")][..], &[][..], OptIn::No),
        (&[("YARP.Enable", "true")], &[], OptIn::Yes),
        // 3: in this crate any case will do.
        (&[("YARP.Enable", "True")], &[], OptIn::Yes),
        (&[("YARP.Enable", " true\n")], &[], OptIn::Yes),
        (&[("YARP.Enable", "false")], &[], OptIn::No),
        (&[("YARP.Enable", "1")], &[], OptIn::No),
        (&[("YARP.enable", "true")], &[], OptIn::No),
        // 4
        (&[("YARP.Enable", "[On]")], &[("On", "true")], OptIn::Yes),
        (&[("YARP.Enable", "[On]")], &[], OptIn::No),
    ] {
        let cluster = FakeCluster::new();
        let found = labels_of(&cluster, labels, own).await;
        assert_eq!(found.enabled, expected, "{labels:?}");
        assert!(!found.dynamic);
        assert_eq!(
            cluster.all_calls().len(),
            0,
            "properties are asked for on request only"
        );
    }
}

#[tokio::test]
async fn properties_override_labels_on_request() {
    let base = [
        ("YARP.Enable", "true"),
        ("YARP.EnableDynamicOverrides", "[Dynamic]"),
        ("YARP.Routes.r1.Path", "/old"),
    ];
    let own = [("Dynamic", "TRUE")];

    // 48: a name that the naming service does not know.
    let cluster = FakeCluster::new();
    let found = labels_of(&cluster, &base, &own).await;
    assert_eq!(found.labels["YARP.Routes.r1.Path"], "/old");
    assert!(found.dynamic && found.problems.is_empty());
    assert_eq!(cluster.all_calls(), ["properties App~Web"]);

    // 46, 47
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .property("fabric:/App/Web", "yarp.Routes.r1.Path", "/n")
            .property("fabric:/App/Web", "YARP.Routes.r2.Path", "[Dynamic]")
            .property("fabric:/App/Web", "Foo", "1");
        let number = PropertyValue {
            kind: PropertyKind::Int64,
            data: "7".into(),
        };
        let all = contents.properties.get_mut("App~Web").unwrap();
        for (name, value) in [
            ("YARP.Routes.r1.Order", Some(number.clone())),
            ("YARP.Routes.r3.Path", None),
            ("Bar", Some(number)),
        ] {
            all.push(Property {
                name: name.to_owned(),
                value,
            });
        }
        all.reverse();
    });
    let found = labels_of(&cluster, &base, &own).await;
    let expected = [
        ("YARP.Enable", "true"),
        ("YARP.EnableDynamicOverrides", "TRUE"),
        ("YARP.Routes.r1.Path", "/n"),
        ("YARP.Routes.r2.Path", "[Dynamic]"),
    ];
    let labels = found.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    assert_eq!(labels.collect::<Vec<_>>(), expected);
    assert_eq!(
        codes(&found.problems),
        [
            "warning /YARP.Routes.r1.Order unusable_override",
            "warning /YARP.Routes.r3.Path unusable_override"
        ]
    );
    assert_eq!(found.enabled, OptIn::Yes);

    // 49
    cluster.edit(|contents| {
        contents.property("fabric:/App/Web", "YARP.Enable", "false");
    });
    let found = labels_of(&cluster, &base, &own).await;
    assert_eq!(found.enabled, OptIn::No);

    // The other way cycle, too.
    cluster.edit(|contents| {
        contents.property("fabric:/App/Web", "YARP.Enable", "true");
    });
    let found = labels_of(&cluster, &base[1..], &own).await;
    assert_eq!(found.enabled, OptIn::Yes);
}

#[tokio::test]
async fn two_properties_that_are_one_label_are_an_error() {
    let base = [
        ("YARP.Enable", "true"),
        ("YARP.EnableDynamicOverrides", "true"),
    ];
    let cluster = FakeCluster::new();
    cluster.edit(|contents| {
        contents
            .property("fabric:/App/Web", "yarp.Routes.r1.Path", "/b")
            .property("fabric:/App/Web", "YARP.Routes.r1.Path", "/a")
            .property("fabric:/App/Web", "YARP.Routes.R1.Path", "/c");
    });
    let found = labels_of(&cluster, &base, &[]).await;
    assert_eq!(
        codes(&found.problems),
        ["error /YARP.Routes.r1.Path duplicate_label"]
    );
}

#[tokio::test]
async fn properties_that_cannot_be_read_are_an_error_and_not_none() {
    let cluster = FakeCluster::new();
    cluster.fail("properties", CallErrorKind::Busy);
    let labels: Labels = [("YARP.EnableDynamicOverrides".to_owned(), "true".to_owned())].into();
    let declared = DeclaredLabels::new(labels);
    let parameters = Parameters::default();
    let by = LabelledBy::new("fabric:/App/Web", "App~Web", &declared, &parameters);
    let failed = ExtensionLabels::new().labels(&cluster, by).await;
    assert_eq!(failed.unwrap_err().kind(), CallErrorKind::Busy);
}

#[tokio::test]
async fn labels_that_cannot_be_read_leave_it_open_whether_the_service_asks() {
    let declared = read("<Labels");
    let parameters = Parameters::default();
    let by = LabelledBy::new("fabric:/App/Web", "App~Web", &declared, &parameters);
    let found = ExtensionLabels::new()
        .labels(&FakeCluster::new(), by)
        .await
        .unwrap();
    assert_eq!(found.enabled, OptIn::Unknown);
    assert!(found.problems.has_errors());
}

proptest::proptest! {
    /// Arbitrary XML is read or rejected.
    #[test]
    fn any_text_is_read_or_rejected(value in "[<>/!\\[\\]CDATLabelsKey='\"&;x \\-?=:]{0,200}") {
        let declared = read(&value);
        proptest::prop_assert!(declared.labels.is_some() || declared.problems.has_errors());
    }

    /// Labels survive writing and reading.
    #[test]
    fn labels_come_back(labels in proptest::collection::btree_map("[a-zA-Z.]{1,10}", "[ -~]{0,20}", 0..10)) {
        let written = labels_xml(labels.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let declared = read(&written);
        let mut expected = BTreeMap::new();
        for (key, value) in &labels {
            let value = if value.trim().is_empty() { "" } else { value };
            expected.entry(canonical(key).into_owned()).or_insert_with(|| value.to_owned());
        }
        let read: BTreeMap<_, _> = declared.labels.iter().flat_map(|labels| labels.iter())
            .map(|(k, v)| (k.clone(), v.clone())).collect();
        proptest::prop_assert_eq!(read, expected);
    }
}
