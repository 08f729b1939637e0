//! The validation of a whole document: the program's own sections, routes and clusters, and keys that are not
//! honoured. `run`, `check`, `explain` and `discover` share it.

use proxy_model::json::{Layered, Node};
use proxy_model::{CompileOptions, Problem, Problems, Snapshot};
use proxy_runtime::Proxy;
use proxy_runtime::affinity::random_affinity_keys;

use crate::logging;
use crate::settings::Settings;
use crate::settings::sections::concerns_us;

/// The section with routes and clusters.
pub(crate) const SECTION: &str = "ReverseProxy";

/// A document and its problems.
pub(crate) struct Examined {
    pub(crate) settings: Settings,
    /// The snapshot. `None` if there are errors in the section.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) problems: Problems,
}

/// Validates all of `document`. Problems say where values come from.
pub(crate) fn examine(document: &Layered) -> Examined {
    let merged = document
        .problems
        .iter()
        .filter(|problem| concerns_us(problem));
    let mut problems = Problems::from_iter(merged.cloned());
    let settings = Settings::read(&document.node, &mut problems);
    if let Err(problem) = logging::filter(&settings.telemetry) {
        problems.push(problem);
    }
    let policies = proxy_policies::read(&document.node, &mut problems);
    settings.sources.allowed.judge(&policies, &mut problems);
    let options = compile_options().with_policies(policies);
    let snapshot = if document.node.get(SECTION).is_none() && !settings.sources.is_empty() {
        // All routes and clusters are discovered.
        Some(Snapshot::default())
    } else {
        routes_and_clusters(&document.node, &options, &mut problems)
    };
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
