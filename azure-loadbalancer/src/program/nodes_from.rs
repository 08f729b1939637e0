//! Nodes from the destinations of a cluster that Serf, Consul or Service Fabric reports.

use program_kit::Failure;

use super::cli::MembersArgs;

#[cfg(not(any(feature = "consul", feature = "serf", feature = "servicefabric")))]
pub(super) use self::absent::NodesFrom;
#[cfg(any(feature = "consul", feature = "serf", feature = "servicefabric"))]
pub(super) use self::present::NodesFrom;

/// Replacements for the sources in a program built without any.
#[cfg(not(any(feature = "consul", feature = "serf", feature = "servicefabric")))]
mod absent {
    use std::convert::Infallible;

    use azure_loadbalancer::Node;
    use azure_loadbalancer::sources::Source;

    use super::*;

    pub(in crate::program) struct NodesFrom(Infallible);

    impl NodesFrom {
        pub(in crate::program) fn of(members: &MembersArgs) -> Result<Option<Self>, Failure> {
            match members.nodes_from {
                None => Ok(None),
                Some(_) => Err(Failure::new(
                    "--nodes-from: this program was built without the features `consul`, `serf` and `servicefabric`",
                )),
            }
        }

        pub(in crate::program) async fn once(self) -> Result<Vec<Node>, Failure> {
            match self.0 {}
        }

        pub(in crate::program) fn follow(self) -> Box<dyn Source<Node>> {
            match self.0 {}
        }
    }
}

#[cfg(any(feature = "consul", feature = "serf", feature = "servicefabric"))]
mod present {
    use std::path::Path;

    use async_trait::async_trait;
    use azure_loadbalancer::Node;
    use azure_loadbalancer::discovery::ClusterNodes;
    use azure_loadbalancer::progress::{SILENCE, logged_while_silent};
    use azure_loadbalancer::sources::{Source, SourceError};
    use discovery_core::runner::Driver;
    use discovery_core::{ConfigProvider, DiscoveryProvider, ProviderState, Runner};
    use program_kit::{read, with_causes};
    use proxy_model::json::{ObjectReader, parse_document};
    use proxy_model::{Problems, Severity, yaml};
    use tokio::task::JoinSet;
    use tokio::time::{Instant, timeout_at};

    use super::*;

    /// A cluster of a discovered source.
    pub(in crate::program) struct NodesFrom {
        runner: Runner,
        cluster: String,
    }

    impl NodesFrom {
        /// Returns the source that the command line names, if any.
        pub(in crate::program) fn of(members: &MembersArgs) -> Result<Option<Self>, Failure> {
            match (&members.nodes_from, &members.nodes_cluster) {
                (Some(path), Some(cluster)) => Self::read(path, cluster).map(Some),
                _ => Ok(None),
            }
        }

        fn read(path: &Path, cluster: &str) -> Result<Self, Failure> {
            let text = read(path)?;
            let file = path.display();
            let wrong = |problems: &Problems| {
                let lines: Vec<_> = problems.errors().map(ToString::to_string).collect();
                Failure::new(format!("{file}: {}", lines.join("; ")))
            };
            // A JSON document starts with a brace, perhaps after a byte order mark.
            let is_json = text
                .trim_start_matches('\u{feff}')
                .trim_start()
                .starts_with('{');
            let document = match is_json {
                true => parse_document(&text),
                false => yaml::parse(&text),
            };
            let document = document.map_err(|problems| wrong(&problems))?;
            let mut problems = Problems::new();
            let runners = ObjectReader::read(&document, "", &mut problems, runners);
            for problem in problems
                .iter()
                .filter(|one| one.severity == Severity::Warning)
            {
                tracing::warn!(%file, "{problem}");
            }
            if problems.has_errors() {
                return Err(wrong(&problems));
            }
            let mut runners = runners.unwrap_or_default();
            match (runners.pop(), runners.is_empty()) {
                (Some(runner), true) => Ok(Self {
                    runner: runner.map_err(|why| Failure::new(format!("{file}: {why}")))?,
                    cluster: cluster.to_owned(),
                }),
                (Some(_), false) => Err(Failure::new(format!(
                    "{file}: it has several sources; name one"
                ))),
                (None, _) => Err(Failure::new(format!(
                    "{file}: it names no source; it may have {}",
                    KNOWN.join(" or ")
                ))),
            }
        }

        /// Returns the present nodes.
        pub(in crate::program) async fn once(self) -> Result<Vec<Node>, Failure> {
            let once = logged_while_silent("--nodes-from", self.runner.run_once()).await;
            let nodes = once
                .state
                .config
                .as_ref()
                .and_then(|config| ClusterNodes::of(config, &self.cluster));
            nodes.ok_or_else(|| Failure::new(without(&once.state, &self.cluster)))
        }

        /// Returns the source of nodes. It polls nothing before its first use.
        pub(in crate::program) fn follow(self) -> Box<dyn Source<Node>> {
            let (provider, driver) = self.runner.into_parts();
            Box::new(FollowedNodes {
                nodes: ClusterNodes::new(&provider, &*self.cluster),
                provider,
                cluster: self.cluster,
                driver: Some(driver),
                work: JoinSet::new(),
                tell_at: None,
            })
        }
    }

    type Made = Vec<Result<Runner, String>>;

    /// The sources that this program was built with.
    const KNOWN: &[&str] = &[
        #[cfg(feature = "consul")]
        "ConsulDiscovery",
        #[cfg(feature = "serf")]
        "SerfDiscovery",
        #[cfg(feature = "servicefabric")]
        "ServiceFabricDiscovery",
    ];

    fn runners(document: &mut ObjectReader<'_, '_>) -> Made {
        let mut made = Made::new();
        #[cfg(feature = "consul")]
        made.extend(document.object("ConsulDiscovery", |section| {
            let read = discovery_consul::options::Section::read(section);
            let discoverer = read.connect().map_err(|error| with_causes(&error));
            discoverer.map(|one| one.runner())
        }));
        #[cfg(feature = "serf")]
        made.extend(document.object("SerfDiscovery", |section| {
            let read = discovery_serf::options::Section::read(section);
            let discoverer = read.connect().map_err(|error| with_causes(&error));
            discoverer.map(|one| one.runner())
        }));
        #[cfg(feature = "servicefabric")]
        made.extend(document.object("ServiceFabricDiscovery", service_fabric));
        made
    }

    /// Reads the section. Health is reported by the gateway, not by a reader of machines.
    #[cfg(feature = "servicefabric")]
    fn service_fabric(section: &mut ObjectReader<'_, '_>) -> Result<Runner, String> {
        let mut read = discovery_servicefabric::options::Section::read(section);
        for key in ["ReportServicesHealth", "ReportReplicasHealth"] {
            if section.peek(key) == Some(&proxy_model::json::Node::Boolean(true)) {
                let pointer = section.pointer_to(key);
                let message = "no health is reported by this program";
                section.problems().push(proxy_model::Problem::warning(
                    pointer,
                    "not_reported",
                    message,
                ));
            }
        }
        // This program forwards no requests, so it has no health to report.
        read.options.report_services_health = false;
        read.options.report_replicas_health = false;
        let discovery = read.connect().map_err(|error| with_causes(&error))?;
        Ok(discovery.discoverer().runner())
    }

    /// Returns the reason why a cluster has no nodes.
    fn without(state: &ProviderState, cluster: &str) -> String {
        let error = state.status.last_error.as_ref();
        let Some(config) = &state.config else {
            let why = error.map_or("it has not answered", |error| &error.message);
            return format!("--nodes-from: nothing is known yet: {why}");
        };
        let known: Vec<_> = config
            .clusters
            .keys()
            .take(10)
            .map(|id| id.as_str())
            .collect();
        let known = match known.is_empty() {
            true => "there is none".to_owned(),
            false => format!("known are {}", known.join(", ")),
        };
        format!("--nodes-cluster: there is no cluster {cluster:?}; {known}")
    }

    /// The nodes of a source that is polled from the first call on, until this is dropped.
    struct FollowedNodes {
        nodes: ClusterNodes,
        provider: DiscoveryProvider,
        cluster: String,
        /// The driver of the provider, until it is started.
        driver: Option<Driver>,
        work: JoinSet<()>,
        /// The time at which missing nodes are logged, [`SILENCE`] after the start. `None`: there were some, or it was
        /// logged.
        tell_at: Option<Instant>,
    }

    #[async_trait]
    impl Source<Node> for FollowedNodes {
        async fn next(&mut self) -> Result<Vec<Node>, SourceError> {
            if let Some(driver) = self.driver.take() {
                self.work.spawn(driver);
                self.tell_at = Some(Instant::now() + SILENCE);
            }
            if let Some(at) = self.tell_at {
                // The log for a missing cluster lists the existing ones.
                let nodes = timeout_at(at, self.nodes.next()).await;
                self.tell_at = None;
                if let Ok(nodes) = nodes {
                    return nodes;
                }
                let state = self.provider.subscribe().borrow().clone();
                let config = state.config.as_ref();
                let is_there =
                    config.is_some_and(|config| ClusterNodes::of(config, &self.cluster).is_some());
                if !is_there {
                    return Err(SourceError::new(without(&state, &self.cluster)));
                }
            }
            self.nodes.next().await
        }
    }

    #[cfg(all(test, feature = "serf"))]
    mod tests {
        use super::*;

        /// A cluster that never appears is reported once, although
        /// [`follow`](azure_loadbalancer::execute::follow) drops calls when the other source has changed.
        #[tokio::test(start_paused = true)]
        async fn a_cluster_that_does_not_come_is_told_once_whatever_calls_are_dropped() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("nodes.yaml");
            std::fs::write(&path, "SerfDiscovery: {Agents: ['127.0.0.1:1']}\n").unwrap();
            let Ok(made) = NodesFrom::read(&path, "service:proxy") else {
                panic!("it can be read");
            };
            let mut source = made.follow();
            let began = Instant::now();
            let mut told = Vec::new();
            while began.elapsed() < SILENCE * 6 {
                if let Ok(told_now) = tokio::time::timeout(SILENCE / 5, source.next()).await {
                    let error = told_now.unwrap_err().to_string();
                    told.push((began.elapsed().as_secs(), error));
                }
            }
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(told[0].0, 5);
            assert!(told[0].1.contains("nothing is known yet"), "{told:?}");
        }
    }
}
