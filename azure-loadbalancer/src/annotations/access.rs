//! Access: the clients that may connect to a service.

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv4Net};

use super::{AnnotationError, keys, text};
use crate::config::{Config, Edition};
use crate::service::Service;

/// The clients that may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The networks and service tags, grouped as one security rule can have them. Each group is sorted as
    /// texts.
    pub sources: Vec<Vec<String>>,
    /// True if the service's rules may be shared with other services.
    pub shared: bool,
    /// True if all other clients are denied before other rules of the security group apply.
    pub deny_others: bool,
}

/// The service tag of clients outside the virtual network.
const INTERNET: &str = "Internet";

/// The service tags of 2018. Those of storage and of databases also have regions.
const TAGS_OF_2018: [&str; 9] = [
    "VirtualNetwork",
    "VIRTUAL_NETWORK",
    "AzureLoadBalancer",
    "AZURE_LOADBALANCER",
    "Internet",
    "INTERNET",
    "AzureTrafficManager",
    "Storage",
    "Sql",
];

impl Access {
    pub(super) fn of(
        service: &Service,
        config: &Config,
        internal: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Self, AnnotationError> {
        match config.edition {
            Edition::Note => Self::as_in_2018(service, internal),
            Edition::Current => Self::aggregated(service, internal, warnings),
        }
    }

    fn as_in_2018(service: &Service, internal: bool) -> Result<Self, AnnotationError> {
        let tags = tags_of_2018(service)?;
        let mut networks = BTreeSet::new();
        for (key, text) in texts(service, &[keys::SOURCE_RANGES]) {
            networks.insert(network(text).map_err(|why| AnnotationError::new(key, text, why))?);
        }
        // Tags without any network mean the tags alone.
        let everybody = networks.is_empty() || networks.iter().any(is_everybody);
        let sources = if everybody && tags.is_empty() {
            BTreeSet::from_iter((!internal).then(|| INTERNET.to_owned()))
        } else {
            networks
                .iter()
                .map(Ipv4Net::to_string)
                .chain(tags)
                .collect()
        };
        Ok(Self {
            sources: sources.into_iter().map(|source| vec![source]).collect(),
            shared: text::is_true(service, keys::SHARED_RULE),
            deny_others: false,
        })
    }

    /// Reads the sources of the aggregated rules. A network that cannot be read is an error, so that the
    /// service keeps the rules that it has.
    fn aggregated(
        service: &Service,
        internal: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Self, AnnotationError> {
        let annotated = text::filled(service, keys::ALLOWED_IP_RANGES);
        if let (Some(value), false) = (annotated, service.source_ranges.is_empty()) {
            let why = "spec.loadBalancerSourceRanges is set as well: leave one of them out";
            return Err(AnnotationError::new(keys::ALLOWED_IP_RANGES, value, why));
        }
        let mut deny_others = text::is_true(service, keys::DENY_ALL_EXCEPT_RANGES);
        let mut networks = Vec::new();
        let mut any = false;
        for (key, text) in texts(service, &[keys::ALLOWED_IP_RANGES, keys::SOURCE_RANGES]) {
            any = true;
            match (network(text), text.trim().parse::<IpNet>()) {
                (Ok(network), _) => networks.push(network),
                (Err(_), Ok(_)) => {
                    warnings.push(format!(
                        "{key}: {text:?} is passed over: IPv6 is not supported"
                    ));
                }
                (Err(why), Err(_)) => return Err(AnnotationError::new(key, text, why)),
            }
        }
        let mut tags: BTreeSet<String> = text::raw(service, keys::ALLOWED_SERVICE_TAGS)
            .iter()
            .flat_map(|value| value.split(','))
            .map(|tag| tag.trim().to_owned())
            .filter(|tag| !tag.is_empty())
            .collect();
        // Every named source was ignored. Without the denial, the network's own rules would let in more than
        // that.
        deny_others |= any && networks.is_empty() && tags.is_empty();
        let everybody = networks.iter().any(is_everybody) && !internal;
        if everybody || (!any && tags.is_empty() && !internal) {
            tags.insert(INTERNET.to_owned());
        }
        let mut sources: Vec<Vec<String>> = tags.into_iter().map(|tag| vec![tag]).collect();
        if !networks.is_empty() && !everybody {
            let aggregated = Ipv4Net::aggregate(&networks);
            let texts: BTreeSet<_> = aggregated.iter().map(Ipv4Net::to_string).collect();
            sources.push(texts.into_iter().collect());
        }
        Ok(Self {
            sources,
            shared: true,
            deny_others,
        })
    }
}

/// Returns the networks as written, each with its place. The specification takes precedence.
fn texts<'a>(service: &'a Service, annotations: &[&'static str]) -> Vec<(&'static str, &'a str)> {
    if !service.source_ranges.is_empty() {
        let ranges = service.source_ranges.iter();
        return ranges
            .map(|text| ("spec.loadBalancerSourceRanges", text.as_str()))
            .collect();
    }
    annotations
        .iter()
        .filter_map(|key| Some((*key, text::filled(service, key)?)))
        .flat_map(|(key, value)| value.split(',').map(move |text| (key, text)))
        .filter(|(_, text)| !text.trim().is_empty())
        .collect()
}

fn network(text: &str) -> Result<Ipv4Net, &'static str> {
    text.trim()
        .parse::<Ipv4Net>()
        .map(|network| network.trunc())
        .map_err(|_| "write IPv4 networks, such as 10.0.0.0/8")
}

fn is_everybody(network: &Ipv4Net) -> bool {
    network.prefix_len() == 0
}

fn tags_of_2018(service: &Service) -> Result<Vec<String>, AnnotationError> {
    let Some(value) = text::raw(service, keys::ALLOWED_SERVICE_TAGS) else {
        return Ok(Vec::new());
    };
    value
        .trim()
        .split(',')
        .map(|tag| {
            let known = TAGS_OF_2018.contains(&tag)
                || tag.starts_with("Storage.")
                || tag.starts_with("Sql.");
            let why = || {
                format!(
                    "{tag:?} is none of {}, Storage.* and Sql.*; write no spaces after commas",
                    TAGS_OF_2018.join(", ")
                )
            };
            known
                .then(|| tag.to_owned())
                .ok_or_else(|| AnnotationError::new(keys::ALLOWED_SERVICE_TAGS, value, why()))
        })
        .collect()
}
