//! Tests of topologies.

use super::*;
use crate::cluster::Cluster;

const MINIMAL: &str = r#"
    [[application_types]]
    name = "T"
    service_types.WebType = { labels = { YARP.Enable = true, "YARP.Routes.r.Path" = "/", "YARP.Order" = 3 } }
    [applications.Shop]
    type = "T"
    services.Web = { type = "WebType" }
"#;

#[test]
fn labels_become_the_extension_and_tables_are_joined() {
    let cluster = Cluster::new(&Topology::from_toml(MINIMAL).unwrap()).unwrap();
    let types = cluster.service_types("T", "1.0.0").unwrap();
    let (manifest, web) = types[0];
    assert_eq!(
        (manifest.name.as_str(), manifest.version.as_str()),
        ("WebPkg", "1.0.0")
    );
    let extension = &web.extensions[0];
    assert_eq!(extension.name, "YARP-preview");
    for label in [
        "<Label Key=\"YARP.Enable\">true</Label>",
        "<Label Key=\"YARP.Routes.r.Path\">/</Label>",
        "<Label Key=\"YARP.Order\">3</Label>",
    ] {
        assert!(extension.xml.contains(label), "{}", extension.xml);
    }
    let manifest = cluster.service_manifest("T", "1.0.0", "WebPkg").unwrap();
    assert!(manifest.contains("xmlns=\"http://schemas.microsoft.com/2011/01/fabric\""));
    assert!(manifest.contains("<StatelessServiceType ServiceTypeName=\"WebType\">"));
    assert!(
        manifest.contains("<Extension Name=\"YARP-preview\">"),
        "{manifest}"
    );
    let manifest = cluster.application_manifest("T", "1.0.0").unwrap();
    assert!(
        manifest.contains("ServiceManifestName=\"WebPkg\""),
        "{manifest}"
    );
    assert!(cluster.cluster_manifest().contains("NodeName=\"_Node_4\""));
}

#[test]
fn json_says_the_same() {
    let from_toml = Topology::from_toml(MINIMAL).unwrap();
    let text = serde_json::to_string(&from_toml).unwrap();
    let from_json = Topology::from_json(&text).unwrap();
    assert_eq!(from_json, from_toml);
    let cluster = Cluster::new(&from_json).unwrap();
    assert_eq!(
        cluster.service_types("T", "1.0.0").unwrap()[0].1.name,
        "WebType"
    );
}

#[test]
fn a_key_that_is_unknown_is_told_with_its_line() {
    let error = Topology::from_toml("[cluster]\nname = \"x\"\nnoodles = 5\n").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("line 3") && text.contains("noodles") && text.contains("nodes"),
        "{text}"
    );
    let error = Topology::from_json("{\"clustre\": {}}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 1") && error.contains("clustre"),
        "{error}"
    );
}

/// Invalid topologies: the text, the place of the error, and a part of its message.
const BAD: &[(&str, &str, &str)] = &[
    ("cluster.nodes = 0", "cluster.nodes", "1 to 1000"),
    (
        "cluster.nodes = 4000000000",
        "cluster.nodes",
        "not 4000000000",
    ),
    (
        "cluster.start = \"yesterday\"",
        "cluster.start",
        "2026-01-01T00:00:00Z",
    ),
    ("cluster.ports = [9, 3]", "cluster.ports", "not a range"),
    (
        "cluster.nodes = [{ name = \"a\" }, { name = \"a\" }]",
        "cluster.nodes[1].name",
        "node 0",
    ),
    (
        "hosting.ActivationTimeoutt = 1",
        "hosting",
        "did you mean `ActivationTimeout`",
    ),
    ("hosting.ActivationTimeout = \"soon\"", "hosting", "soon"),
    (
        "application_types = [{ name = \"\" }]",
        "application_types[0].name",
        "cannot be",
    ),
    (
        "application_types = [{ name = \"T\" }, { name = \"T\" }]",
        "application_types[1].version",
        "before",
    ),
    (
        "application_types = [{ name = \"T\", based_on = \"0.9\" }]",
        "application_types[0].based_on",
        "0.9",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { persisted = true } }]",
        "application_types[0].service_types.W.persisted",
        "no state",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { labels.Hosts = [\"a\"] } }]",
        "application_types[0].service_types.W.labels.Hosts",
        "one text",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { placement_constraints = \"(\" } }]",
        "application_types[0].service_types.W.placement_constraints",
        "parentheses",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { endpoints.http = { path = \"x\" } } }]",
        "application_types[0].service_types.W.endpoints.http.path",
        "begin it with /",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = {}, manifests.WPkg.code_packages.C = {} }]",
        "application_types[0].manifests.WPkg.code_packages",
        "hosted by 0",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { endpoints = { a = { port = 80 }, b = { port = 80 } } } }]",
        "application_types[0].service_types.W.endpoints.b.port",
        "listener `a`",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { endpoints.a = { port = 0 } } }]",
        "application_types[0].service_types.W.endpoints.a.port",
        "leave it out",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { endpoints.a = { protocol = \"htps\" } } }]",
        "application_types[0].service_types.W.endpoints.a.protocol",
        "did you mean `https`?",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W = { endpoints.a = { protocol = \"gopher\" } } }]",
        "application_types[0].service_types.W.endpoints.a.protocol",
        "there are: http, https, tcp, udp",
    ),
    (
        "application_types = [{ name = \"T\", parameters = { Host = 1, host = 2 } }]",
        "application_types[0].parameters.host",
        "`Host` is the same",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W.extensions.Raw = \"<bad\" }]",
        "application_types[0].service_types.W.extensions.Raw",
        "well-formed",
    ),
    (
        "application_types = [{ name = \"T\", service_types.W.extensions.Raw = \"</Extension><Extension>\" }]",
        "application_types[0].service_types.W.extensions.Raw",
        "well-formed",
    ),
    (
        "applications.A = { type = \"T\" }",
        "applications.A.type",
        "there is none",
    ),
];

/// The same for deployed applications, with a type to deploy.
const BAD_DEPLOYMENTS: &[(&str, &str, &str)] = &[
    (
        "applications.A = { type = \"t\" }",
        "applications.A.type",
        "did you mean `T`?",
    ),
    (
        "applications.A = { type = \"T\", version = \"3\" }",
        "applications.A.version",
        "1.0.0",
    ),
    (
        "applications.A = { type = \"T\", version = \"2.0.0\" }",
        "applications.A.version",
        "not provisioned",
    ),
    (
        "applications.A = { type = \"T\", parameters.hosts = 1 }",
        "applications.A.parameters.hosts",
        "did you mean `Host`?",
    ),
    (
        "applications.A = { type = \"T\", count = 2 }",
        "applications.A.count",
        "`A{n}`",
    ),
    (
        "applications.\"a//b\" = { type = \"T\" }",
        "applications.a//b",
        "empty part",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"Webtype\" } }",
        "applications.A.services.S.type",
        "did you mean `WebType`?",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"WebType\", replicas = 1 } }",
        "applications.A.services.S.replicas",
        "write `instances`",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"DbType\", instances = 1 } }",
        "applications.A.services.S.instances",
        "write `replicas`",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"WebType\", instances = -2 } }",
        "applications.A.services.S.instances",
        "-1 for one on every node",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"DbType\", replicas = 1, min_replicas = 2 } }",
        "applications.A.services.S.replicas",
        "min_replicas <= replicas",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"WebType\", partitions = { names = [] } } }",
        "applications.A.services.S.partitions",
        "1 to 10000",
    ),
    (
        "applications.A = { type = \"T\", services.S = { type = \"WebType\", placement_constraints = \"x\" } }",
        "applications.A.services.S.placement_constraints",
        "comparison",
    ),
    (
        "applications.\"A{n}\" = { type = \"T\", count = 1000, services.\"S{n}\" = { type = \"WebType\", count = 1000 } }",
        "applications",
        "lower a `count`",
    ),
    (
        "applications.A = { type = \"T\", services.\"S{n}\" = { type = \"WebType\", count = 20001, instances = -1 } }",
        "applications",
        "100005 replicas",
    ),
    (
        "applications.\"A{n}\" = { type = \"T\", count = 2 }\napplications.A1 = { type = \"T\" }",
        "applications.A{n}",
        "`fabric:/A1` is the name of applications.A1 too",
    ),
    (
        "applications.A = { type = \"T\", services.\"S{n}\" = { type = \"WebType\", count = 2 }, services.S2 = { type = \"WebType\" } }",
        "applications.A.services.S{n}",
        "applications.A.services.S2",
    ),
    (
        "behaviours = [{ manifest = \"WebPk\" }]",
        "behaviours[0].manifest",
        "did you mean `WebPkg`?",
    ),
    (
        "behaviours = [{ manifest = \"WebPkg\", node = \"_Node_9\" }]",
        "behaviours[0].node",
        "did you mean `_Node_",
    ),
    (
        "behaviours = [{ manifest = \"WebPkg\", application = \"X\" }]",
        "behaviours[0].application",
        "there is none",
    ),
    (
        "behaviours = [{ manifest = \"WebPkg\", code_package = \"Cod\" }]",
        "behaviours[0].code_package",
        "did you mean `Code`?",
    ),
    (
        "behaviours = [{ manifest = \"WebPkg\", lives = [0] }]",
        "behaviours[0].lives[0]",
        "millisecond",
    ),
];

const TYPES: &str = r#"
    [[application_types]]
    name = "T"
    parameters.Host = "z"
    service_types = { WebType = {}, DbType = { kind = "stateful" } }
    [[application_types]]
    name = "T"
    version = "2.0.0"
    based_on = "1.0.0"
    unprovisioned = true
"#;

fn problems(text: &str) -> Vec<Problem> {
    let topology = Topology::from_toml(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match topology.check() {
        Err(TopologyError::Invalid(problems)) => problems,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_makes_no_sense_is_told_with_its_place_and_how_to_mend_it() {
    let plain = BAD
        .iter()
        .map(|(text, at, part)| ((*text).to_owned(), at, part));
    let deployed = BAD_DEPLOYMENTS
        .iter()
        .map(|(text, at, part)| (format!("{text}\n{TYPES}"), at, part));
    for (text, at, part) in plain.chain(deployed) {
        let found = problems(&text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert_eq!(found[0].at, **at, "{text}");
        assert!(found[0].to_string().contains(part), "{text}: {}", found[0]);
    }
}

#[test]
fn everything_that_is_wrong_is_told_together() {
    let text = format!(
        "cluster.start = \"\"\napplications.A = {{ type = \"X\" }}\napplications.B = {{ type = \"Y\" }}\n{TYPES}"
    );
    let found = problems(&text);
    let places: Vec<&str> = found.iter().map(|problem| problem.at.as_str()).collect();
    assert_eq!(
        places,
        [
            "cluster.start",
            "applications.A.type",
            "applications.B.type"
        ]
    );
}

#[test]
fn problems_are_bounded() {
    let many: String = (0..500)
        .map(|index| format!("applications.A{index}.type = \"X\"\n"))
        .collect();
    assert_eq!(problems(&many).len(), 100);
}

#[test]
fn more_repetitions_than_can_be_counted_are_rejected() {
    let text: String = ["A{n}", "B{n}"]
        .map(|name| {
            format!(
                "applications.\"{name}\" = {{ type = \"T\", count = 4294967295, \
                 services.\"S{{n}}\" = {{ type = \"WebType\", count = 4294967295 }} }}\n"
            )
        })
        .concat();
    let problems = problems(&format!("{text}{TYPES}"));
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn repetitions_have_their_number_in_names_and_parameters() {
    let text = format!(
        "applications.\"A{{n}}\" = {{ type = \"T\", count = 3, parameters.Host = \"h{{n}}.example\", \
         services.\"S{{n}}\" = {{ type = \"WebType\", count = 2 }} }}\n{TYPES}"
    );
    let cluster = Cluster::new(&Topology::from_toml(&text).unwrap()).unwrap();
    let name = crate::cluster::testing::name("fabric:/A3");
    let application = cluster.application(&name).unwrap();
    assert_eq!(application.parameters["Host"], "h3.example");
    let services: Vec<&str> = application
        .services
        .iter()
        .map(|found| found.as_str())
        .collect();
    assert_eq!(services, ["fabric:/A3/S1", "fabric:/A3/S2"]);
}

#[test]
fn a_version_goes_on_from_an_earlier_one() {
    let text = r#"
        [[application_types]]
        name = "T"
        parameters = { A = 1, B = 2 }
        service_types.W.labels = { YARP.Enable = true, YARP.Routes.r.Path = "/1" }
        service_types.X = {}
        [[application_types]]
        name = "T"
        version = "2"
        based_on = "1.0.0"
        parameters = { B = 3 }
        service_types.W.labels.YARP.Routes.r.Path = "/2"
    "#;
    let cluster = Cluster::new(&Topology::from_toml(text).unwrap()).unwrap();
    let second = cluster.application_type("T", "2").unwrap();
    assert_eq!(second.default_parameters["A"], "1");
    assert_eq!(second.default_parameters["B"], "3");
    assert!(second.service_type("X").is_some());
    let (manifest, web) = second.service_type("W").unwrap();
    assert_eq!(manifest.version, "2");
    let xml = &web.extensions[0].xml;
    assert!(
        xml.contains(">true<") && xml.contains(">/2<") && !xml.contains(">/1<"),
        "{xml}"
    );
}

#[test]
fn behaviours_hold_on_their_nodes() {
    let text = format!(
        "applications.Shop = {{ type = \"T\", services.Web = {{ type = \"WebType\", instances = -1 }} }}\n\
         behaviours = [{{ manifest = \"WebPkg\", node = \"_Node_1\", download_time = \"20s\", lives = [\"30s\"] }}]\n{TYPES}"
    );
    let mut cluster = crate::cluster::testing::cluster(&text);
    let count =
        |cluster: &Cluster| crate::cluster::testing::ready(cluster, "fabric:/Shop/Web").len();
    assert_eq!(count(&cluster), 4);
    crate::cluster::testing::pass(&mut cluster, 20);
    assert_eq!(count(&cluster), 5, "the download is done");
    crate::cluster::testing::pass(&mut cluster, 30);
    assert_eq!(count(&cluster), 4, "its process lives for 30 s");
    crate::cluster::testing::pass(&mut cluster, 15);
    assert_eq!(count(&cluster), 5, "and is started again");
}

#[test]
fn settings_that_may_be_meant_otherwise_are_warned_about() {
    let topology =
        Topology::from_toml("hosting.ActivationRetryBackoffExponentiationBase = 0").unwrap();
    let warnings = topology.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("linear"),
        "{warnings:?}"
    );
    topology.check().unwrap();
}
