//! Conflicts of ports, found before the resource manager rejects the whole load balancer.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::annotations::{Intent, Protocol};
use crate::plan::PlanError;
use crate::plan::cluster_state::{ClusterState, Owner, SubjectIndex};
use crate::plan::placement::{Placed, Placement};
use crate::resources::{
    ArmId, InboundNat, LoadBalancer, LoadBalancingRule, SubResource, TransportProtocol,
};

/// A port of a frontend or, without one, a backend port, on a load balancer.
pub(super) type Slot = (String, Option<String>, Protocol, u16);

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Udp];

/// The owners of ports.
#[derive(Default)]
struct Taken {
    slots: BTreeMap<Slot, String>,
    /// Ranges of ports by load balancer and frontend.
    ranges: BTreeMap<(String, Option<String>), Vec<Range>>,
}

struct Range {
    protocols: Vec<Protocol>,
    ports: RangeInclusive<u16>,
    by: String,
}

impl Taken {
    fn by(&self, slot: &Slot) -> Option<&String> {
        let exact = self.slots.get(slot);
        exact.or_else(|| {
            let (balancer, frontend, protocol, port) = slot;
            let ranges = self.ranges.get(&(balancer.clone(), frontend.clone()))?;
            let mut ranges = ranges.iter();
            let range = ranges
                .find(|range| range.protocols.contains(protocol) && range.ports.contains(port));
            range.map(|range| &range.by)
        })
    }

    fn add(
        &mut self,
        balancer: &str,
        frontend: Option<&str>,
        protocols: &[Protocol],
        ports: RangeInclusive<u16>,
        by: &str,
    ) {
        let (balancer, by) = (balancer.to_ascii_lowercase(), by.to_owned());
        let frontend = frontend.map(str::to_ascii_lowercase);
        let protocols = protocols.to_vec();
        self.ranges
            .entry((balancer, frontend))
            .or_default()
            .push(Range {
                protocols,
                ports,
                by,
            });
    }

    fn add_rule(&mut self, world: &ClusterState<'_>, balancer: &str, rule: &LoadBalancingRule) {
        let properties = &rule.properties;
        let protocols: &[Protocol] = match properties.protocol {
            Some(TransportProtocol::Tcp) => &[Protocol::Tcp],
            Some(TransportProtocol::Udp) => &[Protocol::Udp],
            Some(TransportProtocol::All) => &BOTH,
            Some(TransportProtocol::Other(_)) | None => &[],
        };
        let is_for_all = properties.protocol == Some(TransportProtocol::All);
        let ports = |port: u16| match port {
            // A rule for all protocols has port 0, which means all ports.
            0 if is_for_all => 0..=u16::MAX,
            port => port..=port,
        };
        let by = format!("rule {}", rule.name);
        if let Some(frontend) = name(properties.frontend_ip_configuration.as_ref()) {
            let ports = ports(properties.frontend_port);
            self.add(balancer, Some(frontend), protocols, ports, &by);
        }
        // The backend ports of a pool are unique, except behind a floating address.
        let ours = name(properties.backend_address_pool.as_ref())
            .is_some_and(|pool| pool.eq_ignore_ascii_case(&world.config.cluster_name));
        if properties.enable_floating_ip != Some(true) && ours {
            self.add(
                balancer,
                None,
                protocols,
                ports(properties.backend_port),
                &by,
            );
        }
    }

    /// Adds the ports of inbound NAT, which services cannot change.
    fn add_inbound_nat(&mut self, balancer: &str, nat: &InboundNat) {
        let properties = &nat.properties;
        let Some(frontend) = name(properties.frontend_ip_configuration.as_ref()) else {
            return;
        };
        let port = |field: &str| {
            let number = properties.other.get(field)?.as_u64()?;
            // Port 0 counts as missing.
            u16::try_from(number).ok().filter(|port| *port != 0)
        };
        let (first, last) = (port("frontendPortRangeStart"), port("frontendPortRangeEnd"));
        let ports = match (port("frontendPort"), first.zip(last)) {
            (Some(port), _) => port..=port,
            (None, Some((first, last))) => first..=last,
            (None, None) => return,
        };
        let protocol = properties.other.get("protocol");
        let is = |wanted: &str| {
            let protocol = protocol.and_then(serde_json::Value::as_str);
            protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case(wanted))
        };
        let protocols: &[Protocol] = match (is("Tcp"), is("Udp")) {
            (true, _) => &[Protocol::Tcp],
            (_, true) => &[Protocol::Udp],
            // Another or a missing protocol may stand for both.
            (false, false) => &BOTH,
        };
        let by = format!("inbound NAT {}", nat.name);
        self.add(balancer, Some(frontend), protocols, ports, &by);
    }
}

pub(in crate::plan) fn find(
    world: &ClusterState<'_>,
    placement: &Placement,
) -> Vec<(SubjectIndex, PlanError)> {
    let mut taken = Taken::default();
    let mut has_rules: BTreeMap<SubjectIndex, usize> = BTreeMap::new();
    for balancer in &world.snapshot.load_balancers {
        for rule in staying(world, balancer, &mut has_rules) {
            taken.add_rule(world, &balancer.name, rule);
        }
        let properties = &balancer.properties;
        let nat = properties.inbound_nat_rules.iter();
        for nat in nat.chain(&properties.inbound_nat_pools) {
            taken.add_inbound_nat(&balancer.name, nat);
        }
    }
    // Services with rules keep their ports. Among the others, the first by name gets them.
    let mut order: Vec<_> = placement.iter().collect();
    order.sort_by_key(|(index, _)| (!has_rules.contains_key(index), **index));
    let mut failures = Vec::new();
    for (index, placed) in order {
        let Some(subject) = world.subjects.get(*index) else {
            continue;
        };
        let Some(intent) = subject.intent() else {
            continue;
        };
        let slots = slots_of_service(placed, intent);
        let conflict = slots.iter().find_map(|slot| Some((slot, taken.by(slot)?)));
        if let Some(((_, _, protocol, port), by)) = conflict {
            let error = PlanError::PortConflict {
                protocol: protocol.in_names().to_owned(),
                port: *port,
                by: by.clone(),
            };
            failures.push((*index, error));
            continue;
        }
        let by = format!("service {}", subject.key());
        let slots = slots.into_iter().map(|slot| (slot, by.clone()));
        taken.slots.extend(slots);
    }
    failures
}

/// Returns the rules of a load balancer that do not change, and counts the others by service.
fn staying<'b>(
    world: &ClusterState<'_>,
    balancer: &'b LoadBalancer,
    has_rules: &mut BTreeMap<SubjectIndex, usize>,
) -> Vec<&'b LoadBalancingRule> {
    let ours = world.is_ours(balancer);
    let rules = balancer.properties.load_balancing_rules.iter();
    rules
        .filter(|rule| match world.owner(&rule.name, ours) {
            Owner::Foreign => true,
            Owner::Orphan => !world.sweeps(),
            Owner::Subject(index) => {
                *has_rules.entry(index).or_default() += 1;
                let subject = world.subjects.get(index);
                subject.is_some_and(|subject| subject.is_held())
            }
        })
        .collect()
}

fn name(reference: Option<&SubResource>) -> Option<&str> {
    Some(ArmId::name(reference?.id.as_ref()?))
}

/// Returns the ports that a rule has now.
pub(super) fn slots_of_rule(balancer: &str, rule: &LoadBalancingRule) -> Vec<Slot> {
    let properties = &rule.properties;
    let protocol = match properties.protocol {
        Some(TransportProtocol::Tcp) => Protocol::Tcp,
        Some(TransportProtocol::Udp) => Protocol::Udp,
        _ => return Vec::new(),
    };
    let balancer = balancer.to_ascii_lowercase();
    let mut slots = Vec::new();
    if let Some(frontend) = name(properties.frontend_ip_configuration.as_ref()) {
        let frontend = Some(frontend.to_ascii_lowercase());
        slots.push((
            balancer.clone(),
            frontend,
            protocol,
            properties.frontend_port,
        ));
    }
    if properties.enable_floating_ip != Some(true) {
        slots.push((balancer, None, protocol, properties.backend_port));
    }
    slots
}

/// Returns the ports that a service requests.
pub(super) fn slots_of_service(placed: &Placed, intent: &Intent) -> Vec<Slot> {
    let balancer = placed.balancer.to_ascii_lowercase();
    let frontend = placed.target.frontend.to_ascii_lowercase();
    let mut slots = Vec::new();
    for port in intent.ports.iter().filter(|port| port.has_rule) {
        slots.push((
            balancer.clone(),
            Some(frontend.clone()),
            port.protocol,
            port.port,
        ));
        if !intent.floating_ip {
            slots.push((balancer.clone(), None, port.protocol, port.backend_port));
        }
    }
    slots
}
