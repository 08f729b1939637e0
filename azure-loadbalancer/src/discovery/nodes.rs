//! Nodes from the destinations of a discovered cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::{ConfigProvider, ProviderState};
use proxy_model::config::{ClusterConfig, ProxyConfig};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use crate::node::Node;
use crate::sources::{Source, SourceError};

/// The time for which a cluster without destinations is ignored.
const EMPTY_GRACE: Duration = Duration::from_secs(60);

/// Nodes that are the destinations of one cluster of a live configuration.
///
/// Each address is one node, whose name is derived from it: two destinations at one address are one machine.
/// Destinations with a host name in place of an address are skipped and logged, since a pool has addresses.
///
/// The nodes respond at their own address only ([`Node::own_address_only`]): set
/// `azure-disable-load-balancer-floating-ip: "true"` on their services.
///
/// While the configuration is unknown, or lacks the cluster, the last nodes stay. A cluster that has no
/// destination counts as empty only after a while ([`Self::empty_grace`]), since a pool without members is an
/// outage, and a program that loses a whole cluster at once has more often lost its own view.
#[derive(Debug)]
pub struct ClusterNodes {
    states: watch::Receiver<Arc<ProviderState>>,
    cluster: String,
    empty_grace: Duration,
    /// The time since which there is no destination, while that is ignored.
    empty_since: Option<Instant>,
    /// The nodes that were returned last.
    last: Option<Vec<Node>>,
}

impl ClusterNodes {
    /// Creates a source of the nodes of the provider's cluster with this id.
    pub fn new(provider: &dyn ConfigProvider, cluster: impl Into<String>) -> Self {
        Self {
            states: provider.subscribe(),
            cluster: cluster.into(),
            empty_grace: EMPTY_GRACE,
            empty_since: None,
            last: None,
        }
    }

    /// Returns the nodes of a cluster in a configuration. `None` if it has no such cluster.
    pub fn of(config: &ProxyConfig, cluster: &str) -> Option<Vec<Node>> {
        // Ids are compared ignoring case, as everywhere in a configuration.
        let mut clusters = config.clusters.iter();
        let (_, found) = clusters.find(|(id, _)| id.as_str().eq_ignore_ascii_case(cluster))?;
        Some(nodes_of(cluster, found))
    }

    /// Sets how long the cluster must be without destinations before the list of nodes becomes empty. Default: 60
    /// s, as long as a Kubernetes node that is not ready stays a member.
    #[must_use]
    pub fn empty_grace(mut self, grace: Duration) -> Self {
        self.empty_grace = grace;
        self
    }

    fn tell(&mut self, nodes: Vec<Node>) -> Vec<Node> {
        self.empty_since = None;
        self.last = Some(nodes.clone());
        nodes
    }

    fn current(&mut self) -> Option<Vec<Node>> {
        let state = self.states.borrow_and_update();
        Self::of(state.config.as_ref()?, &self.cluster)
    }
}

#[async_trait]
impl Source<Node> for ClusterNodes {
    async fn next(&mut self) -> Result<Vec<Node>, SourceError> {
        loop {
            let mut until = None;
            match self.current() {
                Some(nodes) if self.last.as_ref() == Some(&nodes) => self.empty_since = None,
                Some(nodes) if nodes.is_empty() => {
                    let now = Instant::now();
                    let since = *self.empty_since.get_or_insert(now);
                    if now.duration_since(since) >= self.empty_grace {
                        return Ok(self.tell(nodes));
                    }
                    until = since.checked_add(self.empty_grace);
                }
                Some(nodes) => return Ok(self.tell(nodes)),
                None => self.empty_since = None,
            }
            let changed = match until {
                Some(at) => match timeout_at(at, self.states.changed()).await {
                    Ok(changed) => changed,
                    Err(_) => continue,
                },
                None => self.states.changed().await,
            };
            if changed.is_err() {
                // The provider has gone, and its last state stays in force.
                return std::future::pending().await;
            }
        }
    }
}

fn nodes_of(cluster: &str, config: &ClusterConfig) -> Vec<Node> {
    let mut nodes = BTreeMap::new();
    for (id, destination) in &config.destinations {
        let url = Url::parse(&destination.address).ok();
        let address = url
            .as_ref()
            .and_then(Url::host)
            .and_then(|host| match host {
                Host::Ipv4(address) => Some(IpAddr::V4(address)),
                Host::Ipv6(address) => Some(IpAddr::V6(address)),
                Host::Domain(_) => None,
            });
        let Some(address) = address else {
            tracing::warn!(
                %cluster,
                destination = id.as_str(),
                address = destination.address,
                "a destination takes no part in the pool: its host is no address"
            );
            continue;
        };
        let name = format!("node-{}", address.to_string().replace(['.', ':'], "-"));
        let node = Node {
            own_address_only: true,
            ..Node::new(name, address)
        };
        nodes.insert(address, node);
    }
    nodes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use discovery_core::{ConfigProvider, ProviderState};
    use proxy_model::config::ProxyConfig;
    use serde_json::json;
    use tokio::sync::watch;

    use super::ClusterNodes;
    use crate::sources::Source;

    struct Pushed(watch::Sender<Arc<ProviderState>>);

    impl Pushed {
        fn new() -> Self {
            Self(watch::Sender::new(Arc::new(ProviderState::waiting())))
        }

        fn push(&self, cluster: &str, addresses: &[&str]) {
            let destinations: serde_json::Map<_, _> = addresses
                .iter()
                .enumerate()
                .map(|(index, address)| (index.to_string(), json!({ "Address": address })))
                .collect();
            let config: ProxyConfig = serde_json::from_value(
                json!({"Clusters": {cluster: {"Destinations": destinations}}}),
            )
            .expect("a configuration");
            self.0
                .send_replace(Arc::new(ProviderState::serving(config)));
        }
    }

    impl ConfigProvider for Pushed {
        fn name(&self) -> &str {
            "pushed"
        }

        fn subscribe(&self) -> watch::Receiver<Arc<ProviderState>> {
            self.0.subscribe()
        }
    }

    async fn names(source: &mut ClusterNodes) -> Vec<String> {
        let nodes = source.next().await.expect("it never fails");
        nodes.into_iter().map(|node| node.name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn destinations_are_nodes_once_each() {
        let provider = Pushed::new();
        let mut source = ClusterNodes::new(&provider, "Proxy");
        provider.push(
            "proxy",
            &[
                "http://10.0.0.2:80",
                "http://10.0.0.1:80/x",
                "https://10.0.0.1",
                "http://name",
                "no url",
            ],
        );
        assert_eq!(names(&mut source).await, ["node-10-0-0-1", "node-10-0-0-2"]);
        // Neither an equal configuration nor one without the cluster is a change.
        provider.push("proxy", &["http://10.0.0.1", "http://10.0.0.2"]);
        provider.push("other", &["http://10.0.0.3"]);
        let wait = tokio::time::timeout(Duration::from_secs(60), source.next());
        assert!(wait.await.is_err());
        provider.push("proxy", &[]);
        assert!(names(&mut source).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_is_empty_at_once_is_believed_after_a_while() {
        let provider = Pushed::new();
        let grace = Duration::from_secs(30);
        let mut source = ClusterNodes::new(&provider, "proxy").empty_grace(grace);
        provider.push("proxy", &["http://10.0.0.1"]);
        assert!(source.next().await.expect("nodes")[0].own_address_only);
        // An empty cluster is no change for a moment, even if a call was dropped meanwhile.
        provider.push("proxy", &[]);
        let moment = tokio::time::timeout(grace / 2, source.next());
        assert!(moment.await.is_err());
        provider.push("proxy", &["http://10.0.0.1"]);
        assert!(
            tokio::time::timeout(grace * 2, source.next())
                .await
                .is_err()
        );
        // The cluster stays empty. The time counts from the first empty state, not from the last.
        provider.push("proxy", &[]);
        let began = tokio::time::Instant::now();
        let moment = tokio::time::timeout(grace / 2, source.next());
        assert!(moment.await.is_err());
        provider.push("proxy", &["http://name"]);
        assert!(names(&mut source).await.is_empty());
        assert_eq!(began.elapsed(), grace);
        provider.push("proxy", &["http://10.0.0.2"]);
        assert_eq!(names(&mut source).await, ["node-10-0-0-2"]);
        assert_eq!(began.elapsed(), grace);
        // Also for the first state, since a pool may have earlier members.
        let empty = Pushed::new();
        empty.push("proxy", &[]);
        let mut source = ClusterNodes::new(&empty, "proxy").empty_grace(grace);
        assert!(names(&mut source).await.is_empty());
        assert_eq!(began.elapsed(), grace * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_has_gone_leaves_its_last_state() {
        let provider = Pushed::new();
        let mut source = ClusterNodes::new(&provider, "proxy");
        provider.push("proxy", &["http://10.0.0.1"]);
        assert_eq!(names(&mut source).await.len(), 1);
        drop(provider);
        let wait = tokio::time::timeout(Duration::from_secs(60), source.next());
        assert!(wait.await.is_err());
    }
}
