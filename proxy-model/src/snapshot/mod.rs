//! A whole configuration in compiled form.

mod follow_up;
mod revision;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

pub use self::revision::{ParseRevisionError, Revision};
use crate::compile::{self, CompileOptions};
use crate::compiled::{Cluster, ClusterIndex, Route, RouteIndex};
use crate::config::ProxyConfig;
use crate::head::RequestHead;
use crate::id::{ClusterId, RouteId};
use crate::json::{Node, read_section};
use crate::matching::{Lookup, RouteTable};
use crate::problem::Problems;

/// A whole configuration in compiled form: immutable, and known to be valid.
///
/// A snapshot is shared, as `Arc<Snapshot>`, by everything that serves requests with it. State that changes
/// while it serves (health, requests in flight) is kept elsewhere.
pub struct Snapshot {
    config: Arc<ProxyConfig>,
    revision: Revision,
    routes: Vec<Route>,
    clusters: Vec<Cluster>,
    table: RouteTable,
}

impl Snapshot {
    /// Creates a snapshot without routes and clusters.
    pub fn empty() -> Self {
        Self::from_pass(Arc::default(), Vec::new(), Vec::new())
    }

    /// Compiles `config`, all of it or nothing. The warnings come along.
    ///
    /// # Errors
    ///
    /// Returns all problems, warnings included, if one of them is an error. Pointers begin at the section:
    /// `/Routes/r1`.
    pub fn compile(
        config: impl Into<Arc<ProxyConfig>>,
        options: &CompileOptions,
    ) -> Result<(Self, Problems), Problems> {
        let config = config.into();
        let pass = compile::compile(&config, &HashSet::new(), options);
        if !pass.is_whole() {
            return Err(pass.problems);
        }
        let snapshot = Self::from_pass(config, pass.routes, pass.clusters);
        Ok((snapshot, pass.problems))
    }

    /// Compiles what is right in `config` and leaves out routes and clusters that have errors.
    ///
    /// The problems name everything that was left out. [`config`](Self::config) is what is left.
    pub fn compile_isolated(
        config: impl Into<Arc<ProxyConfig>>,
        options: &CompileOptions,
    ) -> (Self, Problems) {
        Self::isolated(config.into(), Default::default(), options)
    }

    /// Reads and compiles `section`, whose pointer is `pointer`, as a whole. Returns the problems of both
    /// steps.
    ///
    /// Pointers begin with `pointer` and spell keys as the document does. Use this to report all problems
    /// of a file at once.
    ///
    /// # Errors
    ///
    /// Returns all problems, warnings included, if one of them is an error.
    pub fn read(
        section: &Node,
        pointer: &str,
        options: &CompileOptions,
    ) -> Result<(Self, Problems), Problems> {
        let mut problems = Problems::new();
        let mut reading = read_section(section, pointer, &mut problems);
        reading.config.policies = Arc::clone(&options.policies);
        let config = Arc::new(reading.config);
        let pass = compile::compile(&config, &HashSet::new(), options);
        let is_whole = !problems.has_errors() && pass.is_whole();
        problems.append(follow_up::without(
            pass.problems,
            &problems,
            section,
            pointer,
        ));
        if !is_whole {
            return Err(problems);
        }
        let snapshot = Self::from_pass(config, pass.routes, pass.clusters);
        Ok((snapshot, problems))
    }

    /// Reads and compiles `section`, found at `pointer`, without the routes and clusters that have errors.
    pub fn read_isolated(
        section: &Node,
        pointer: &str,
        options: &CompileOptions,
    ) -> (Self, Problems) {
        let mut problems = Problems::new();
        let mut reading = read_section(section, pointer, &mut problems);
        reading.config.policies = Arc::clone(&options.policies);
        let bad = (reading.bad_routes, reading.bad_clusters);
        let (snapshot, found) = Self::isolated(Arc::new(reading.config), bad, options);
        problems.append(follow_up::without(found, &problems, section, pointer));
        (snapshot, problems)
    }

    /// The configuration that was compiled.
    pub fn config(&self) -> &ProxyConfig {
        &self.config
    }

    /// The configuration that was compiled, to share.
    pub fn shared_config(&self) -> &Arc<ProxyConfig> {
        &self.config
    }

    /// The revision, a hash of this configuration's content.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The routes, in the order of the configuration.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Returns the routes that take requests of others because of a lower `Order` alone: pairs of the one
    /// that takes them and the one that loses them. Both have equal criteria and a host in common.
    pub fn overrides(&self) -> Vec<(&Route, &Route)> {
        let pairs = compile::overrides(&self.routes).into_iter();
        pairs
            .map(|(winner, loser)| (&self.routes[winner], &self.routes[loser]))
            .collect()
    }

    /// The clusters, in the order of the configuration.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The index over the routes.
    pub fn table(&self) -> &RouteTable {
        &self.table
    }

    /// Finds the route that takes a request.
    pub fn find<H: RequestHead + ?Sized>(&self, head: &H) -> Lookup {
        self.table.find(&self.routes, head)
    }

    /// The route called `id`.
    pub fn route(&self, id: &RouteId) -> Option<&Route> {
        self.routes.get(self.config.routes.get_index_of(id)?)
    }

    /// The cluster called `id`.
    pub fn cluster(&self, id: &ClusterId) -> Option<&Cluster> {
        self.clusters.get(self.config.clusters.get_index_of(id)?)
    }

    /// The position of the route called `id`.
    pub fn route_index(&self, id: &RouteId) -> Option<RouteIndex> {
        let position = self.config.routes.get_index_of(id)?;
        u32::try_from(position).ok().map(RouteIndex)
    }

    /// The position of the cluster called `id`.
    pub fn cluster_index(&self, id: &ClusterId) -> Option<ClusterIndex> {
        let position = self.config.clusters.get_index_of(id)?;
        u32::try_from(position).ok().map(ClusterIndex)
    }

    /// The route at a position.
    ///
    /// # Panics
    ///
    /// Panics if the position comes from another snapshot that has more routes.
    #[track_caller]
    pub fn route_at(&self, index: RouteIndex) -> &Route {
        &self.routes[index.0 as usize]
    }

    /// The cluster at a position.
    ///
    /// # Panics
    ///
    /// Panics if the position comes from another snapshot that has more clusters.
    #[track_caller]
    pub fn cluster_at(&self, index: ClusterIndex) -> &Cluster {
        &self.clusters[index.0 as usize]
    }

    /// Compiles the valid parts, given the ids of the parts known to be bad.
    fn isolated(
        mut config: Arc<ProxyConfig>,
        (mut bad_routes, mut bad_clusters): (HashSet<RouteId>, HashSet<ClusterId>),
        options: &CompileOptions,
    ) -> (Self, Problems) {
        let mut problems = Problems::new();
        loop {
            let pass = compile::compile(&config, &bad_clusters, options);
            let routes = pass.bad_routes.iter();
            bad_routes.extend(routes.filter_map(|i| Some(config.routes.get_index(*i)?.0.clone())));
            let clusters = pass.bad_clusters.iter();
            bad_clusters
                .extend(clusters.filter_map(|i| Some(config.clusters.get_index(*i)?.0.clone())));
            let is_good = config.routes.keys().all(|id| !bad_routes.contains(id))
                && config.clusters.keys().all(|id| !bad_clusters.contains(id));
            if is_good && pass.is_whole() {
                problems.append(pass.problems);
                return (
                    Self::from_pass(config, pass.routes, pass.clusters),
                    problems,
                );
            }
            // Each round leaves something out, so there is a last one. Its warnings are those of what is left.
            problems.extend(pass.problems.errors().cloned());
            let kept = Arc::make_mut(&mut config);
            kept.routes.retain(|id, _| !bad_routes.contains(id));
            kept.clusters.retain(|id, _| !bad_clusters.contains(id));
        }
    }

    fn from_pass(config: Arc<ProxyConfig>, routes: Vec<Route>, clusters: Vec<Cluster>) -> Self {
        Self {
            table: RouteTable::build(&routes),
            revision: Revision::of(&config),
            config,
            routes,
            clusters,
        }
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("revision", &self.revision)
            .field("routes", &self.routes.len())
            .field("clusters", &self.clusters.len())
            .finish_non_exhaustive()
    }
}
