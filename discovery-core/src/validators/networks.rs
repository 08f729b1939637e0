//! The networks in which destinations may be.

use std::net::IpAddr;

use async_trait::async_trait;
use ipnet::IpNet;
use proxy_model::{Problem, Problems, pointer_to};

use crate::validator::{Candidate, ConfigValidator};

/// Rejects services with destinations outside of some networks, so that a registered service opens no way to other
/// machines through the proxy.
///
/// Checked are `Address` and `Health` of destinations, and the address of a `WebProxy`. A name is rejected, since it
/// may stand for any address later.
///
/// ```
/// use discovery_core::validators::AllowedNetworks;
///
/// let validator = AllowedNetworks::parse(["10.0.0.0/8", "192.0.2.7", "fd00::/8"])?;
/// # drop(validator);
/// # Ok::<(), proxy_model::Problems>(())
/// ```
#[derive(Clone, Debug)]
pub struct AllowedNetworks(Vec<IpNet>);

impl AllowedNetworks {
    /// Creates the validator from networks and addresses.
    ///
    /// # Errors
    ///
    /// Returns a problem for each text that is neither, with its position as the pointer.
    pub fn parse<'a>(networks: impl IntoIterator<Item = &'a str>) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        let mut parsed = Vec::new();
        for (position, text) in networks.into_iter().enumerate() {
            let address = || text.parse::<IpAddr>().map(IpNet::from).ok();
            match text.parse::<IpNet>().ok().or_else(address) {
                Some(network) => parsed.push(network),
                None => problems.push(
                    Problem::error(
                        format!("/{position}"),
                        "invalid_network",
                        format!("`{text}` is not a network"),
                    )
                    .with_suggestion("write `10.0.0.0/8`, `fd00::/8` or an address"),
                ),
            }
        }
        match problems.is_empty() {
            true => Ok(Self(parsed)),
            false => Err(problems),
        }
    }

    fn check(&self, url: &str, pointer: String, problems: &mut Problems) {
        let Some(address) = address_of(url) else {
            let message = format!("`{url}` does not name an IP address, so its network is unknown");
            problems.push(Problem::error(pointer, "address_not_allowed", message));
            return;
        };
        if !self.0.iter().any(|network| network.contains(&address)) {
            let message = format!("{address} is in none of the allowed networks");
            problems.push(Problem::error(pointer, "address_not_allowed", message));
        }
    }
}

/// The IP address in a URL. `None` for everything else that a URL may have there, such as a name or a user.
fn address_of(url: &str) -> Option<IpAddr> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => authority.split(':').next()?,
    };
    // An IPv4 address in IPv6 is reached as the former.
    host.parse::<IpAddr>().ok().map(|it| it.to_canonical())
}

#[async_trait]
impl ConfigValidator for AllowedNetworks {
    async fn validate(&self, candidate: &Candidate<'_>) -> Problems {
        let mut problems = Problems::new();
        for (id, cluster) in &candidate.config.clusters {
            let place = pointer_to("/Clusters", id.as_str());
            for (id, destination) in &cluster.destinations {
                let place = pointer_to(&format!("{place}/Destinations"), id.as_str());
                self.check(
                    &destination.address,
                    format!("{place}/Address"),
                    &mut problems,
                );
                // Empty counts as unset.
                if let Some(health) = destination.health.as_ref().filter(|it| !it.is_empty()) {
                    self.check(health, format!("{place}/Health"), &mut problems);
                }
            }
            let client = cluster.http_client.as_ref();
            let proxy = client.and_then(|client| client.web_proxy.as_ref()?.address.as_ref());
            if let Some(proxy) = proxy.filter(|it| !it.is_empty()) {
                let place = format!("{place}/HttpClient/WebProxy/Address");
                self.check(proxy, place, &mut problems);
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

    #[test]
    fn networks_are_parsed_or_named() {
        let problems =
            AllowedNetworks::parse(["10.0.0.0/8", "x", "::1", "10.0.0.0/33"]).unwrap_err();
        let found: Vec<_> = problems.iter().map(|p| &*p.pointer).collect();
        assert_eq!(found, ["/1", "/3"]);
    }

    #[tokio::test]
    async fn destinations_are_inside() {
        let validator = AllowedNetworks::parse(["10.0.0.0/8", "fd00::/8"]).unwrap();
        let place = "/Clusters/c/Destinations/d";
        for (destination, client, expected) in [
            (
                json!({ "Address": "http://10.1.2.3:80/x" }),
                json!({}),
                &[][..],
            ),
            (
                json!({ "Address": "HTTPS://[fd00::1]:8443" }),
                json!({}),
                &[],
            ),
            (
                json!({ "Address": "http://[::ffff:10.0.0.1]" }),
                json!({}),
                &[],
            ),
            (
                json!({ "Address": "http://10.1.2.3", "Health": "" }),
                json!({}),
                &[],
            ),
            (
                json!({ "Address": "http://11.0.0.1/" }),
                json!({}),
                &["Address"],
            ),
            (
                json!({ "Address": "http://[::ffff:11.0.0.1]/" }),
                json!({}),
                &["Address"],
            ),
            (
                json!({ "Address": "http://10.0.0.1@11.0.0.1/" }),
                json!({}),
                &["Address"],
            ),
            (
                json!({ "Address": "http://11.0.0.1/10.0.0.1" }),
                json!({}),
                &["Address"],
            ),
            (
                json!({ "Address": "http://10.0.0.1.example/" }),
                json!({}),
                &["Address"],
            ),
            (
                json!({ "Address": "http://orders.example/" }),
                json!({}),
                &["Address"],
            ),
            (
                json!({ "Address": "http://10.0.0.1/", "Health": "http://11.0.0.1/" }),
                json!({}),
                &["Health"],
            ),
            (
                json!({ "Address": "http://10.0.0.1/" }),
                json!({ "WebProxy": { "Address": "http://11.0.0.1:3128/" } }),
                &["/Clusters/c/HttpClient/WebProxy/Address"],
            ),
        ] {
            let config = json!({ "Clusters": { "c": {
                "HttpClient": client, "Destinations": { "d": destination } } } });
            let config: ProxyConfig = serde_json::from_value(config.clone()).unwrap();
            let candidate = Candidate::service("source", "service", &config);
            let problems = validator.validate(&candidate).await;
            let found: Vec<_> = problems.errors().map(|p| p.pointer.clone()).collect();
            let expected = expected.iter().map(|key| match key.starts_with('/') {
                true => (*key).to_owned(),
                false => format!("{place}/{key}"),
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "{config:?}");
        }
    }
}
