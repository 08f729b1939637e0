//! The validation of a whole document: the program's own sections, routes and clusters, and keys that are not
//! honoured. `run`, `check`, `explain` and `discover` share it.

use discovery_core::resolver::is_service;
use proxy_model::config::PolicyConfigs;
use proxy_model::json::{Layered, Node};
use proxy_model::{CompileOptions, Problem, Problems, Snapshot, pointer_to, same_id};
use proxy_policies::judge_use;
use proxy_runtime::Proxy;
use proxy_runtime::affinity::random_affinity_keys;

use crate::logging;
use crate::settings::sections::concerns_us;
use crate::settings::{Server, Settings};

/// The section with routes and clusters.
pub(crate) const SECTION: &str = "ReverseProxy";

/// A document and its problems.
pub(crate) struct Examined {
    pub(crate) settings: Settings,
    /// The snapshot. `None` if there are errors in the section.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) problems: Problems,
}

/// Validates all of `document`. Problems name the origin of values.
pub(crate) fn examine(document: &Layered) -> Examined {
    let merged = document.problems.iter();
    let mut problems = Problems::from_iter(merged.filter(|one| is_of_section(one)).cloned());
    let (settings, policies) = own_sections(document, &mut problems);
    let options = compile_options().with_policies(policies);
    let snapshot = if document.node.get(SECTION).is_none() && !settings.sources.is_empty() {
        // All routes and clusters are discovered.
        Some(Snapshot::default())
    } else {
        routes_and_clusters(&document.node, &options, &mut problems)
    };
    if let Some(snapshot) = &snapshot {
        let pointer = document.node.spelled(&format!("/{SECTION}"));
        problems.extend(unknown_services(&settings.server, snapshot).under(&pointer));
    }
    if let Some(snapshot) = &snapshot {
        let allowed = &settings.sources.allowed;
        let asks = settings
            .listeners
            .iter()
            .any(|listener| listener.asks_for_certificates());
        problems.extend(judge_use(snapshot, asks, |kind, name| {
            allowed.names(kind, name)
        }));
    }
    if let (None, Some(snapshot)) = (&settings.server.affinity_keys, &snapshot) {
        let pointer = document.node.spelled(&format!("/{SECTION}"));
        problems.extend(random_affinity_keys(snapshot).under(&pointer));
    }
    if !settings.sources.is_empty() {
        problems = problems.into_iter().map(perhaps_discovered).collect();
    }
    document.origins.place(&mut problems);
    Examined {
        settings,
        snapshot,
        problems,
    }
}

/// Reads the sections beside `ReverseProxy`.
fn own_sections(document: &Layered, problems: &mut Problems) -> (Settings, PolicyConfigs) {
    let merged = document.problems.iter().filter(|one| !is_of_section(one));
    problems.extend(merged.filter(|one| concerns_us(one)).cloned());
    let settings = Settings::read(&document.node, problems);
    if let Err(problem) = logging::filter(&settings.telemetry) {
        problems.push(problem);
    }
    let policies = proxy_policies::read(&document.node, problems);
    settings.sources.allowed.judge(&policies, problems);
    (settings, policies)
}

/// Reads the policies for the follower of the files. Errors of any section reject the files, as at the start.
pub(crate) fn policies(document: &Layered, problems: &mut Problems) -> PolicyConfigs {
    own_sections(document, problems).1
}

/// Returns true if a problem is in the section with routes and clusters.
pub(crate) fn is_of_section(problem: &Problem) -> bool {
    let section = problem.pointer.split('/').nth(1).unwrap_or_default();
    same_id(section, SECTION)
}

/// Warns about names of services (SRV records) that nothing looks up here.
fn unknown_services(server: &Server, snapshot: &Snapshot) -> Problems {
    let (message, suggestion) = match &server.destination_resolver {
        None => (
            "SRV records are looked up by `Server.DnsDestinationResolver`, which is not there",
            "write `\"DnsDestinationResolver\": {}` in `Server`",
        ),
        Some(_) if server.resolver.dns().is_none() => (
            "SRV records are unknown to the resolver of the operating system, which is used here",
            "write `\"Resolver\": { \"Kind\": \"Dns\" }` in `Server`",
        ),
        Some(_) => return Problems::new(),
    };
    let mut problems = Problems::new();
    for (id, cluster) in &snapshot.config().clusters {
        let place = pointer_to(&pointer_to("/Clusters", id.as_str()), "Destinations");
        for (id, destination) in &cluster.destinations {
            let address = destination.address.parse::<http::Uri>().ok();
            if address.is_some_and(|address| address.host().is_some_and(is_service)) {
                let pointer = pointer_to(&place, id.as_str()) + "/Address";
                let problem = Problem::warning(pointer, "unknown_service", message);
                problems.push(problem.with_suggestion(suggestion));
            }
        }
    }
    problems
}

/// Downgrades the problem of an unknown cluster, which may be discovered.
fn perhaps_discovered(mut problem: Problem) -> Problem {
    if problem.code == "unknown_cluster" {
        problem.message = format!(
            "in the files {}, unless a source has it by then",
            problem.message
        );
    }
    problem
}

/// Returns the compile options of this program's proxy.
pub(crate) fn compile_options() -> CompileOptions {
    Proxy::builder().compile_options()
}

fn routes_and_clusters(
    document: &Node,
    options: &CompileOptions,
    problems: &mut Problems,
) -> Option<Snapshot> {
    let Some(section) = document.get(SECTION) else {
        problems.push(
            Problem::error(
                "",
                "missing_section",
                format!("there is no section `{SECTION}`"),
            )
            .with_suggestion(format!(
                "put `Routes` and `Clusters` into `\"{SECTION}\": {{ … }}`"
            )),
        );
        return None;
    };
    let pointer = document.spelled(&format!("/{SECTION}"));
    match Snapshot::read(section, &pointer, options) {
        Ok((snapshot, warnings)) => {
            problems.extend(warnings);
            problems.extend(proxy_runtime::unsupported(&snapshot).under(&pointer));
            Some(snapshot)
        }
        Err(found) => {
            problems.extend(found);
            // Valid routes and clusters are checked all the same, so that no new problems appear when the
            // errors are corrected.
            let (rest, _) = Snapshot::read_isolated(section, &pointer, options);
            problems.extend(proxy_runtime::unsupported(&rest).under(&pointer));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use proxy_model::json::Layer;

    use super::*;

    fn problems(server: &str, address: &str) -> Vec<String> {
        let text = format!(
            r#"{{ "Server": {server}, "ReverseProxy": {{ "Clusters": {{ "c": {{ "Destinations": {{ "d": {{
                "Address": "{address}" }} }} }} }} }} }}"#
        );
        let layer = Layer::File {
            name: "file".to_owned(),
            text,
        };
        let examined = examine(&Layered::new(vec![layer]).unwrap());
        let problems = examined.problems.iter();
        problems
            .map(|one| format!("{} {}", one.code, one.pointer))
            .collect()
    }

    #[test]
    fn names_of_services_that_nothing_looks_up_are_named() {
        let service = "http://_http._tcp.orders.example/";
        let expected = ["unknown_service /ReverseProxy/Clusters/c/Destinations/d/Address"];
        let system = r#""Resolver": { "Kind": "System" }"#;
        assert_eq!(problems("{}", service), expected);
        let server = format!(r#"{{ "DnsDestinationResolver": {{}}, {system} }}"#);
        assert_eq!(problems(&server, service), expected);
        for (server, address) in [
            (
                r#"{ "DnsDestinationResolver": {}, "Resolver": { "Kind": "Dns" } }"#,
                service,
            ),
            (&*format!("{{ {system} }}"), "http://_dmarc.orders.example/"),
        ] {
            assert!(problems(server, address).is_empty(), "{server} {address}");
        }
    }
}
