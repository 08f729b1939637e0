//! Descriptions of emulator clusters.

use servicefabric_emulator::cluster::Cluster;
use servicefabric_emulator::hosting::Timestamp;
use servicefabric_emulator::topology::{
    PartitionsDescription, ServiceDescription, Topology, TopologyError,
};

use crate::input::text;

/// Simulated lifetime of a cluster.
const END: Timestamp = Timestamp::from_secs(5);

/// Maximum number of nodes of a cluster that is built, and of the replicas on them.
const MOST: (usize, u64) = (12, 120);

/// Maximum number of steps to the next event. The remaining time passes in one step.
const MAX_STEPS: usize = 2_000;

/// Fuzzes a topology: JSON if it begins with a brace, otherwise TOML.
///
/// * Two readings give the same result, which is written and read again as the same.
/// * Errors are reported: at most 100 problems, each with a sentence.
/// * A topology that passes the check becomes a cluster, or the cluster reports why not. The same
///   topology becomes the same cluster, including every id.
/// * Events occur only at the reported due times: one long step and steps from event to event give
///   the same result.
pub fn emulator_topology(data: &[u8]) {
    let text = text(data);
    let is_json = text.trim_start().starts_with('{');
    let read = || match is_json {
        true => Topology::from_json(&text),
        false => Topology::from_toml(&text),
    };
    let topology = read();
    // No comparison of the values: NaN is not equal to itself.
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

/// Checks the round trip. JSON has no NaN or infinite numbers, and labels may contain TOML dates.
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

/// Returns true if a cluster of this topology is quick to build.
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
