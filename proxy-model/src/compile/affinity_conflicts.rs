//! Clusters whose affinity keys get into each other's way, at the same client.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::compiled::{AffinityKey, Cluster, ClusterIndex, Route, RouteTarget, SessionAffinity};
use crate::matching::HostPattern;
use crate::problem::{Problem, Problems, pointer_to};
use crate::suggest::shortened;

/// Clusters at their positions in the configuration; those with errors are missing.
type Placed<'a> = HashMap<u32, &'a Cluster>;

/// Warns about clusters that share a cookie or header on a host, and about weighted clusters whose settings of session
/// affinity differ. `bad` are the positions of clusters that were not compiled.
pub(super) fn warn(clusters: &[Cluster], bad: &[usize], routes: &[Route], problems: &mut Problems) {
    if clusters.iter().all(|cluster| cluster.affinity().is_none()) {
        return;
    }
    let bad: HashSet<_> = bad.iter().copied().collect();
    let good = (0_u32..).filter(|position| !bad.contains(&(*position as usize)));
    let placed: Placed<'_> = good.zip(clusters).collect();
    for route in routes {
        if let RouteTarget::Weighted(targets) = route.target() {
            let targets = targets.iter().filter_map(|target| target.cluster());
            let targets: Vec<_> = targets.filter_map(|index| placed.get(&index.0)).collect();
            if let Some(problem) = unlike(route, &targets) {
                problems.push(problem);
            }
        }
    }
    let mut families = Families::default();
    let mut hosts: HashMap<u32, BTreeSet<String>> = HashMap::new();
    for route in routes {
        let targets = targets(route);
        for index in &targets {
            families.join(targets[0].0, index.0);
            let patterns = route.matcher().hosts();
            let hosts = hosts.entry(index.0).or_default();
            hosts.extend(patterns.iter().map(HostPattern::signature_of_name));
            if patterns.is_empty() {
                hosts.insert(EVERY_HOST.to_owned());
            }
        }
    }
    let mut taken: HashMap<Carrier<'_>, TakenHosts> = HashMap::new();
    for (position, cluster) in clusters_in_order(&placed) {
        let Some((affinity, carrier)) = cluster
            .affinity()
            .and_then(|affinity| Some((affinity, Carrier::of(affinity)?)))
        else {
            continue;
        };
        let is_of_domain = carrier.domain.is_some();
        let taken = taken.entry(carrier).or_default();
        let mut others = BTreeSet::new();
        for host in hosts.get(&position).into_iter().flatten() {
            // All hosts of a domain get its cookies.
            let host = if is_of_domain { EVERY_HOST } else { host };
            taken.meet(host, position, &mut others);
        }
        let clashes = |other: &&u32| {
            !families.are_one(**other, position)
                && placed
                    .get(other)
                    .is_some_and(|other| !means_the_same(other, cluster))
        };
        if let Some(other) = others
            .iter()
            .find(clashes)
            .and_then(|other| placed.get(other))
        {
            problems.push(shared(cluster, affinity, other));
        }
    }
}

/// The place in which a client keeps a key. Two keys in one place overwrite each other.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Carrier<'a> {
    is_header: bool,
    /// The name of the cookie or header; header names are in lower case.
    name: Cow<'a, str>,
    path: &'a str,
    domain: Option<&'a str>,
}

impl<'a> Carrier<'a> {
    /// `None` for a policy of the program, which may keep its key anywhere.
    fn of(affinity: &'a SessionAffinity) -> Option<Self> {
        match affinity.key() {
            AffinityKey::Custom(_) => None,
            AffinityKey::CustomHeader => Some(Self {
                is_header: true,
                name: affinity.key_name().to_ascii_lowercase().into(),
                path: "",
                domain: None,
            }),
            _ => Some(Self {
                is_header: false,
                name: affinity.key_name().into(),
                path: affinity.cookie().path(),
                domain: affinity.cookie().domain(),
            }),
        }
    }
}

/// The clusters of a route, each a position.
fn targets(route: &Route) -> Vec<ClusterIndex> {
    match route.target() {
        RouteTarget::Cluster(index) => vec![*index],
        RouteTarget::Weighted(targets) => targets.iter().filter_map(|t| t.cluster()).collect(),
        RouteTarget::Partitioned(partitions) => {
            let targets = partitions.targets().iter();
            targets.filter_map(|target| target.cluster()).collect()
        }
        RouteTarget::None
        | RouteTarget::Missing(_)
        | RouteTarget::Redirect(_)
        | RouteTarget::Respond(_) => Vec::new(),
    }
}

fn clusters_in_order<'a>(placed: &Placed<'a>) -> Vec<(u32, &'a Cluster)> {
    let mut clusters: Vec<_> = placed.iter().map(|(at, cluster)| (*at, *cluster)).collect();
    clusters.sort_unstable_by_key(|(position, _)| *position);
    clusters
}

/// Groups of clusters that routes have in common: their keys name the cluster, or one client has one of them.
#[derive(Default)]
struct Families(HashMap<u32, u32>);

impl Families {
    fn first(&self, mut member: u32) -> u32 {
        while let Some(before) = self.0.get(&member) {
            member = *before;
        }
        member
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first(one), self.first(other));
        if one != other {
            self.0.insert(one.max(other), one.min(other));
        }
    }

    fn are_one(&self, one: u32, other: u32) -> bool {
        self.first(one) == self.first(other)
    }
}

/// The sign for routes without a host.
const EVERY_HOST: &str = "*";

/// The hosts of clusters that keep their key in one place, each with the first cluster that has it.
#[derive(Default)]
struct TakenHosts {
    /// Patterns: a name, `*.` and a suffix, or `*`.
    patterns: HashMap<String, u32>,
    /// The domains above names and suffixes.
    above: HashMap<String, u32>,
    any: Option<u32>,
}

impl TakenHosts {
    /// Adds the clusters that have some of the same hosts, and takes the host for those that come later.
    fn meet(&mut self, host: &str, position: u32, others: &mut BTreeSet<u32>) {
        let suffix = host.strip_prefix("*.");
        others.extend(self.patterns.get(host));
        others.extend(self.patterns.get(EVERY_HOST));
        if host == EVERY_HOST {
            others.extend(self.any);
        }
        others.extend(suffix.and_then(|suffix| self.above.get(suffix)));
        for domain in domains_above(suffix.unwrap_or(host)) {
            others.extend(self.patterns.get(&format!("*.{domain}")));
            self.above.entry(domain.to_owned()).or_insert(position);
        }
        if let Some(suffix) = suffix {
            // A longer suffix is found by the shorter one, and the other way round.
            self.above.entry(suffix.to_owned()).or_insert(position);
        }
        self.patterns.entry(host.to_owned()).or_insert(position);
        self.any.get_or_insert(position);
        others.remove(&position);
    }
}

/// `b.c` and `c` for `a.b.c`.
fn domains_above(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| Some(name.split_once('.')?.1)).skip(1)
}

/// True if a key of one cluster is as good at the other one: both give hashes of the same ids.
fn means_the_same(one: &Cluster, other: &Cluster) -> bool {
    let key = |cluster: &Cluster| cluster.affinity().map(|affinity| affinity.key().clone());
    let ids = |cluster: &Cluster| -> BTreeSet<_> {
        let destinations = cluster.destinations().iter();
        destinations
            .map(|it| it.id().as_str().to_lowercase())
            .collect()
    };
    key(one) == key(other) && key(one).is_some_and(|key| !key.is_sealed()) && ids(one) == ids(other)
}

fn shared(cluster: &Cluster, affinity: &SessionAffinity, other: &Cluster) -> Problem {
    let (what, key) = match affinity.key() {
        AffinityKey::CustomHeader => ("header", "a header"),
        _ => ("cookie", "a cookie"),
    };
    let place = pointer_to("/Clusters", cluster.id().as_str());
    Problem::warning(
        format!("{place}/SessionAffinity/AffinityKeyName"),
        "shared_affinity_key_name",
        format!(
            "the cluster `{}` keeps its keys in the {what} `{}` on the same hosts; a client of both loses its destination at each change",
            shortened(other.id().as_str()),
            shortened(affinity.key_name()),
        ),
    )
    .with_suggestion(format!("give each cluster {key} of its own"))
}

/// The problem of a split whose clusters differ, if they do.
fn unlike(route: &Route, targets: &[&&Cluster]) -> Option<Problem> {
    let (first, others) = targets.split_first()?;
    let (other, what) = others
        .iter()
        .find_map(|other| Some((other, difference(first.affinity(), other.affinity())?)))?;
    let (first, other) = (
        shortened(first.id().as_str()),
        shortened(other.id().as_str()),
    );
    let message = match what {
        "Enabled" => format!(
            "only one of the clusters `{first}` and `{other}` has session affinity: in time all clients are at that one, whatever the weights"
        ),
        what => format!(
            "the clusters `{first}` and `{other}` differ in `SessionAffinity/{what}`: a client may have keys of both, and change sides"
        ),
    };
    let place = pointer_to("/Routes", route.id().as_str());
    Some(
        Problem::warning(
            format!("{place}/WeightedClusters"),
            "unlike_session_affinity",
            message,
        )
        .with_suggestion("give all clusters of the split the same `SessionAffinity`"),
    )
}

/// Returns the first setting in which the clusters of a split differ, among the settings that locate a client's
/// key.
fn difference(
    one: Option<&SessionAffinity>,
    other: Option<&SessionAffinity>,
) -> Option<&'static str> {
    let (one, other) = match (one, other) {
        (None, None) => return None,
        (Some(one), Some(other)) => (one, other),
        _ => return Some("Enabled"),
    };
    if one.key() != other.key() {
        return Some("Policy");
    }
    let (one, other) = (Carrier::of(one)?, Carrier::of(other)?);
    [
        (one.name == other.name, "AffinityKeyName"),
        (one.path == other.path, "Cookie/Path"),
        (one.domain == other.domain, "Cookie/Domain"),
    ]
    .into_iter()
    .find_map(|(is_same, key)| (!is_same).then_some(key))
}
