//! Lists of the section: agents, services and networks.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use proxy_model::json::ObjectReader;
use proxy_model::{Problem, pointer_to};

use crate::options::agent_address;

pub(super) fn read_agents(section: &mut ObjectReader<'_, '_>) -> Option<Vec<String>> {
    const KEY: &str = "Agents";
    let texts = section.texts(KEY)?;
    if texts.is_empty() {
        let problem = Problem::error(
            section.pointer_to(KEY),
            "no_agents",
            "there is no agent to poll",
        );
        let suggestion = "remove `Agents` to use the one on this machine";
        section.problems().push(problem.with_suggestion(suggestion));
        return None;
    }
    let mut agents: Vec<String> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let pointer = pointer_to(&section.pointer_to(KEY), &index.to_string());
        match agent_address(text) {
            Ok(agent) if agents.contains(&agent) => {
                let message = format!("`{agent}` is in the list already");
                let problem = Problem::warning(pointer, "duplicate_agent", message);
                section.problems().push(problem);
            }
            Ok(agent) => agents.push(agent),
            Err(error) => {
                let problem = Problem::error(pointer, "invalid_address", error.to_string());
                section
                    .problems()
                    .push(problem.with_suggestion(error.suggestion()));
            }
        }
    }
    (!agents.is_empty()).then_some(agents)
}

pub(super) fn read_services(section: &mut ObjectReader<'_, '_>) -> Option<BTreeSet<String>> {
    const KEY: &str = "AllowedServices";
    let texts = section.texts(KEY)?;
    if texts.is_empty() {
        nothing_allowed(section, KEY, "no service is allowed");
        return None;
    }
    let mut services = BTreeSet::new();
    for (index, text) in texts.iter().enumerate() {
        let name = text.trim();
        if name.is_empty() {
            let pointer = pointer_to(&section.pointer_to(KEY), &index.to_string());
            let problem = Problem::error(pointer, "empty_name", "no service has an empty name");
            section.problems().push(problem);
        } else {
            services.insert(name.to_owned());
        }
    }
    Some(services)
}

pub(super) fn read_networks(section: &mut ObjectReader<'_, '_>) -> Option<Vec<IpNet>> {
    const KEY: &str = "AllowedNetworks";
    let texts = section.texts(KEY)?;
    if texts.is_empty() {
        nothing_allowed(section, KEY, "no network is allowed");
        return None;
    }
    let mut networks = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let text = text.trim();
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        match text.parse::<IpNet>().or_else(|_| address()) {
            Ok(network) => networks.push(network.trunc()),
            Err(_) => {
                let pointer = pointer_to(&section.pointer_to(KEY), &index.to_string());
                let message = format!("`{text}` is no network");
                let problem = Problem::error(pointer, "invalid_network", message);
                let suggestion = "write `10.0.0.0/8`, `fd00::/8` or one address";
                section.problems().push(problem.with_suggestion(suggestion));
            }
        }
    }
    Some(networks)
}

fn nothing_allowed(section: &mut ObjectReader<'_, '_>, key: &str, message: &str) {
    let problem = Problem::error(section.pointer_to(key), "nothing_allowed", message);
    let suggestion = format!("remove `{key}` to allow all");
    section.problems().push(problem.with_suggestion(suggestion));
}
