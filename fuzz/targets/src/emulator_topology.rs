//! Descriptions of clusters for the emulator.

use servicefabric_emulator::cluster::Cluster;
use servicefabric_emulator::hosting::Moment;
use servicefabric_emulator::topology::{
    PartitionsDescription, ServiceDescription, Topology, TopologyError,
};

use crate::input::text;

/// How long a cluster lives here.
const END: Moment = Moment::from_secs(5);

/// The most nodes of a cluster that is built, and the most of what is on them.
const MOST: (usize, u64) = (12, 120);

/// So often time is moved to the next thing that happens; then the rest is passed at once.
const MAX_STEPS: usize = 2_000;

/// A topology: JSON if it begins with a brace, else TOML.
///
/// * Reading it twice gives the same, and what is read is written and read as the same.
/// * What cannot be used is told: each problem with a sentence, and not more than a hundred.
/// * What the check lets pass becomes a cluster, unless that refuses it with a reason. The same topology becomes the same
///   cluster, down to every id.
/// * Nothing happens but when the cluster says that something is due: time that passes at once and time that passes from
///   one such moment to the next lead to the same.
pub fn emulator_topology(data: &[u8]) {
    let text = text(data);
    let is_json = text.trim_start().starts_with('{');
    let read = || match is_json {
        true => Topology::from_json(&text),
        false => Topology::from_toml(&text),
    };
    let topology = read();
    // Not by comparison, since a number may be none.
    assert_eq!(format!("{topology:?}"), format!("{:?}", read()));
    let topology = match topology {
        Ok(topology) => topology,
        Err(error) => return check_error(&error),
    };
    check_round_trip(&topology);
    if let Err(error) = topology.check() {
        check_error(&error);
        assert_eq!(Cluster::new(&topology).err(), Some(error));
        return;
    }
    if is_small(&topology) {
        check_cluster(&topology);
    }
}

fn check_error(error: &TopologyError) {
    assert!(error.to_string().len() > "the topology".len(), "{error}");
    if let TopologyError::Invalid(problems) = error {
        assert!((1..=100).contains(&problems.len()));
        for problem in problems {
            assert!(!problem.message.is_empty(), "{problem:?}");
        }
    }
}

/// JSON has no numbers that are none or infinite, and labels may have dates, which only TOML has.
fn check_round_trip(topology: &Topology) {
    let Ok(written) = serde_json::to_string(topology) else {
        return;
    };
    let odd = ["null", "$__toml_private_datetime"];
    if odd.iter().any(|odd| written.contains(odd)) && Topology::from_json(&written).is_err() {
        return;
    }
    let again = Topology::from_json(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    let once_more = serde_json::to_string(&again).expect("it was written before");
    assert_eq!(once_more, written);
}

/// Whether a cluster of it is built in no time.
fn is_small(topology: &Topology) -> bool {
    let (nodes, replicas) = MOST;
    let of_service = |service: &ServiceDescription| {
        let partitions = match &service.partitions {
            Some(PartitionsDescription::Ranges { count, .. }) => u64::from(*count),
            Some(PartitionsDescription::Names(names)) => names.len() as u64,
            _ => 1,
        };
        partitions.saturating_mul(service.count.unwrap_or(1).into())
    };
    let all = topology.applications.values().map(|application| {
        let services = application.services.values().map(of_service);
        let services = services.fold(1, u64::saturating_add);
        services.saturating_mul(application.count.unwrap_or(1).into())
    });
    topology.cluster.nodes.count() <= nodes && all.fold(0, u64::saturating_add) <= replicas
}

fn check_cluster(topology: &Topology) {
    let (mut whole, mut stepwise) = match (Cluster::new(topology), Cluster::new(topology)) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(error), Err(other)) => {
            assert_eq!(error, other);
            return check_error(&error);
        }
        (one, other) => panic!("{:?} and {:?}", one.err(), other.err()),
    };
    assert_eq!(format!("{whole:?}"), format!("{stepwise:?}"));
    whole.advance(END);
    for _ in 0..MAX_STEPS {
        let Some(due) = stepwise.next_due().filter(|due| *due <= END) else {
            break;
        };
        stepwise.advance(due);
        let next = stepwise.next_due();
        assert!(
            next.is_none_or(|next| next > due),
            "time stands still at {due}"
        );
    }
    stepwise.advance(END);
    assert_eq!(format!("{whole:?}"), format!("{stepwise:?}"));
}
