use serde::Serialize;

use super::application::{Parameter, parameters};
use crate::cluster::{Application, ApplicationUpgrade, UpgradeDomainState};
use crate::gateway::wire::{ClockStart, print_duration};
use crate::hosting::Timestamp;

/// `ApplicationUpgradeProgressInfo`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct UpgradeProgressInfo<'a> {
    name: &'a str,
    type_name: &'a str,
    target_application_type_version: &'a str,
    upgrade_domains: Vec<DomainInfo<'a>>,
    upgrade_state: &'static str,
    next_upgrade_domain: &'a str,
    rolling_upgrade_mode: &'static str,
    upgrade_description: UpgradeDescriptionInfo<'a>,
    upgrade_duration_in_milliseconds: String,
    upgrade_domain_duration_in_milliseconds: String,
    unhealthy_evaluations: [&'static str; 0],
    current_upgrade_domain_progress: CurrentDomainInfo<'a>,
    start_timestamp_utc: String,
    failure_timestamp_utc: String,
    failure_reason: &'static str,
    upgrade_status_details: &'a str,
    is_node_by_node: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct DomainInfo<'a> {
    name: &'a str,
    state: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct CurrentDomainInfo<'a> {
    domain_name: &'a str,
    node_upgrade_progress_list: [&'static str; 0],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct UpgradeDescriptionInfo<'a> {
    name: &'a str,
    target_application_type_version: &'a str,
    parameters: Vec<Parameter>,
    upgrade_kind: &'static str,
    rolling_upgrade_mode: &'static str,
    force_restart: bool,
}

impl<'a> UpgradeProgressInfo<'a> {
    pub(crate) fn new(
        application: &'a Application,
        upgrade: &'a ApplicationUpgrade,
        now: Timestamp,
        epoch: ClockStart,
    ) -> Self {
        let domain_in = |state: UpgradeDomainState| {
            upgrade
                .domains
                .iter()
                .find(|domain| domain.state == state)
                .map_or("", |domain| domain.name.as_str())
        };
        let lasted = upgrade.finished_at.unwrap_or(now).since(upgrade.started_at);
        let domain_lasted = upgrade
            .domain_finished_at
            .unwrap_or(now)
            .since(upgrade.domain_started_at);
        Self {
            name: application.name.as_str(),
            type_name: &application.type_name,
            target_application_type_version: &upgrade.to_version,
            upgrade_domains: upgrade
                .domains
                .iter()
                .map(|domain| DomainInfo {
                    name: &domain.name,
                    state: domain.state.as_str(),
                })
                .collect(),
            upgrade_state: upgrade.state.as_str(),
            next_upgrade_domain: domain_in(UpgradeDomainState::Pending),
            rolling_upgrade_mode: upgrade.mode.as_str(),
            upgrade_description: UpgradeDescriptionInfo {
                name: application.name.as_str(),
                target_application_type_version: &upgrade.to_version,
                parameters: parameters(&upgrade.to_parameters),
                upgrade_kind: "Rolling",
                rolling_upgrade_mode: upgrade.mode.as_str(),
                // Requests for it are rejected.
                force_restart: false,
            },
            upgrade_duration_in_milliseconds: print_duration(lasted),
            upgrade_domain_duration_in_milliseconds: print_duration(domain_lasted),
            // The health and replica queries return the unhealthy reports, and the progress of each node.
            unhealthy_evaluations: [],
            current_upgrade_domain_progress: CurrentDomainInfo {
                domain_name: domain_in(UpgradeDomainState::InProgress),
                node_upgrade_progress_list: [],
            },
            start_timestamp_utc: epoch.date(upgrade.started_at),
            failure_timestamp_utc: epoch.date_or_never(upgrade.failed_at),
            failure_reason: upgrade.failure_reason.as_str(),
            upgrade_status_details: &upgrade.failure,
            is_node_by_node: false,
        }
    }
}
