//! Clusters and their destinations.

use proxy_model::config::{
    ActiveHealthCheckConfig, ClusterConfig, DestinationConfig, HealthCheckConfig, Metadata,
};
use proxy_model::{DestinationId, Problem, Problems};

use super::options::DEFAULT_HEALTH_PATH;
use super::{GenerateOptions, WeightStrategy};
use crate::catalog::ServiceInstance;

/// The most destinations that copies may bring a cluster to.
const MOST_COPIES: usize = 1_000;

/// The settings that all clusters share.
pub(super) struct ClusterPlan<'o> {
    options: &'o GenerateOptions,
    /// The path of probes for instances that name none.
    health_path: String,
}

impl<'o> ClusterPlan<'o> {
    pub(super) fn new(options: &'o GenerateOptions) -> Self {
        let path = options.health.checked_path();
        Self {
            options,
            health_path: path.unwrap_or_else(|| DEFAULT_HEALTH_PATH.to_owned()),
        }
    }

    /// A cluster of these instances, in their order.
    pub(super) fn cluster<'i>(
        &self,
        instances: impl IntoIterator<Item = &'i ServiceInstance>,
        said: &mut Problems,
    ) -> ClusterConfig {
        let instances: Vec<_> = instances.into_iter().collect();
        let first = instances.first();
        let path = first.map_or(&*self.health_path, |first| self.path_of(first));
        let destinations = match self.options.weights {
            WeightStrategy::Weighted => {
                let weighted = instances.iter().map(|instance| {
                    let id = DestinationId::from(instance.key.as_str());
                    (id, self.destination(instance, instance.weight, path))
                });
                weighted.collect()
            }
            WeightStrategy::Duplicate => {
                let copies = copies(&instances, said);
                let copied = instances.iter().zip(copies).flat_map(|(instance, copies)| {
                    let weight = instance.weight.min(1);
                    (0..copies).map(move |copy| {
                        let id = DestinationId::from(format!("{}#{copy}", instance.key));
                        (id, self.destination(instance, weight, path))
                    })
                });
                copied.collect()
            }
        };
        ClusterConfig {
            load_balancing_policy: Some(self.options.load_balancing_policy.clone()),
            health_check: self.health_check(path).map(Box::new),
            destinations,
            ..ClusterConfig::default()
        }
    }

    fn health_check(&self, path: &str) -> Option<HealthCheckConfig> {
        let health = &self.options.health;
        health.enabled.then(|| HealthCheckConfig {
            active: Some(ActiveHealthCheckConfig {
                enabled: Some(true),
                interval: Some(health.interval.into()),
                timeout: Some(health.timeout.into()),
                path: Some(path.to_owned()),
                ..ActiveHealthCheckConfig::default()
            }),
            ..HealthCheckConfig::default()
        })
    }

    fn path_of<'i>(&'i self, instance: &'i ServiceInstance) -> &'i str {
        instance.health_path.as_deref().unwrap_or(&self.health_path)
    }

    /// An instance in a cluster that probes `cluster_path`.
    fn destination(
        &self,
        instance: &ServiceInstance,
        weight: u32,
        cluster_path: &str,
    ) -> DestinationConfig {
        let path = self.path_of(instance);
        let own_path = self.options.health.enabled && path != cluster_path;
        let mut metadata = Metadata::from([("Weight".to_owned(), instance.weight.to_string())]);
        if self.options.informational_tags {
            let tags = [("Version", &instance.version), ("Region", &instance.region)];
            for (key, value) in tags {
                if let Some(value) = value {
                    metadata.insert(key.to_owned(), value.clone());
                }
            }
        }
        DestinationConfig {
            address: instance.address(),
            health_path: own_path.then(|| path.to_owned()),
            weight: Some(weight),
            metadata: Some(metadata),
            ..DestinationConfig::default()
        }
    }
}

/// Returns the number of copies of each instance, in proportion to the weights.
fn copies(instances: &[&ServiceInstance], said: &mut Problems) -> Vec<u32> {
    let weight = |instance: &&ServiceInstance| instance.weight.max(1);
    let wanted: u64 = instances.iter().map(|i| u64::from(weight(i))).sum();
    let most = MOST_COPIES.max(instances.len()) as u64;
    if wanted <= most {
        return instances.iter().map(weight).collect();
    }
    let message = format!(
        "the weights would make {wanted} destinations of {} instances; there are at most about {most}, in about the \
         same proportion",
        instances.len(),
    );
    said.push(Problem::warning("", "too_many_copies", message));
    let scaled = |instance: &&ServiceInstance| {
        let scaled = u64::from(weight(instance)) * most / wanted;
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    };
    instances.iter().map(scaled).collect()
}
