use serde::Serialize;

use crate::health::{EntityHealth, EntityKind};

/// `HealthStatistics`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StatisticsInfo {
    health_state_count_list: Vec<KindCount>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct KindCount {
    entity_kind: &'static str,
    health_state_count: StateCount,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct StateCount {
    ok_count: u64,
    warning_count: u64,
    error_count: u64,
}

impl StatisticsInfo {
    /// Creates the counts of all kinds of entities below this one. `None` if there are no such kinds.
    pub(super) fn new(health: &EntityHealth) -> Option<Self> {
        let kinds: &[EntityKind] = match health.entity.kind() {
            EntityKind::Cluster => &[
                EntityKind::Node,
                EntityKind::Replica,
                EntityKind::Partition,
                EntityKind::Service,
                EntityKind::DeployedServicePackage,
                EntityKind::DeployedApplication,
                EntityKind::Application,
            ],
            EntityKind::Application => &[
                EntityKind::Replica,
                EntityKind::Partition,
                EntityKind::Service,
                EntityKind::DeployedServicePackage,
                EntityKind::DeployedApplication,
            ],
            EntityKind::Service => &[EntityKind::Replica, EntityKind::Partition],
            EntityKind::Partition => &[EntityKind::Replica],
            EntityKind::DeployedApplication => &[EntityKind::DeployedServicePackage],
            EntityKind::Node | EntityKind::Replica | EntityKind::DeployedServicePackage => {
                return None;
            }
        };
        let health_state_count_list = kinds
            .iter()
            .map(|kind| {
                let counts = health.statistics.of(*kind);
                KindCount {
                    entity_kind: kind.as_str(),
                    health_state_count: StateCount {
                        ok_count: counts.ok,
                        warning_count: counts.warning,
                        error_count: counts.error,
                    },
                }
            })
            .collect();
        Some(Self {
            health_state_count_list,
        })
    }
}
