//! The document that a registry is written in, by people or by programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use discovery_core::text::shortened;
use proxy_model::json::{Node, ObjectReader};
use proxy_model::{Problem, Problems, yaml};

use super::super::document::{self, protocol};
use crate::translate::{Branch, Protocol, Provides, RegistryService};

/// The services of a registry, and the problems of those that cannot be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedRegistry {
    /// The usable services, by name.
    pub services: Vec<RegistryService>,
    /// The unusable services, by name, or by position if they have no name. A service that was good before
    /// keeps its earlier form.
    pub bad: BTreeMap<Arc<str>, String>,
    /// The problems, each with its place.
    pub problems: Vec<String>,
}

/// Reads a document, which may be JSON or YAML:
///
/// ```yaml
/// services:
/// - name: shop
///   status: run                     # anything else: it does not run; run if absent
///   provides:
///   - {name: http, proto: http}     # http, grpc or tcp; http if absent
///   branches:
///   - name: fix1
///     status: run
///     canary_percent: 5             # none if absent
///     provides: [{name: http}]      # those of the service if absent
/// ```
///
/// Keys that are not known pass: a registry knows more than is needed here.
///
/// # Errors
///
/// Returns an error if the text is not such a document at all. An invalid service only loses that service.
pub fn parse_registry(text: &str) -> Result<ParsedRegistry, Problems> {
    let document = yaml::parse(text)?;
    let Some(Node::List(services)) = document.get("services") else {
        let message = "a registry has a list of `services`, which may be empty";
        return Err(Problem::error("/services", "missing", message).into());
    };
    let mut parsed = ParsedRegistry::default();
    let mut seen = BTreeSet::new();
    for (at, node) in services.iter().enumerate() {
        let mut problems = Problems::new();
        let read = service(node, &format!("/services/{at}"), &mut problems);
        parsed
            .problems
            .extend(problems.iter().map(ToString::to_string));
        let name = match node.get("name") {
            Some(Node::Text(name)) => Arc::from(name.as_str()),
            _ => {
                parsed
                    .bad
                    .insert(format!("/services/{at}").into(), problems.to_string());
                continue;
            }
        };
        match read.filter(|_| !problems.has_errors()) {
            Some(_) if !seen.insert(Arc::clone(&name)) => {
                let message = format!(
                    "/services/{at}: the service {} is there twice; the first counts",
                    shortened(&name, 100)
                );
                parsed.problems.push(message);
            }
            Some(service) => parsed.services.push(service),
            None => {
                parsed.bad.insert(name, problems.to_string());
            }
        }
    }
    parsed.services.sort_by(|a, b| a.name.cmp(&b.name));
    parsed.problems.truncate(100);
    Ok(parsed)
}

fn service(node: &Node, pointer: &str, problems: &mut Problems) -> Option<RegistryService> {
    ObjectReader::read(node, pointer, problems, |service| {
        service.allow_unknown();
        let name = document::name(service, "name");
        let is_running = is_running(service);
        let provides = provides(service);
        let branches = service.list("branches", branch).unwrap_or_default();
        let pointer = service.pointer_to("branches");
        document::unique(
            service.problems(),
            &pointer,
            branches.iter().map(|branch| &branch.name),
        );
        Some(RegistryService {
            name: name?,
            is_running,
            provides: provides.unwrap_or_default(),
            branches,
        })
    })?
}

fn branch(node: &Node, pointer: &str, problems: &mut Problems) -> Option<Branch> {
    ObjectReader::read(node, pointer, problems, |branch| {
        branch.allow_unknown();
        let name = document::name(branch, "name");
        Some(Branch {
            is_running: is_running(branch),
            provides: provides(branch),
            canary_percent: branch
                .integer("canary_percent", 0..=100_u32)
                .unwrap_or_default(),
            name: name?,
        })
    })?
}

fn is_running(reader: &mut ObjectReader<'_, '_>) -> bool {
    let status = reader.text("status");
    status.is_none_or(|status| status.trim().eq_ignore_ascii_case("run"))
}

fn provides(reader: &mut ObjectReader<'_, '_>) -> Option<Vec<Provides>> {
    let provides = reader.list("provides", |node, pointer, problems| {
        ObjectReader::read(node, pointer, problems, |provides| {
            provides.allow_unknown();
            let protocol = protocol(provides, "proto", true);
            Some(Provides {
                name: document::name(provides, "name")?,
                protocol: protocol.unwrap_or(Protocol::Http),
            })
        })?
    })?;
    let pointer = reader.pointer_to("provides");
    document::unique(
        reader.problems(),
        &pointer,
        provides.iter().map(|one| &one.name),
    );
    Some(provides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_read_with_its_defaults() {
        let text = r#"{"services": [
            {"name": "shop", "team": "a", "provides": [{"name": "http"}, {"name": "rpc", "proto": "grpc"}],
             "branches": [{"name": "fix1", "status": "run", "canary_percent": 5},
                          {"name": "old", "status": "stop", "provides": []}]},
            {"name": "cart", "status": "stop"}
        ]}"#;
        let parsed = parse_registry(text).unwrap();
        assert_eq!((&parsed.problems[..], parsed.bad.len()), (&[][..], 0));
        let [cart, shop] = &parsed.services[..] else {
            panic!("{parsed:?}")
        };
        assert!(!cart.is_running && shop.is_running);
        assert_eq!(shop.provides[1].protocol, Protocol::Grpc);
        assert_eq!(
            (shop.branches[0].canary_percent, &shop.branches[0].provides),
            (5, &None)
        );
        assert!(!shop.branches[1].is_running);
        assert_eq!(shop.branches[1].provides, Some(Vec::new()));
    }

    #[test]
    fn a_service_that_is_wrong_costs_that_service() {
        let text = "services:\n- name: good\n- name: bad\n  branches: [{name: x, canary_percent: 101}]\n- name: good\n- 5\n";
        let parsed = parse_registry(text).unwrap();
        let names: Vec<_> = parsed
            .services
            .iter()
            .map(|service| &*service.name)
            .collect();
        assert_eq!(names, ["good"]);
        assert!(
            parsed.bad["bad"].contains("/services/1/branches/0/canary_percent"),
            "{parsed:?}"
        );
        assert!(parsed.bad.contains_key("/services/3"), "{parsed:?}");
        assert!(
            parsed
                .problems
                .iter()
                .any(|problem| problem.contains("twice"))
        );
        assert!(parse_registry("{}").is_err());
        assert!(parse_registry("services: {a: 1}").is_err());
    }
}
