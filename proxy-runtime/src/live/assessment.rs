//! The eligibility of a cluster's destinations, with reasons.

use proxy_model::compiled::{AvailabilityPolicy, Cluster, Destination, DestinationIndex};
use proxy_model::same_id;

use super::Faults;

/// The reason why a destination gets no requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ineligible {
    /// The active check marked the destination unhealthy.
    Unhealthy,
    /// The passive check marked the destination unhealthy.
    Failing,
    /// The program declared the destination unhealthy.
    Assigned,
    /// The destination's agent says that it is down.
    AgentDown,
    /// The destination's agent says that it is in maintenance.
    Maintenance,
    /// The destination's agent drains it: it keeps its clients only.
    Draining,
    /// The cluster's policy of available destinations leaves it out.
    LeftOut,
    /// The weight is 0.
    NoWeight,
    /// A tier with a smaller number has available destinations.
    LowerPriority {
        /// Number of the tier that is used.
        used: u32,
    },
    /// Destinations in the proxy's own zone are available.
    OtherZone,
}

impl std::fmt::Display for Ineligible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unhealthy => f.write_str("unhealthy by its active check"),
            Self::Failing => f.write_str("unhealthy by its passive check"),
            Self::Assigned => f.write_str("declared unhealthy by the program"),
            Self::AgentDown => f.write_str("down by its agent"),
            Self::Maintenance => f.write_str("in maintenance by its agent"),
            Self::Draining => f.write_str("drained by its agent"),
            Self::LeftOut => f.write_str("left out by the policy of available destinations"),
            Self::NoWeight => f.write_str("its weight is 0"),
            Self::LowerPriority { used } => {
                write!(f, "destinations of priority {used} are available")
            }
            Self::OtherZone => f.write_str("destinations in the proxy's own zone are available"),
        }
    }
}

/// The result of [`assess`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assessment {
    /// The reason per destination, in the order of the configuration; `None` if it may be picked.
    pub(crate) verdicts: Vec<Option<Ineligible>>,
    /// True if health is ignored because no destination is healthy.
    pub(crate) panic: bool,
    /// The weight of each destination in hundredths, if agents may have changed them.
    pub(crate) hundredths: Option<Vec<u32>>,
}

impl Assessment {
    /// The positions that may be picked.
    pub(crate) fn eligible(&self) -> impl Iterator<Item = usize> + '_ {
        let verdicts = self.verdicts.iter().enumerate();
        verdicts.filter_map(|(i, verdict)| verdict.is_none().then_some(i))
    }
}

/// Decides which destinations of `cluster` may be picked.
///
/// `faults` has the reasons why destinations are unhealthy, and the words of their agents; without it none is.
/// Destinations in `without` have just failed and may not be picked in any case.
///
/// 1. A destination of weight 0 gets nothing, unless all destinations of the cluster have weight 0:
///    then weights are ignored. One that its agent drains or has in maintenance gets nothing.
/// 2. Unhealthy destinations are excluded. If none is left and the policy is `HealthyOrPanic`, all
///    of step 1 are used, whatever their priority and zone.
/// 3. Of the rest, only the tier with the smallest number is used,
/// 4. and of that tier only the destinations in `zone`, if there are any.
pub(crate) fn assess(
    cluster: &Cluster,
    zone: Option<&str>,
    without: &[DestinationIndex],
    faults: Option<&Faults<'_>>,
) -> Assessment {
    let destinations = cluster.destinations();
    let weighted = destinations.iter().any(|d| d.weight() > 0);
    let mut verdicts: Vec<_> = destinations
        .iter()
        .map(|d| (weighted && d.weight() == 0).then_some(Ineligible::NoWeight))
        .collect();
    let hundredths = faults.and_then(|faults| faults.agents(weighted, &mut verdicts));
    // Before the health, so that panic mode leaves them out as well.
    for index in without {
        if let Some(verdict) = verdicts.get_mut(index.0 as usize) {
            *verdict = Some(Ineligible::Unhealthy);
        }
    }

    let mut by_weight = None;
    for i in 0..verdicts.len() {
        if verdicts[i].is_none()
            && let Some(fault) = faults.and_then(|faults| faults.of(i))
        {
            // Kept for panic mode, and copied only once a destination is unhealthy.
            by_weight.get_or_insert_with(|| verdicts.clone());
            verdicts[i] = Some(fault);
        }
    }
    if let Some(verdicts) = by_weight.filter(|_| {
        let none_left = verdicts.iter().all(Option::is_some);
        none_left && *cluster.availability() == AvailabilityPolicy::HealthyOrPanic
    }) {
        return Assessment {
            verdicts,
            panic: true,
            hundredths,
        };
    }

    // Health comes before tiers: a tier without a healthy destination is skipped.
    prefer_tier(destinations, &mut verdicts);
    if let Some(zone) = zone {
        prefer_zone(destinations, zone, &mut verdicts);
    }
    Assessment {
        verdicts,
        panic: false,
        hundredths,
    }
}

fn prefer_tier(destinations: &[Destination], verdicts: &mut [Option<Ineligible>]) {
    let left = destinations.iter().zip(verdicts.iter());
    let Some(used) = left
        .filter(|(_, verdict)| verdict.is_none())
        .map(|(d, _)| d.priority())
        .min()
    else {
        return;
    };
    for (destination, verdict) in destinations.iter().zip(verdicts) {
        if verdict.is_none() && destination.priority() > used {
            *verdict = Some(Ineligible::LowerPriority { used });
        }
    }
}

fn prefer_zone(destinations: &[Destination], zone: &str, verdicts: &mut [Option<Ineligible>]) {
    let is_here = |d: &Destination| d.zone().is_some_and(|theirs| same_id(theirs, zone));
    let mut left = destinations.iter().zip(verdicts.iter());
    if !left.any(|(d, verdict)| verdict.is_none() && is_here(d)) {
        return;
    }
    for (destination, verdict) in destinations.iter().zip(verdicts) {
        if verdict.is_none() && !is_here(destination) {
            *verdict = Some(Ineligible::OtherZone);
        }
    }
}
