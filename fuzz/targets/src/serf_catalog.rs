//! Members of a Serf cluster with their tags.

use std::collections::HashSet;
use std::sync::Arc;

use discovery_core::{Discovery, ServiceContent};
use discovery_serf::catalog::{CatalogOptions, ServiceCatalog};
use discovery_serf::generate::{GenerateOptions, WeightStrategy, discovery_of};
use discovery_serf::{Member, MemberStatus, Tags};
use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Severity, Snapshot};

use crate::config::check_round_trip;
use crate::input::{MAX_BYTES, check_wording};

/// Maximum number of members.
const MAX_MEMBERS: usize = 64;

/// Maximum number of copies in a cluster in addition to its instances, and of versions and regions
/// of a service.
const MAX_COPIES: usize = 1_000;
const MAX_VARIANTS: usize = 64 + 64 + 64 * 64;

/// Fuzzes members, one fact per line:
///
/// ```text
/// option versions
/// member alive 10.0.0.1 n1             (a status, an address, a name)
/// service=orders                       (a tag of the member above; any bytes but an end of line)
/// ```
///
/// * The same members give the same result in any order.
/// * The result compiles, is bounded, and is equal when written and read again. No id occurs twice,
///   and each route has a cluster.
/// * No input of a member is an error. Every problem of a member is one line.
/// * Each member is a destination, or its problem says why not.
pub fn serf_catalog(data: &[u8]) {
    let input = Input::read(&data[..data.len().min(MAX_BYTES)]);
    let catalog = ServiceCatalog::build(&input.members, &input.catalog);
    let discovery = discovery_of(&catalog, &input.generate);

    let mut turned = input.members.clone();
    turned.reverse();
    let again = ServiceCatalog::build(&turned, &input.catalog);
    assert_eq!(again, catalog, "the order matters");
    assert_eq!(discovery_of(&again, &input.generate), discovery);

    let of_services = discovery.services.iter().flat_map(|s| &s.problems);
    for problem in of_services.chain(&discovery.problems) {
        assert_eq!(problem.severity, Severity::Warning, "{problem}");
        check_wording(problem);
        assert!(problem.message.len() < 4_000, "{problem}");
    }
    for left_out in &catalog.left_out {
        assert!(!left_out.reason.is_empty() && left_out.reason.len() < 2_000);
        assert!(!left_out.reason.contains(char::is_control), "{left_out:?}");
    }
    let instances: usize = catalog
        .services
        .values()
        .chain(&catalog.legacy)
        .map(|service| service.instances.len())
        .sum();
    assert_eq!(
        instances + catalog.left_out.len(),
        input.members.len(),
        "somebody is forgotten"
    );
    check_served(&discovery, instances);
}

fn check_served(discovery: &Discovery, instances: usize) {
    let names: HashSet<_> = discovery.services.iter().map(|s| &s.name).collect();
    assert_eq!(names.len(), discovery.services.len());
    let mut whole = ProxyConfig::default();
    for service in &discovery.services {
        let ServiceContent::Config(config) = &service.content else {
            continue;
        };
        let size = config.clusters.len() + config.routes.len();
        assert!(size <= 2 * (1 + MAX_VARIANTS), "{size}");
        for (id, cluster) in &config.clusters {
            assert!(cluster.destinations.len() <= MAX_COPIES + 2 * instances);
            let before = whole.clusters.insert(id.clone(), cluster.clone());
            assert!(before.is_none(), "two clusters {id}");
        }
        for (id, route) in &config.routes {
            let cluster = route.cluster_id.as_ref().expect("each has one");
            assert!(config.clusters.contains_key(cluster), "{id} goes nowhere");
            let before = whole.routes.insert(id.clone(), route.clone());
            assert!(before.is_none(), "two routes {id}");
        }
    }
    check_round_trip(&whole);
    if let Err(problems) = Snapshot::compile(Arc::new(whole), &CompileOptions::default()) {
        panic!("{problems}");
    }
}

#[derive(Default)]
struct Input {
    members: Vec<Member>,
    catalog: CatalogOptions,
    generate: GenerateOptions,
}

impl Input {
    fn read(data: &[u8]) -> Self {
        let mut input = Self::default();
        for line in data.split(|byte| *byte == b'\n') {
            if let Some(name) = line.strip_prefix(b"option ") {
                input.option(&String::from_utf8_lossy(name));
            } else if let Some(rest) = line.strip_prefix(b"member ") {
                if input.members.len() == MAX_MEMBERS {
                    break;
                }
                input.members.push(member(&String::from_utf8_lossy(rest)));
            } else if let Some(member) = input.members.last_mut()
                && let Some(equals) = line.iter().position(|byte| *byte == b'=')
            {
                member.tags.insert(&line[..equals], &line[equals + 1..]);
            }
        }
        input
    }

    fn option(&mut self, name: &str) {
        let (catalog, generate) = (self.catalog.clone(), self.generate.clone());
        match name {
            "keep-empty" => self.catalog = catalog.with_keep_empty_services(true),
            "no-legacy" => self.catalog = catalog.with_legacy_backend(false),
            "allowed" => {
                let network = "10.0.0.0/8".parse().expect("it is a network");
                self.catalog = catalog
                    .with_allowed_services(["orders", "web"])
                    .with_allowed_networks([network]);
            }
            "duplicate" => self.generate = generate.with_weights(WeightStrategy::Duplicate),
            "versions" => self.generate = generate.with_version_header("X-Version"),
            "regions" => self.generate = generate.with_region_header("X-Region"),
            "no-labels" => self.generate = generate.with_informational_tags(false),
            _ => {}
        }
    }
}

/// Parses `alive 10.0.0.1 name`. An invalid address is left out.
fn member(text: &str) -> Member {
    let mut words = text.splitn(3, ' ');
    let status = MemberStatus::parse(words.next().unwrap_or_default());
    let address = words.next().and_then(|address| address.parse().ok());
    let name = words.next().unwrap_or_default();
    let mut member = Member::new(name, [0, 0, 0, 0].into(), Tags::new()).with_status(status);
    member.address = address;
    member
}
