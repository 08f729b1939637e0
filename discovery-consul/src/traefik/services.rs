//! Services of Traefik in the labels of one Consul service. One of them becomes the cluster.

use std::collections::BTreeMap;

use discovery_core::Labels;
use discovery_core::text::shortened;

use super::PREFIX;

/// The port, the scheme and the weight of an instance, if its tags override its registration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) port: Option<u16>,
    pub(crate) scheme: Option<String>,
    pub(crate) weight: Option<u32>,
}

/// Returns the settings of an instance with these tags as a server of `service`.
///
/// # Errors
///
/// Returns the reason why the text cannot be one.
pub(crate) fn server_of<'t>(
    tags: impl Iterator<Item = (&'t str, &'t str)>,
    service: Option<&str>,
) -> Result<Server, String> {
    let mut server = Server::default();
    for (key, value) in tags {
        let folded = key.to_ascii_lowercase();
        let Some(("http", name, setting)) = in_services(&folded) else {
            continue;
        };
        if service != Some(name) {
            continue;
        }
        let value = value.trim();
        let wrong = || format!("`{}` is no value of `{key}`", shortened(value, 40));
        match setting {
            "loadbalancer.server.port" => {
                let port = value.parse().ok().filter(|port| *port != 0);
                server.port = Some(port.ok_or_else(wrong)?);
            }
            "loadbalancer.server.scheme" => server.scheme = Some(value.to_owned()),
            "loadbalancer.server.weight" => {
                server.weight = Some(value.parse().map_err(|_| wrong())?);
            }
            _ => {}
        }
    }
    Ok(server)
}

/// `traefik.http.services.<s>.<setting>` as protocol, name and setting.
fn in_services(key: &str) -> Option<(&str, &str, &str)> {
    let (protocol, rest) = key.strip_prefix(PREFIX)?.split_once('.')?;
    let (name, setting) = rest.strip_prefix("services.")?.split_once('.')?;
    Some((protocol, name, setting))
}

/// The settings of one service of Traefik: the key as written and the value, by folded setting.
#[derive(Debug, Default, Clone)]
pub(super) struct TraefikService(BTreeMap<String, (String, String)>);

impl PartialEq for TraefikService {
    /// Returns true if the services are the same cluster.
    fn eq(&self, other: &Self) -> bool {
        let values = |service: &Self| -> Vec<(String, String)> {
            let settings = service.0.iter();
            settings
                .map(|(setting, (_, value))| (setting.clone(), value.clone()))
                .collect()
        };
        values(self) == values(other)
    }
}

impl TraefikService {
    pub(super) fn add(&mut self, key: &str, setting: &str, value: &str) {
        let tag = (key.to_owned(), value.trim().to_owned());
        self.0.insert(setting.to_owned(), tag);
    }

    /// Returns true if the service consists of servers, and not of other services.
    pub(super) fn has_servers(&self) -> bool {
        let mut settings = self.0.keys();
        settings.all(|setting| setting == "loadbalancer" || setting.starts_with("loadbalancer."))
    }

    /// Returns true if the host of requests is kept.
    pub(super) fn keeps_host(&self) -> bool {
        let said = self.0.get("loadbalancer.passhostheader");
        said.is_none_or(|(_, value)| !value.eq_ignore_ascii_case("false"))
    }

    /// Adds the labels of the service to `labels`, and returns the keys of tags that have no effect.
    pub(super) fn labels(&self, labels: &mut Labels) -> Vec<&str> {
        let mut ignored = Vec::new();
        for (setting, (key, value)) in &self.0 {
            let mut set = |label: &str, value: &str| {
                labels.insert(format!("cluster.{label}"), value.to_owned());
            };
            match setting.as_str() {
                // Of each instance, or of routes.
                "loadbalancer.server.port"
                | "loadbalancer.server.scheme"
                | "loadbalancer.server.weight"
                | "loadbalancer.passhostheader" => {}
                "loadbalancer.healthcheck.path" => {
                    set("healthCheck.active.enabled", "true");
                    set("healthCheck.active.path", value);
                }
                "loadbalancer.healthcheck.interval" => set("healthCheck.active.interval", value),
                "loadbalancer.healthcheck.timeout" => set("healthCheck.active.timeout", value),
                "loadbalancer.sticky" | "loadbalancer.sticky.cookie" => {
                    set("sessionAffinity.enabled", value);
                    let name = labels.entry("cluster.sessionAffinity.affinityKeyName".to_owned());
                    name.or_insert_with(|| "_sticky".to_owned());
                }
                setting if setting.starts_with("loadbalancer.sticky.cookie.") => {
                    // Each of its keys makes the cookie, unless a shorter one says otherwise.
                    let enabled = "cluster.sessionAffinity.enabled".to_owned();
                    labels.entry(enabled).or_insert_with(|| "true".to_owned());
                    let name = "cluster.sessionAffinity.affinityKeyName".to_owned();
                    if setting == "loadbalancer.sticky.cookie.name" {
                        labels.insert(name, value.clone());
                    } else {
                        labels.entry(name).or_insert_with(|| "_sticky".to_owned());
                        ignored.push(key.as_str());
                    }
                }
                _ => ignored.push(key.as_str()),
            }
        }
        ignored
    }
}
