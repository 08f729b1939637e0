//! The allowed dependencies between members of the workspace.

use crate::dependency_direction::graph::{Dependency, Graph, Package};

/// The members that a member may depend on.
enum Knows {
    /// The listed members, in its library and in its tests.
    Only(&'static [Edge]),
    /// All: for programs and packages that no other member depends on.
    All,
}

/// An allowed dependency.
enum Edge {
    /// Required.
    On(&'static str),
    /// Behind a feature, so that it is optional for users.
    Optional(&'static str),
    /// In tests and examples only.
    Development(&'static str),
}

use Edge::{Development, On, Optional};

/// Packages only for tests, benchmarks and developers. No published package may need them.
const UNPUBLISHED: [&str; 10] = [
    "tours",
    "demo",
    "servicefabric-emulator",
    "testkit",
    "xtask",
    "examples",
    "benches",
    "bench-peers",
    "fuzz-targets",
    "xds-types-generator",
];

/// The table of DESIGN.md, section "Crates".
fn knows(package: &str) -> Option<Knows> {
    Some(match package {
        "proxy-model" | "discovery-http" | "log-sink" => Knows::Only(&[]),
        "program-kit" => Knows::Only(&[On("log-sink")]),
        "servicefabric-emulator" => {
            Knows::Only(&[Optional("discovery-http"), Optional("program-kit")])
        }
        "discovery-core" => Knows::Only(&[On("proxy-model")]),
        "discovery-servicefabric" => Knows::Only(&[
            On("proxy-model"),
            On("discovery-core"),
            On("discovery-http"),
            Development("servicefabric-emulator"),
        ]),
        "discovery-serf" => Knows::Only(&[On("proxy-model"), On("discovery-core")]),
        "proxy-runtime" => Knows::Only(&[On("proxy-model"), On("discovery-core"), On("log-sink")]),
        "proxy-policies" => {
            Knows::Only(&[On("proxy-model"), On("proxy-runtime"), On("discovery-http")])
        }
        "proxy-telemetry" => Knows::Only(&[
            On("discovery-http"),
            On("log-sink"),
            On("proxy-runtime"),
            Development("proxy-model"),
        ]),
        "discovery-xds" => Knows::Only(&[
            On("proxy-model"),
            On("discovery-core"),
            On("discovery-http"),
            On("xds-types"),
        ]),
        "discovery-consul" => Knows::Only(&[
            On("proxy-model"),
            On("discovery-core"),
            On("discovery-http"),
        ]),
        "xds-control-plane" => Knows::Only(&[
            On("proxy-model"),
            On("discovery-core"),
            On("discovery-consul"),
            On("log-sink"),
            On("xds-types"),
            Development("discovery-xds"),
            Optional("discovery-http"),
            Optional("discovery-serf"),
            Optional("discovery-servicefabric"),
            Optional("program-kit"),
            Development("servicefabric-emulator"),
        ]),
        "proxy-gateway" | "demo" | "examples" | "tours" | "benches" | "bench-peers"
        | "fuzz-targets" => Knows::All,
        "xds-types" | "xds-types-generator" | "testkit" | "xtask" => Knows::Only(&[]),
        "azure-loadbalancer" => Knows::Only(&[
            Optional("proxy-model"),
            Optional("discovery-core"),
            Optional("discovery-consul"),
            Optional("discovery-serf"),
            Optional("discovery-servicefabric"),
            On("discovery-http"),
            Optional("program-kit"),
            Development("servicefabric-emulator"),
        ]),
        _ => return None,
    })
}

/// Returns the violations in a graph.
pub(crate) fn complaints(graph: &Graph) -> Vec<String> {
    graph
        .packages
        .iter()
        .flat_map(|package| of_package(graph, package))
        .collect()
}

fn of_package(graph: &Graph, package: &Package) -> Vec<String> {
    let name = &package.name;
    let mut wrong = Vec::new();
    let unpublished = UNPUBLISHED.contains(&name.as_str());
    if unpublished && package.published {
        wrong.push(format!(
            "{name} must not be published: it needs `publish = false`"
        ));
    }
    let Some(knows) = knows(name) else {
        wrong.push(format!("{name} is not in the table of who may know whom"));
        return wrong;
    };
    for dependency in &package.dependencies {
        let on = &dependency.on;
        if package.published && !dependency.development_only && !is_published(graph, on) {
            wrong.push(format!(
                "{name} cannot be published, since it needs the unpublished {on}"
            ));
        } else if !allowed(&knows, dependency) {
            let how = describe(dependency);
            wrong.push(format!("{name} must not know {on} ({how})"));
        }
    }
    wrong
}

fn allowed(knows: &Knows, dependency: &Dependency) -> bool {
    let on = dependency.on.as_str();
    // Tests of any member may use the shared test kit.
    if on == "testkit" && dependency.development_only {
        return true;
    }
    match knows {
        Knows::All => on != "xtask",
        Knows::Only(edges) => edges.iter().any(|edge| match *edge {
            On(target) => target == on,
            Optional(target) => {
                target == on && (dependency.optional || dependency.development_only)
            }
            Development(target) => target == on && dependency.development_only,
        }),
    }
}

fn is_published(graph: &Graph, name: &str) -> bool {
    graph
        .packages
        .iter()
        .any(|package| package.name == name && package.published)
}

fn describe(dependency: &Dependency) -> &'static str {
    match (dependency.development_only, dependency.optional) {
        (true, _) => "in its tests",
        (false, true) => "optional",
        (false, false) => "always",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[Dependency]) -> Package {
        Package {
            name: name.to_owned(),
            published: !UNPUBLISHED.contains(&name),
            dependencies: dependencies.to_vec(),
            ..Package::default()
        }
    }

    fn always(on: &str) -> Dependency {
        Dependency {
            on: on.to_owned(),
            development_only: false,
            optional: false,
        }
    }

    fn optional(on: &str) -> Dependency {
        Dependency {
            optional: true,
            ..always(on)
        }
    }

    fn in_tests(on: &str) -> Dependency {
        Dependency {
            development_only: true,
            ..always(on)
        }
    }

    /// A valid workspace.
    fn family() -> Graph {
        let packages = vec![
            package("proxy-model", &[]),
            package("discovery-core", &[always("proxy-model")]),
            package(
                "discovery-serf",
                &[always("discovery-core"), in_tests("testkit")],
            ),
            package("discovery-consul", &[always("discovery-core")]),
            package(
                "discovery-servicefabric",
                &[always("discovery-core"), in_tests("servicefabric-emulator")],
            ),
            package(
                "xds-control-plane",
                &[always("discovery-core"), always("discovery-consul")],
            ),
            package("servicefabric-emulator", &[in_tests("testkit")]),
            package(
                "azure-loadbalancer",
                &[optional("proxy-model"), optional("discovery-core")],
            ),
            package(
                "proxy-runtime",
                &[always("proxy-model"), always("discovery-core")],
            ),
            package(
                "proxy-gateway",
                &[always("proxy-runtime"), always("discovery-serf")],
            ),
            package("program-kit", &[]),
            package("testkit", &[]),
            package("xtask", &[]),
            package("examples", &[always("proxy-runtime"), always("testkit")]),
        ];
        Graph { packages }
    }

    fn complaints_with(name: &str, dependency: Dependency) -> Vec<String> {
        let mut graph = family();
        let found = graph
            .packages
            .iter_mut()
            .find(|package| package.name == name);
        found
            .expect("it is one of the family")
            .dependencies
            .push(dependency);
        complaints(&graph)
    }

    #[test]
    fn a_family_in_order_draws_no_complaint() {
        assert_eq!(complaints(&family()), <[String; 0]>::default());
    }

    #[test]
    fn every_forbidden_edge_is_named() {
        let forbidden = [
            ("proxy-model", always("discovery-core"), "always"),
            ("discovery-core", always("proxy-runtime"), "always"),
            ("discovery-core", optional("discovery-serf"), "optional"),
            ("proxy-runtime", always("discovery-serf"), "always"),
            ("proxy-runtime", optional("discovery-consul"), "optional"),
            ("proxy-runtime", in_tests("discovery-serf"), "in its tests"),
            ("discovery-serf", always("discovery-consul"), "always"),
            ("servicefabric-emulator", always("proxy-model"), "always"),
            ("azure-loadbalancer", always("proxy-model"), "always"),
            ("azure-loadbalancer", always("program-kit"), "always"),
            ("proxy-runtime", optional("program-kit"), "optional"),
            ("testkit", always("proxy-runtime"), "always"),
            ("proxy-gateway", in_tests("xtask"), "in its tests"),
        ];
        for (name, dependency, how) in forbidden {
            let on = dependency.on.clone();
            let expected = format!("{name} must not know {on} ({how})");
            let complaints = complaints_with(name, dependency);
            assert!(complaints.contains(&expected), "{complaints:?}");
        }
    }

    #[test]
    fn a_published_package_needs_no_unpublished_one() {
        assert_eq!(
            complaints_with("proxy-gateway", always("testkit")),
            ["proxy-gateway cannot be published, since it needs the unpublished testkit"]
        );
        assert_eq!(
            complaints_with("discovery-servicefabric", always("servicefabric-emulator")),
            [
                "discovery-servicefabric cannot be published, since it needs the unpublished servicefabric-emulator"
            ]
        );
    }

    #[test]
    fn what_is_made_for_tests_stays_unpublished() {
        let mut graph = family();
        for package in &mut graph.packages {
            package.published = true;
        }
        let complaints = complaints(&graph);
        assert!(
            complaints
                .contains(&"xtask must not be published: it needs `publish = false`".to_owned()),
            "{complaints:?}"
        );
    }

    #[test]
    fn a_new_member_has_to_take_its_place_in_the_table() {
        let mut graph = family();
        graph.packages.push(package("discovery-etcd", &[]));
        assert_eq!(
            complaints(&graph),
            ["discovery-etcd is not in the table of who may know whom"]
        );
    }
}
