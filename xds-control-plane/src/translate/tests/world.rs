//! A short form for the sources' data, and for the translated resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::core::v3::address::Address as AnyAddress;
use xds_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use xds_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use xds_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LbEndpoint};
use xds_types::pb::envoy::config::route::v3::header_matcher::HeaderMatchSpecifier;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::{Route, VirtualHost};
use xds_types::pb::envoy::r#type::matcher::v3::string_matcher::MatchPattern;

use crate::assemble::{ResourceOptions, assemble};
use crate::sources::{parse_registry, parse_static};
use crate::translate::{
    Catalog, CatalogService, Defaults, Instance, Known, TranslateOptions, Translation, Translator,
};

pub(super) const SUFFIX: &str = "vrts-slb.test.vertis.yandex.net";

/// The sources' data.
pub(super) struct World {
    pub(super) known: Known,
    pub(super) options: TranslateOptions,
}

impl World {
    pub(super) fn new() -> Self {
        let options = TranslateOptions {
            domain_suffix: SUFFIX.into(),
            ..TranslateOptions::default()
        };
        let catalog = Catalog {
            own: "sas".into(),
            ..Catalog::default()
        };
        let known = Known {
            catalog: Arc::new(catalog),
            ..Known::default()
        };
        Self { known, options }
    }

    /// Adds a registry: a list of services.
    pub(super) fn registry(mut self, services: &str) -> Self {
        let parsed = parse_registry(&format!("services: {services}")).unwrap();
        assert_eq!((&parsed.problems[..], parsed.bad.len()), (&[][..], 0));
        self.known.registry = parsed.services.into_iter().map(Arc::new).collect();
        self
    }

    pub(super) fn fixed(mut self, text: &str) -> Self {
        self.known.fixed = Arc::new(parse_static(text).unwrap());
        self
    }

    pub(super) fn settings(mut self, json: &str) -> Self {
        self.known.defaults = Arc::new(Defaults::from_json(json.as_bytes()).unwrap().0);
        self
    }

    /// Adds a live instance: `a-http@sas=10.0.0.1:80`, its id if that is not the address, and tags.
    pub(super) fn live(self, instance: &str, tags: &[&str]) -> Self {
        self.instance(instance, tags, true)
    }

    pub(super) fn dead(self, instance: &str, tags: &[&str]) -> Self {
        self.instance(instance, tags, false)
    }

    fn instance(mut self, instance: &str, tags: &[&str], is_live: bool) -> Self {
        let (name, rest) = instance.split_once('@').unwrap();
        let (datacenter, address) = rest.split_once('=').unwrap();
        let (address, port) = address.rsplit_once(':').unwrap();
        let catalog = Arc::make_mut(&mut self.known.catalog);
        let service = catalog.services.entry(name.into()).or_default();
        let service: &mut CatalogService = Arc::make_mut(service);
        let instances = service
            .datacenters
            .entry(datacenter.into())
            .or_insert_with(|| Arc::from([]));
        let mut all = instances.to_vec();
        all.push(Instance {
            node: format!("node-{}", all.len()).into(),
            id: format!("{name}-{}-{}", datacenter, all.len()).into(),
            address: address.into(),
            port: port.parse().unwrap(),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
            is_live,
        });
        *instances = all.into();
        self
    }

    pub(super) fn translate(&self) -> Translated {
        let translation = Translator::new(self.options.clone()).translate(&self.known);
        Translated::new(translation)
    }
}

/// The translated resources.
pub(super) struct Translated {
    pub(super) translation: Translation,
    hosts: BTreeMap<String, VirtualHost>,
    clusters: BTreeMap<String, Cluster>,
    endpoints: BTreeMap<String, ClusterLoadAssignment>,
}

impl Translated {
    fn new(translation: Translation) -> Self {
        let options = ResourceOptions::default().with_precedence(["registry", "consul", "static"]);
        // Every result must be acceptable to Envoy.
        let assembled = assemble(&translation.services, options);
        assert_eq!(assembled.quarantined, []);
        let services = || translation.services.iter();
        Self {
            hosts: services()
                .flat_map(|service| service.virtual_hosts.clone())
                .map(|host| (host.name.clone(), host))
                .collect(),
            clusters: services()
                .flat_map(|service| service.clusters.clone())
                .map(|cluster| (cluster.name.clone(), cluster))
                .collect(),
            endpoints: services()
                .flat_map(|service| service.assignments.clone())
                .map(|assignment| (assignment.cluster_name.clone(), assignment))
                .collect(),
            translation,
        }
    }

    pub(super) fn host_names(&self) -> Vec<&str> {
        self.hosts.keys().map(String::as_str).collect()
    }

    pub(super) fn cluster_names(&self) -> Vec<&str> {
        self.clusters.keys().map(String::as_str).collect()
    }

    pub(super) fn cluster(&self, name: &str) -> &Cluster {
        &self.clusters[name]
    }

    pub(super) fn host(&self, name: &str) -> &VirtualHost {
        &self.hosts[name]
    }

    /// The routes of a virtual host, as `header~regex -> cluster timeout operation` or `header=value in any case -> …`.
    pub(super) fn routes(&self, name: &str) -> Vec<String> {
        self.hosts[name].routes.iter().map(shown).collect()
    }

    /// Returns the target of all requests: clusters and weights.
    pub(super) fn weights(&self, name: &str) -> Vec<(String, u32)> {
        let last = self.hosts[name].routes.last().unwrap();
        let Some(Action::Route(action)) = &last.action else {
            panic!("{last:?}")
        };
        let Some(ClusterSpecifier::WeightedClusters(weighted)) = &action.cluster_specifier else {
            panic!("{action:?}")
        };
        let clusters = weighted.clusters.iter();
        clusters
            .map(|cluster| (cluster.name.clone(), cluster.weight.unwrap().value))
            .collect()
    }

    /// The endpoints of a cluster, as `zone P0 address:port …`.
    pub(super) fn endpoints(&self, name: &str) -> Vec<String> {
        let localities = self.endpoints[name].endpoints.iter();
        localities
            .map(|locality| {
                let zone = &locality.locality.as_ref().unwrap().zone;
                let places: Vec<_> = locality.lb_endpoints.iter().map(place).collect();
                format!("{zone} P{} {}", locality.priority, places.join(" "))
            })
            .collect()
    }

    pub(super) fn codes(&self) -> Vec<&'static str> {
        self.translation
            .warnings
            .iter()
            .map(|warning| warning.code)
            .collect()
    }
}

fn shown(route: &Route) -> String {
    let matcher = route.r#match.as_ref().unwrap();
    let header = matcher.headers.first().map_or_else(String::new, |header| {
        let Some(HeaderMatchSpecifier::StringMatch(text)) = &header.header_match_specifier else {
            panic!("{header:?}")
        };
        match (&text.match_pattern, text.ignore_case) {
            (Some(MatchPattern::SafeRegex(regex)), false) => {
                format!("{}~{} ", header.name, regex.regex)
            }
            (Some(MatchPattern::Exact(value)), true) => {
                format!("{}={value} in any case ", header.name)
            }
            _ => panic!("{text:?}"),
        }
    });
    let Some(Action::Route(action)) = &route.action else {
        panic!("{route:?}")
    };
    let to = match &action.cluster_specifier {
        Some(ClusterSpecifier::Cluster(name)) => name.as_str(),
        _ => "W",
    };
    let timeout = action.timeout.unwrap();
    let operation = &route.decorator.as_ref().unwrap().operation;
    let operation = operation.strip_suffix(SUFFIX).unwrap_or(operation);
    format!("{header}-> {to} {}s {operation}", timeout.seconds)
}

fn place(endpoint: &LbEndpoint) -> String {
    let Some(HostIdentifier::Endpoint(endpoint)) = &endpoint.host_identifier else {
        panic!("{endpoint:?}")
    };
    let address = endpoint.address.as_ref().unwrap().address.as_ref().unwrap();
    let AnyAddress::SocketAddress(socket) = address else {
        panic!("{address:?}")
    };
    let Some(PortSpecifier::PortValue(port)) = &socket.port_specifier else {
        panic!("{socket:?}")
    };
    format!("{}:{port}", socket.address)
}
