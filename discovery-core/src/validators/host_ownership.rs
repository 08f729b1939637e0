//! The services that may have routes with a host.

use async_trait::async_trait;
use proxy_model::matching::{HostError, HostPattern};
use proxy_model::{Problem, Problems, RouteId, pointer_to};

use crate::validator::{Candidate, ConfigValidator, Scope};

/// Rejects services whose routes take requests to hosts that belong to others.
///
/// A host without an owner is free. A route without a host takes requests to all hosts, and so does not go with any
/// host that belongs to another service. Of several patterns the most specific one decides. Ports do not count.
///
/// Only services of a [`Runner`](crate::Runner) have an owner: the merged configuration is not checked.
///
/// ```
/// use discovery_core::validators::HostOwnership;
///
/// let validator = HostOwnership::default()
///     .owned_by("*.example.com", "consul", "platform-*")?
///     .owned_by("shop.example.com", "service-fabric", "fabric:/Shop/Web")?;
/// # drop(validator);
/// # Ok::<(), proxy_model::matching::HostError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostOwnership {
    owners: Vec<Owner>,
}

#[derive(Clone, Debug)]
struct Owner {
    /// In ASCII form, without a port.
    host: String,
    source: String,
    service: String,
}

/// The host that stands for all.
const EVERY_HOST: &str = "*";

impl HostOwnership {
    /// Gives a host, `*.example.com` or `*` to a service of a source; `*` at the end of the service's name stands for
    /// any text. A host may have several owners.
    ///
    /// # Errors
    ///
    /// Returns the mistake in the host.
    pub fn owned_by(mut self, host: &str, source: &str, service: &str) -> Result<Self, HostError> {
        self.owners.push(Owner {
            host: name(&HostPattern::parse(host)?),
            source: source.to_owned(),
            service: service.to_owned(),
        });
        Ok(self)
    }

    /// The owned host that a service may not have a route for, if there is one.
    fn others_host(&self, host: &str, source: &str, service: &str) -> Option<&str> {
        let is_owned = |owned: &str| {
            let mut owners = self.owners.iter().filter(|owner| owner.host == owned);
            owners.any(|owner| owner.source == source && owner.is_service(service))
        };
        let hosts = || self.owners.iter().map(|owner| owner.host.as_str());
        let above = hosts().filter(|owned| covers(owned, host));
        // The longest pattern is the most specific one.
        let above = above.max_by_key(|owned| owned.len());
        // A wildcard takes requests to the hosts below it, too.
        let below = hosts().filter(|owned| covers(host, owned));
        let mut concerned = above.into_iter().chain(below);
        concerned.find(|owned| !is_owned(owned))
    }
}

impl Owner {
    fn is_service(&self, name: &str) -> bool {
        match self.service.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.service,
        }
    }
}

/// The name of a pattern without its port.
fn name(pattern: &HostPattern) -> String {
    let ascii = pattern.to_ascii();
    let port = pattern
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    ascii.strip_suffix(&port).unwrap_or(&ascii).to_owned()
}

/// True if all hosts of one pattern are hosts of the other, wider one.
fn covers(wide: &str, narrow: &str) -> bool {
    if wide == EVERY_HOST || wide == narrow {
        return true;
    }
    let Some(suffix) = wide.strip_prefix('*') else {
        return false;
    };
    // `.example.com` ends both `a.example.com` and `*.a.example.com`.
    narrow.len() > suffix.len() && narrow.ends_with(suffix) && narrow != EVERY_HOST
}

fn not_owned(id: &RouteId, below: &str, host: &str, owned: &str) -> Problem {
    let place = pointer_to("/Routes", id.as_str());
    let message = match host {
        EVERY_HOST => {
            format!(
                "the route takes requests to all hosts, and `{owned}` belongs to other services"
            )
        }
        _ => format!("`{host}` belongs to other services, as `{owned}` does"),
    };
    Problem::error(format!("{place}/Match/{below}"), "host_not_owned", message)
        .with_suggestion("name hosts of the service itself")
}

#[async_trait]
impl ConfigValidator for HostOwnership {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let mut problems = Problems::new();
        let Scope::Service { source, service } = candidate.scope else {
            return problems;
        };
        for (id, route) in &candidate.config.routes {
            let hosts = route.r#match.hosts.as_deref().unwrap_or_default();
            if hosts.is_empty() {
                let owned = self.others_host(EVERY_HOST, source, service);
                problems.extend(owned.map(|owned| not_owned(id, "Hosts", EVERY_HOST, owned)));
            }
            for (position, host) in hosts.iter().enumerate() {
                // A host that is none has been rejected by the model.
                let Ok(pattern) = HostPattern::parse(host) else {
                    continue;
                };
                let host = name(&pattern);
                let owned = self.others_host(&host, source, service);
                let place = format!("Hosts/{position}");
                problems.extend(owned.map(|owned| not_owned(id, &place, &host, owned)));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use proxy_model::config::ProxyConfig;
    use serde_json::json;

    use super::*;

    async fn rejected(validator: &HostOwnership, service: (&str, &str), hosts: &[&str]) -> usize {
        let config = json!({ "Routes": { "r": { "Match": { "Path": "/", "Hosts": hosts } } } });
        let config: ProxyConfig = serde_json::from_value(config).unwrap();
        let candidate = Candidate::service(service.0, service.1, &config);
        let problems = validator.validate(&candidate).await;
        assert!(
            problems
                .iter()
                .all(|p| p.pointer.starts_with("/Routes/r/Match/Hosts"))
        );
        problems.error_count()
    }

    #[tokio::test]
    async fn the_owner_alone_has_routes_for_a_host() {
        let validator = HostOwnership::default()
            .owned_by("*.example", "consul", "platform-*")
            .unwrap()
            .owned_by("Shop.example:443", "fabric", "shop")
            .unwrap()
            .owned_by("shop.example", "fabric", "shop2")
            .unwrap();
        let (platform, shop, other) = (
            ("consul", "platform-web"),
            ("fabric", "shop"),
            ("fabric", "other"),
        );
        for (service, hosts, expected) in [
            (shop, &["shop.example", "SHOP.example:8443"][..], 0),
            (("fabric", "shop2"), &["shop.example"], 0),
            // A name counts with its source.
            (("serf", "shop"), &["shop.example"], 1),
            (other, &["shop.example"], 1),
            (other, &["a.example", "b.example"], 2),
            (other, &["free.test"], 0),
            (other, &["example"], 0),
            (shop, &["a.example"], 1),
            (platform, &["a.example", "*.a.example"], 0),
            // The more specific owner decides, and a wildcard takes its requests, too.
            (platform, &["shop.example"], 1),
            (platform, &["*.example"], 1),
            (other, &["*"], 1),
            (other, &["*:8080"], 1),
            (other, &[], 1),
        ] {
            assert_eq!(
                rejected(&validator, service, hosts).await,
                expected,
                "{service:?} {hosts:?}"
            );
        }
        let everything = HostOwnership::default()
            .owned_by("*", "file", "all")
            .unwrap();
        assert_eq!(rejected(&everything, ("file", "all"), &[]).await, 0);
        assert_eq!(rejected(&everything, other, &["free.test"]).await, 1);
        let nothing = HostOwnership::default();
        assert_eq!(rejected(&nothing, other, &[]).await, 0);
        assert!(nothing.owned_by("http://a", "s", "s").is_err());
    }

    /// A host and its owner may each be written in Unicode or in punycode.
    #[tokio::test]
    async fn a_host_has_one_owner_in_every_spelling() {
        let unicode = ["b\u{fc}cher.example", "*.b\u{fc}cher.example"];
        let punycode = ["xn--bcher-kva.example", "*.XN--BCHER-KVA.example"];
        for owned in [unicode, punycode] {
            let mut validator = HostOwnership::default();
            for host in owned {
                validator = validator.owned_by(host, "fabric", "books").unwrap();
            }
            for hosts in [unicode, punycode] {
                let of = |service| rejected(&validator, service, &hosts);
                assert_eq!(of(("fabric", "books")).await, 0, "{owned:?} {hosts:?}");
                assert_eq!(of(("fabric", "other")).await, 2, "{owned:?} {hosts:?}");
            }
        }
    }

    #[tokio::test]
    async fn the_merged_configuration_has_no_owner() {
        let validator = HostOwnership::default().owned_by("*", "s", "s").unwrap();
        let config = json!({ "Routes": { "r": { "Match": { "Path": "/" } } } });
        let config: ProxyConfig = serde_json::from_value(config).unwrap();
        assert!(
            validator
                .validate(&Candidate::merged(&config))
                .await
                .is_empty()
        );
    }
}
