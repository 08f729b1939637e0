//! The compilation of a configuration, with all problems on the way.

mod address;
mod affinity;
mod affinity_conflicts;
mod chosen;
mod cluster;
mod conflicts;
mod criteria;
mod destination;
mod health;
mod metadata;
mod options;
mod partitions;
mod policy;
mod reply;
mod route;
mod shared;
#[cfg(test)]
mod tests;
mod tls;
mod upstream;
mod web_proxy;

use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use self::conflicts::overrides;
pub use self::destination::{MAX_PRIORITY, MAX_WEIGHT};
pub use self::options::CompileOptions;
use self::route::Targets;
use crate::compiled::{Cluster, ClusterSource, Route, RouteSource};
use crate::config::ProxyConfig;
use crate::id::ClusterId;
use crate::matching::Expressions;
use crate::problem::{Problem, Problems, pointer_to};

/// The result of one pass over a configuration.
pub(crate) struct Pass {
    pub(crate) routes: Vec<Route>,
    pub(crate) clusters: Vec<Cluster>,
    /// Positions of the routes that have errors.
    pub(crate) bad_routes: Vec<usize>,
    /// Positions of the clusters that have errors.
    pub(crate) bad_clusters: Vec<usize>,
    pub(crate) problems: Problems,
}

impl Pass {
    /// Returns true if everything was compiled.
    pub(crate) fn is_whole(&self) -> bool {
        self.bad_routes.is_empty() && self.bad_clusters.is_empty()
    }
}

/// Compiles all valid parts. `rejected` are clusters that were left out of `config` earlier.
pub(crate) fn compile(
    config: &Arc<ProxyConfig>,
    rejected: &HashSet<ClusterId>,
    options: &CompileOptions,
) -> Pass {
    let mut pass = Pass {
        routes: Vec::with_capacity(config.routes.len()),
        clusters: Vec::with_capacity(config.clusters.len()),
        bad_routes: Vec::new(),
        bad_clusters: Vec::new(),
        problems: Problems::new(),
    };
    let mut expressions = Expressions::default();
    for position in 0..config.clusters.len() {
        let Some(source) = ClusterSource::new(config, position) else {
            break;
        };
        let mut scope = Scope::new(
            pointer_to("/Clusters", source.id().as_str()),
            options,
            &mut expressions,
            &mut pass.problems,
        );
        match scope.whole(|scope| cluster::compile(source, scope)) {
            Some(cluster) => pass.clusters.push(cluster),
            None => pass.bad_clusters.push(position),
        }
    }
    let mut targets = Targets::new(config, rejected);
    for position in 0..config.routes.len() {
        let Some(source) = RouteSource::new(config, position) else {
            break;
        };
        let mut scope = Scope::new(
            pointer_to("/Routes", source.id().as_str()),
            options,
            &mut expressions,
            &mut pass.problems,
        );
        match scope.whole(|scope| route::compile(source, &mut targets, scope)) {
            Some(route) => pass.routes.push(route),
            None => pass.bad_routes.push(position),
        }
    }
    conflicts::warn(&pass.routes, &mut pass.problems);
    affinity_conflicts::warn(
        &pass.clusters,
        &pass.bad_clusters,
        &pass.routes,
        &mut pass.problems,
    );
    pass
}

/// A part of the configuration while it is compiled: where it is, and where its problems go.
pub(crate) struct Scope<'a> {
    pointer: String,
    pub(crate) options: &'a CompileOptions,
    /// Shared by all routes.
    expressions: &'a mut Expressions,
    pub(crate) problems: &'a mut Problems,
}

impl<'a> Scope<'a> {
    fn new(
        pointer: String,
        options: &'a CompileOptions,
        expressions: &'a mut Expressions,
        problems: &'a mut Problems,
    ) -> Self {
        Self {
            pointer,
            options,
            expressions,
            problems,
        }
    }

    /// The JSON pointer of the part.
    fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns the pointer of a value below the part, given as `HealthCheck/Active/Path`.
    fn place(&self, below: &str) -> String {
        format!("{}/{below}", self.pointer)
    }

    /// Reports that the value at `below` cannot be used.
    fn error(&mut self, below: &str, code: &'static str, message: impl Into<String>) {
        let problem = Problem::error(self.place(below), code, message);
        self.problems.push(problem);
    }

    /// Reports that the value at `below` cannot be used, with a suggestion.
    fn error_with(
        &mut self,
        below: &str,
        code: &'static str,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        let problem = Problem::error(self.place(below), code, message);
        self.problems.push(problem.with_suggestion(suggestion));
    }

    /// Reports that the setting at `below` has another effect than it suggests.
    fn warning(&mut self, below: &str, code: &'static str, message: impl Into<String>) {
        let problem = Problem::warning(self.place(below), code, message);
        self.problems.push(problem);
    }

    /// Returns the scope of a part of this part.
    fn below(&mut self, below: &str) -> Scope<'_> {
        Scope {
            pointer: self.place(below),
            options: self.options,
            expressions: self.expressions,
            problems: self.problems,
        }
    }

    /// Returns the result of `compile`, or `None` if `compile` reported an error.
    fn whole<T>(&mut self, compile: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let errors_before = self.problems.error_count();
        let value = compile(self)?;
        (self.problems.error_count() == errors_before).then_some(value)
    }
}

/// Returns `text`, unless it is unset or empty, which YARP treats alike.
fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
