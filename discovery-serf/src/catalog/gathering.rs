//! The conversion of members to services.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use discovery_core::address::is_of_one_host;
use proxy_model::{ClusterId, Problem, pointer_to};

use super::collected_problems::CollectedProblems;
use super::keys::{Entry, make_unique, without_same_address};
use super::shown::shown;
use super::{
    CatalogOptions, LeftOut, RouteHint, Service, ServiceCatalog, ServiceInstance, hints, tags,
};
use crate::member::{Member, MemberStatus};

/// The service of legacy mode.
const LEGACY_SERVICE: &str = "backend";

pub(super) fn gather(members: &[Member], options: &CatalogOptions) -> ServiceCatalog {
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by(|a, b| order(a).cmp(&order(b)));

    let mut gathering = Gathering {
        options,
        catalog: ServiceCatalog::default(),
    };
    let mut unknown = CollectedProblems::default();
    let mut untagged = Vec::new();
    let mut named: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for &member in &sorted {
        let value = member.tags.bytes(tags::SERVICE).unwrap_or_default();
        gathering.catalog.exposes_services |= gathering.exposes(member, value);
        match tags::service(value) {
            Ok(None) => untagged.push(member),
            Ok(Some(name)) => named.entry(name).or_default().push(member),
            Err(error) => {
                if member.status.is_alive() {
                    unknown.value(member, &error, IS_NO_DESTINATION);
                }
                gathering.leave_out(member, None, "names no service that can be served");
            }
        }
    }
    gathering.catalog.problems = unknown.into_problems();
    gathering.untagged(&untagged);
    gathering.named(named);
    gathering.catalog.left_out.sort_unstable();
    gathering.catalog
}

/// The consequence for a member that lacks something, for messages.
const IS_NO_DESTINATION: &str = "the node gets no requests";

/// The sort key of a member. Members with equal keys are equal in everything that is read.
fn order(member: &Member) -> impl Ord + '_ {
    (
        &*member.name,
        member.address,
        &member.tags,
        member.status.as_str(),
    )
}

struct Gathering<'o> {
    options: &'o CatalogOptions,
    catalog: ServiceCatalog,
}

/// The members of one service, combined.
struct Gathered {
    service: Service,
    /// True if a member is an instance, or would be one if it had not disappeared without notice.
    is_listed: bool,
    /// True if a member would be an instance if its tags were in order.
    is_known: bool,
}

impl Gathering<'_> {
    fn leave_out(
        &mut self,
        member: &Member,
        service: Option<&Arc<str>>,
        reason: impl Into<String>,
    ) {
        self.catalog.left_out.push(LeftOut {
            member: Arc::clone(&member.name),
            service: service.cloned(),
            reason: reason.into(),
        });
    }

    /// Returns true if the member shows that services exist. A member that the options exclude shows
    /// nothing.
    fn exposes(&self, member: &Member, service: &[u8]) -> bool {
        let is_allowed = match tags::service(service) {
            Ok(name) => name.is_some_and(|name| self.options.allows_service(name)),
            Err(_) => self.options.allowed_services.is_none(),
        };
        let address = member.address.map(|address| address.to_canonical());
        is_allowed && address.is_none_or(|address| self.options.allows_address(address))
    }

    fn untagged(&mut self, members: &[&Member]) {
        let is_legacy = self.options.legacy_backend
            && !self.catalog.exposes_services
            && self.options.allows_service(LEGACY_SERVICE);
        let mut collected = CollectedProblems::default();
        for &member in members {
            if is_legacy && offers_port(member) {
                let message = format!(
                    "there is an `{}` and no `{}`; {IS_NO_DESTINATION}",
                    tags::HTTP_PORT,
                    tags::SERVICE,
                );
                collected.tag(member, tags::SERVICE, "missing_service", &message);
            }
            self.leave_out(member, None, "has no `service`");
        }
        if is_legacy && !members.is_empty() {
            // A node without the tag may be the proxy's own, and requests to it would come back forever.
            self.catalog.legacy = Some(Service {
                problems: collected.into_problems(),
                ..Service::default()
            });
        }
    }

    fn named(&mut self, named: BTreeMap<&str, Vec<&Member>>) {
        let mut gathered = Vec::with_capacity(named.len());
        for (name, members) in named {
            let name: Arc<str> = name.into();
            if !self.options.allows_service(&name) {
                for member in members {
                    self.leave_out(member, Some(&name), "has a `service` that is not allowed");
                }
                continue;
            }
            let service = self.service(&members, &name);
            gathered.push((ClusterId::new(Arc::clone(&name)), name, service));
        }
        // Ids are compared ignoring case, so two such services would be one. A service with instances
        // precedes one that is kept without any, then the order of the names decides.
        gathered.sort_by_key(|(_, _, gathered)| gathered.service.instances.is_empty());
        let mut by_id: HashMap<ClusterId, Arc<str>> = HashMap::with_capacity(gathered.len());
        let mut listed: HashSet<ClusterId> = HashSet::with_capacity(gathered.len());
        let mut problems = CollectedProblems::default();
        for (id, name, gathered) in gathered {
            let service = gathered.service;
            if gathered.is_listed {
                listed.insert(id.clone());
            }
            let is_kept = self.options.keep_empty_services && gathered.is_known;
            if service.instances.is_empty() && (!is_kept || by_id.contains_key(&id)) {
                if !service.problems.is_empty() {
                    self.catalog.unusable.insert(name, service.problems);
                }
                continue;
            }
            if let Some(first) = by_id.get(&id) {
                let shown_first = shown(first.as_bytes());
                for instance in &service.instances {
                    self.catalog.left_out.push(LeftOut {
                        member: Arc::clone(&instance.member),
                        service: Some(Arc::clone(&name)),
                        reason: format!(
                            "has a `service` that differs from `{shown_first}` in case only"
                        ),
                    });
                }
                let message = format!(
                    "the service `{}` differs from `{shown_first}` in case only, and is left out: ids are compared ignoring case",
                    shown(name.as_bytes()),
                );
                let pointer = pointer_to("/Services", &name);
                let problem = Problem::warning(pointer, "service_differs_in_case", message);
                problems.push(problem.with_suggestion("spell the service the same on all nodes"));
                continue;
            }
            by_id.insert(id, Arc::clone(&name));
            self.catalog.services.insert(name, service);
        }
        self.catalog.listed_services = listed.len();
        self.catalog.problems.append(problems.into_problems());
    }

    /// Returns the service of these members, which are in [`order`].
    fn service(&mut self, members: &[&Member], name: &Arc<str>) -> Gathered {
        let mut collected = CollectedProblems::default();
        let mut entries = Vec::with_capacity(members.len());
        let mut idle = Vec::new();
        let mut is_listed = false;
        for &member in members {
            let address = match self.address(member) {
                Ok(address) => address,
                Err(reason) => {
                    if member.status.is_alive() {
                        let message = format!("{}; {IS_NO_DESTINATION}", reason.message);
                        collected.address(member, reason.code, &message);
                    }
                    self.leave_out(member, Some(name), reason.left_out);
                    continue;
                }
            };
            is_listed |= would_serve(member);
            match self.instance(member, address, &mut collected) {
                Ok(instance) => entries.push(Entry { member, instance }),
                Err(reason) => {
                    self.leave_out(member, Some(name), reason);
                    idle.push((member, address));
                }
            }
        }
        let (mut entries, doubles) = without_same_address(entries, &mut collected);
        for (member, first) in doubles {
            let first = shown(first.name.as_bytes());
            self.leave_out(member, Some(name), format!("has the address of `{first}`"));
        }
        make_unique(&mut entries, &mut collected);
        entries.sort_by(|a, b| a.instance.key.cmp(&b.instance.key));
        let (hint, says_one) = match entries.is_empty() {
            false => (
                hints::of(&entries, &mut collected),
                entries.iter().any(|entry| has_hint(entry.member)),
            ),
            true => (
                self.hint_of_idle(&idle),
                idle.iter().any(|(member, _)| has_hint(member)),
            ),
        };
        let hint = match hint {
            // A wrong hint must not make the service take all requests, as one without a hint may.
            RouteHint::None if says_one => RouteHint::Unusable,
            hint => hint,
        };
        Gathered {
            service: Service {
                instances: entries.into_iter().map(|entry| entry.instance).collect(),
                hint,
                problems: collected.into_problems(),
            },
            is_listed,
            is_known: !idle.is_empty(),
        }
    }

    /// Returns the route hint of a service that is kept without instances: the one of its members before
    /// they failed.
    fn hint_of_idle(&self, members: &[(&Member, IpAddr)]) -> RouteHint {
        if !self.options.keep_empty_services {
            return RouteHint::None;
        }
        let mut ignored = CollectedProblems::default();
        let entries = members.iter().map(|&(member, address)| {
            let port = member.tags.bytes(tags::HTTP_PORT).unwrap_or_default();
            // In the order that they have while they are instances, as far as known.
            let socket = SocketAddr::new(address, tags::http_port(port).unwrap_or_default());
            let instance = instance_of(member, socket, tags::Scheme::Http, &mut ignored);
            Entry { member, instance }
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by(|a, b| a.instance.key.cmp(&b.instance.key));
        hints::of(&entries, &mut CollectedProblems::default())
    }

    /// Returns the address of a member, if a destination can have it.
    fn address(&self, member: &Member) -> Result<IpAddr, Unreachable> {
        let Some(address) = member.address.map(|address| address.to_canonical()) else {
            let message = "the agent lists no address of 4 or 16 bytes";
            return Err(Unreachable::new("has no address", "no_address", message));
        };
        if !is_of_one_host(address) {
            let message = format!("{address} is no address of one node");
            return Err(Unreachable::new(
                format!("has the address {address}"),
                "no_address",
                message,
            ));
        }
        if !self.options.allows_address(address) {
            let message = format!("{address} is in none of the allowed networks");
            let reason =
                format!("has the address {address}, which is in none of the allowed networks");
            return Err(Unreachable::new(reason, "address_not_allowed", message));
        }
        Ok(address)
    }

    /// Returns the instance of a member, or the reason why it has none.
    fn instance(
        &self,
        member: &Member,
        address: IpAddr,
        collected: &mut CollectedProblems,
    ) -> Result<ServiceInstance, String> {
        if !member.status.is_alive() {
            return Err(format!("is {}", shown(status_of(member).as_bytes())));
        }
        let Some(port) = member.tags.bytes(tags::HTTP_PORT) else {
            let message = format!(
                "there is no `{}`, and a port from 1 to 65535 was expected; {IS_NO_DESTINATION}",
                tags::HTTP_PORT,
            );
            collected.tag(member, tags::HTTP_PORT, "missing_http_port", &message);
            return Err("has no `http-port`".to_owned());
        };
        let reject = |error: &tags::TagError, collected: &mut CollectedProblems| {
            collected.value(member, error, IS_NO_DESTINATION);
            format!("cannot be used: {error}")
        };
        let port = tags::http_port(port).map_err(|error| reject(&error, collected))?;
        let scheme = member.tags.bytes(tags::SCHEME).unwrap_or_default();
        let scheme = tags::scheme(scheme).map_err(|error| reject(&error, collected))?;
        if let IpAddr::V6(address) = address
            && address.is_unicast_link_local()
        {
            let message = format!(
                "{address} is valid on one link only, and the agent does not name the link; the \
                 node may be unreachable"
            );
            collected.address(member, "link_local_address", &message);
        }
        let socket = SocketAddr::new(address, port);
        Ok(instance_of(member, socket, scheme, collected))
    }
}

/// Returns true if a member is an instance, or would be one if it had not crashed.
fn would_serve(member: &Member) -> bool {
    let value = |key: &str| member.tags.bytes(key).unwrap_or_default();
    !matches!(member.status, MemberStatus::Left | MemberStatus::Leaving)
        && tags::http_port(value(tags::HTTP_PORT)).is_ok()
        && tags::scheme(value(tags::SCHEME)).is_ok()
}

/// Returns true if a member is alive and has a port for requests.
fn offers_port(member: &Member) -> bool {
    let port = member.tags.bytes(tags::HTTP_PORT).unwrap_or_default();
    member.status.is_alive() && tags::http_port(port).is_ok()
}

/// Returns true if a member has a route hint, usable or not.
fn has_hint(member: &Member) -> bool {
    let says = |key: &str| {
        let value = member.tags.bytes(key);
        value.is_some_and(|value| !tags::is_blank(value))
    };
    says(tags::HOST) || says(tags::ROUTE_PATH)
}

/// The instance that a member is. Optional values that cannot be used are reported, and left out.
fn instance_of(
    member: &Member,
    socket: SocketAddr,
    scheme: tags::Scheme,
    collected: &mut CollectedProblems,
) -> ServiceInstance {
    let value = |key: &str| member.tags.bytes(key).unwrap_or_default();
    let mut used = |result: Result<Option<String>, tags::TagError>, instead: &str| {
        result.unwrap_or_else(|error| {
            collected.value(member, &error, instead);
            None
        })
    };
    let key = tags::instance(value(tags::INSTANCE)).map(|key| key.map(str::to_owned));
    let key = used(key, "the destination is called by its address");
    let host = tags::host(value(tags::HOST)).map(|host| host.map(Cow::into_owned));
    let host = used(host, "it is not used");
    let route_path = used(tags::route_path(value(tags::ROUTE_PATH)), "it is not used");
    let health_path = tags::health_path(value(tags::HEALTH_PATH));
    let health_path = used(health_path, "the default is used");
    let (weight, error) = tags::lenient_weight(value(tags::WEIGHT));
    if let Some(error) = error {
        collected.value(member, &error, &format!("{weight} is used"));
    }
    ServiceInstance {
        key: key.unwrap_or_else(|| socket.to_string()),
        member: Arc::clone(&member.name),
        scheme,
        socket,
        host,
        route_path,
        health_path,
        weight,
        version: tags::label(value(tags::VERSION)),
        region: tags::label(value(tags::REGION)),
    }
}

/// The status of a member, in words for people.
fn status_of(member: &Member) -> &str {
    match member.status.as_str() {
        "" => "of no status",
        status => status,
    }
}

/// The reason why requests cannot reach a member's address.
struct Unreachable {
    left_out: String,
    code: &'static str,
    message: String,
}

impl Unreachable {
    fn new(left_out: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            left_out: left_out.into(),
            code,
            message: message.into(),
        }
    }
}
