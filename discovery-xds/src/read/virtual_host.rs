//! Virtual hosts.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use indexmap::map::Entry;
use proxy_model::RouteId;
use proxy_model::config::{RouteConfig, RouteHeader, RouteMatch, TransformConfig};
use proxy_model::json::{parse_document, read_route};
use xds_types::pb::envoy::config::route::v3::{Route, RouteConfiguration, VirtualHost};

use super::access::{self, Place, fields_close};
use super::headers::{self, Changes, Side};
use super::hosts;
use super::routes::{HostRoutes, ReadRoutes};
use super::{Reading, route};
use xds_types::carried;

/// The longest form in JSON that is believed.
const LONGEST_SOURCE: usize = 1 << 20;

/// Reads the virtual hosts of one route configuration.
pub(super) struct VirtualHosts<'e> {
    all: &'e RouteConfiguration,
    found: ReadRoutes,
    /// The names that ids begin with.
    prefixes: BTreeSet<String>,
    /// The domains of virtual hosts that were read.
    claimed: BTreeSet<String>,
    before: Arc<HashMap<String, HostRoutes>>,
    good: HashMap<String, HostRoutes>,
    /// Number of rejected conditions of routes.
    conditions: usize,
}

impl<'e> VirtualHosts<'e> {
    pub(super) fn of(
        all: &'e RouteConfiguration,
        before: Option<Arc<HashMap<String, HostRoutes>>>,
    ) -> Self {
        Self {
            all,
            found: ReadRoutes::default(),
            prefixes: BTreeSet::new(),
            claimed: BTreeSet::new(),
            before: before.unwrap_or_default(),
            good: HashMap::new(),
            conditions: 0,
        }
    }

    pub(super) fn found(self) -> ReadRoutes {
        ReadRoutes {
            good: Arc::new(self.good),
            ..self.found
        }
    }

    pub(super) fn read(&mut self, host: &VirtualHost, reading: &mut Reading) {
        let changes_headers = !self.all.request_headers_to_add.is_empty()
            || !self.all.request_headers_to_remove.is_empty()
            || !self.all.internal_only_headers.is_empty()
            || !host.request_headers_to_add.is_empty()
            || !host.request_headers_to_remove.is_empty();
        let before = reading.rejections();
        check(host, reading);
        let is_closed = reading.rejections() > before;
        let carried: Option<Vec<(u64, RouteConfig)>> = (host.routes.iter())
            .map(|route| sealed(route, reading))
            .collect();
        if let (Some(carried), false) = (
            carried,
            is_closed || changes_headers || host.routes.is_empty(),
        ) {
            return self.insert_sealed(host, carried, reading);
        }
        let domains = hosts::domains(&host.domains, &mut self.claimed, reading);
        for (rank, header) in domains.rejected {
            self.insert_guard(host, rank, header);
        }
        let read: HostRoutes = match is_closed {
            true => [("refused".to_owned(), RouteConfig::default())].into(),
            false => self.last_known_good(host, reading),
        };
        let catches_all = read
            .iter()
            .any(|(_, config)| config.r#match == RouteMatch::default());
        for (rank, patterns) in domains.groups {
            let prefix = self.prefix(host, patterns.as_deref());
            for (position, (name, config)) in read.iter().enumerate() {
                let order = rank.order(position);
                self.insert(format!("{prefix}/{name}"), &patterns, order, config.clone());
            }
            // Envoy looks into no other virtual host if no route of this one matches a request.
            if patterns.is_some() && !catches_all {
                let order = rank.order(read.len());
                let nowhere = RouteConfig::default();
                self.insert(format!("{prefix}/otherwise"), &patterns, order, nowhere);
                reading.differs(
                    "routes",
                    "requests that no route takes are answered with 503 instead of 404",
                );
            }
        }
    }

    /// Adds a route that responds 503 to requests for a rejected domain, so that they get to no other
    /// virtual host.
    fn insert_guard(&mut self, host: &VirtualHost, rank: hosts::Specificity, header: RouteHeader) {
        let mut id = format!("{}/domains", self.prefix(host, None));
        while self.found.routes.contains_key(&RouteId::from(&*id)) {
            id.push('\'');
        }
        let nowhere = RouteConfig {
            r#match: RouteMatch {
                headers: Some(vec![header]),
                ..RouteMatch::default()
            },
            ..RouteConfig::default()
        };
        self.insert(id, &None, rank.order(hosts::LAST), nowhere);
    }

    /// Returns the routes of a virtual host, or its earlier ones if only conditions of routes are
    /// unsupported.
    fn last_known_good(&mut self, host: &VirtualHost, reading: &mut Reading) -> HostRoutes {
        let (rejections, conditions) = (reading.rejections(), self.conditions);
        let read: HostRoutes = self.routes(host, reading).into();
        let conditions = self.conditions - conditions;
        let is_only_conditions = reading.rejections() - rejections == conditions;
        let chosen = match self.before.get(&host.name) {
            Some(good) if conditions > 0 && is_only_conditions => {
                self.found.kept.insert(host.name.clone());
                Arc::clone(good)
            }
            _ => read,
        };
        if is_only_conditions && (conditions == 0 || self.before.contains_key(&host.name)) {
            self.good.insert(host.name.clone(), Arc::clone(&chosen));
        }
        chosen
    }

    /// Returns the routes of a virtual host with their unique names. Rejected ones respond with 503.
    fn routes(&mut self, host: &VirtualHost, reading: &mut Reading) -> Vec<(String, RouteConfig)> {
        if host.routes.len() > hosts::MOST_ROUTES {
            reading.reject("routes", "there are too many routes in one virtual host");
            return vec![("refused".to_owned(), RouteConfig::default())];
        }
        let mut names = BTreeSet::from(["otherwise".to_owned()]);
        let mut read = Vec::with_capacity(host.routes.len());
        for (position, route) in host.routes.iter().enumerate() {
            let mut name = match route.name.as_str() {
                "" => position.to_string(),
                name => name.to_owned(),
            };
            while !names.insert(name.clone()) {
                name = format!("{name} {position}");
            }
            let config = reading.below(&name, |reading| self.route(route, host, reading));
            read.push((name, config));
        }
        read
    }

    fn route(&mut self, route: &Route, host: &VirtualHost, reading: &mut Reading) -> RouteConfig {
        let before = reading.rejections();
        let (mut config, conditions) = route::route(route, reading);
        self.conditions += conditions;
        let is_internal = |name: &str| {
            let internal = &mut self.all.internal_only_headers.iter();
            internal.any(|header| header.eq_ignore_ascii_case(name))
        };
        let wanted = route.r#match.iter().flat_map(|wanted| &wanted.headers);
        for header in wanted.filter(|header| is_internal(&header.name)) {
            let message = format!(
                "`{}` is a header that only Envoy itself may set",
                header.name
            );
            reading.reject("match/headers", message);
        }
        let out = config.transforms.get_or_insert_default();
        for (at, name) in self.all.internal_only_headers.iter().enumerate() {
            let removed = ("RequestHeaderRemove".to_owned(), name.clone());
            out.insert(at, TransformConfig::from_iter([removed]));
        }
        for (request, response) in [changes_of_host(host), changes_of_all(self.all)] {
            if !headers::is_reply(route.action.as_ref()) {
                headers::transforms(request, Side::Request, out, reading);
            }
            headers::transforms(response, Side::Response, out, reading);
        }
        match reading.rejections() > before {
            // A route without a cluster responds with 503.
            true => RouteConfig {
                r#match: config.r#match,
                ..RouteConfig::default()
            },
            false => config,
        }
    }

    /// Returns the prefix of the ids of the routes for `patterns`.
    fn prefix(&mut self, host: &VirtualHost, patterns: Option<&[String]>) -> String {
        let of_group = match patterns.and_then(|patterns| patterns.first()) {
            Some(pattern) => format!("{} {pattern}", host.name),
            None => format!("{} *", host.name),
        };
        let mut prefix = host.name.clone();
        while !self.prefixes.insert(prefix.clone()) {
            prefix = match prefix == host.name {
                true => of_group.clone(),
                false => format!("{prefix}'"),
            };
        }
        prefix
    }

    fn insert(
        &mut self,
        id: String,
        patterns: &Option<Vec<String>>,
        order: Option<i32>,
        mut config: RouteConfig,
    ) {
        // A host or a path is required.
        if patterns.is_none() && config.r#match.path.is_none() {
            config.r#match.path = Some("/{**rest}".to_owned());
        }
        config.r#match.hosts.clone_from(patterns);
        config.order = order;
        self.found.routes.insert(id.into(), config);
    }

    /// Adds the sealed form of a route, which is in each virtual host that it takes requests to.
    fn insert_sealed(
        &mut self,
        host: &VirtualHost,
        carried: Vec<(u64, RouteConfig)>,
        reading: &mut Reading,
    ) {
        for (route, (position, config)) in host.routes.iter().zip(carried) {
            (self.found.positions).insert(route.name.as_str().into(), position);
            match self.found.routes.entry(route.name.as_str().into()) {
                Entry::Vacant(free) => {
                    free.insert(config);
                }
                Entry::Occupied(taken) if *taken.get() == config => {}
                Entry::Occupied(_) => {
                    reading.reject(
                        &route.name,
                        "two routes have this name and differ; requests of the second get 503",
                    );
                    let nowhere = RouteConfig {
                        r#match: config.r#match,
                        order: config.order,
                        ..RouteConfig::default()
                    };
                    let mut id = format!("{}'", route.name);
                    while self.found.routes.contains_key(&RouteId::from(&*id)) {
                        id.push('\'');
                    }
                    self.found.positions.insert(id.as_str().into(), position);
                    self.found.routes.insert(id.into(), nowhere);
                }
            }
        }
    }
}

fn check(host: &VirtualHost, reading: &mut Reading) {
    fields_close(Place::VirtualHost, &access::virtual_host(host), reading);
    access::per_filter(&host.typed_per_filter_config, reading);
}

/// Returns the virtual host's changes of requests and responses, which follow those of the route.
fn changes_of_host(host: &VirtualHost) -> (Changes<'_>, Changes<'_>) {
    let request = Changes {
        add: &host.request_headers_to_add,
        remove: &host.request_headers_to_remove,
    };
    let response = Changes {
        add: &host.response_headers_to_add,
        remove: &host.response_headers_to_remove,
    };
    (request, response)
}

/// Returns the configuration's changes, which follow those of the virtual host.
pub(super) fn changes_of_all(all: &RouteConfiguration) -> (Changes<'_>, Changes<'_>) {
    let request = Changes {
        add: &all.request_headers_to_add,
        remove: &all.request_headers_to_remove,
    };
    let response = Changes {
        add: &all.response_headers_to_add,
        remove: &all.response_headers_to_remove,
    };
    (request, response)
}

/// The model's own form of a route and its position among all, if it carries them.
fn sealed(route: &Route, reading: &mut Reading) -> Option<(u64, RouteConfig)> {
    let place = reading.place(&route.name);
    reading.carried(&carried::carried(route), |json| {
        if json.len() > LONGEST_SOURCE {
            return None;
        }
        let mut problems = proxy_model::Problems::new();
        let node = parse_document(json).ok()?;
        let config = read_route(node.get("Route")?, &place, &mut problems)?;
        let carried: serde_json::Value = serde_json::from_str(json).ok()?;
        let position = carried.get("Position")?.as_u64()?;
        (!problems.has_errors()).then_some((position, config))
    })
}
