//! The events in the demo's cluster over a minute, repeated.

use std::sync::Arc;
use std::time::Duration;

use servicefabric_emulator::cluster::{
    Cluster, FabricError, FabricName, PageRequest, PropertyValue, ServiceCreation, ServiceScale,
    ServiceUpdate, UpgradeRequest,
};
use servicefabric_emulator::hosting::{PackageKey, Span};

use crate::workload::Instances;

/// The duration of one run of the story at normal speed.
pub(crate) const LENGTH: Duration = Duration::from_secs(66);

/// A step of the story.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// The time since the beginning of the story.
    pub(crate) at: Duration,
    /// The description for the person at the terminal.
    pub(crate) says: &'static str,
    act: Act,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// An operation on the cluster.
    Cluster(fn(&mut Cluster) -> Result<(), FabricError>),
    /// The health of the service's instances: one ill, or all healthy again.
    Ill(&'static str, bool),
}

/// The steps, in order.
pub(crate) const STEPS: [Step; 10] = [
    step(8, "scale-out: Catalog gets a third instance", |cluster| {
        set_instances(cluster, "fabric:/Shop/Catalog", 3)
    }),
    ill(
        14,
        "an instance of Catalog falls ill: its health probes answer 503, and it gets no more requests",
        true,
    ),
    ill(21, "it recovers", false),
    step(
        24,
        "crash: the process behind the primary of Orders/eu exits; a secondary takes over, and the process \
         is started again after a back-off",
        crash_primary,
    ),
    step(
        30,
        "rolling upgrade: Site goes from 7.0.0 to 8.0.0, one upgrade domain after the other",
        |cluster| upgrade(cluster, "8.0.0"),
    ),
    step(
        40,
        "bad label: somebody overrides a route of Payments with a broken path; it keeps serving as before, \
         and the cluster gets a report that it is unhealthy",
        |cluster| {
            let broken = PropertyValue::String("/payments/{oops".to_owned());
            cluster.put_property(&payments(), PATH, broken, "")
        },
    ),
    step(
        48,
        "the label is corrected, and the cluster gets a report",
        |cluster| cluster.delete_property(&payments(), PATH),
    ),
    step(51, "a service joins: Reviews, at /reviews", join),
    step(56, "Site goes back to 7.0.0", |cluster| {
        upgrade(cluster, "7.0.0")
    }),
    step(
        58,
        "Reviews leaves, and Catalog's third instance with it",
        |cluster| {
            cluster.delete_service(&name("fabric:/Shop/Reviews"))?;
            set_instances(cluster, "fabric:/Shop/Catalog", 2)
        },
    ),
];

/// The label that is set to a wrong value.
const PATH: &str = "YARP.Routes.payments.Path";

const fn step(
    at: u64,
    says: &'static str,
    act: fn(&mut Cluster) -> Result<(), FabricError>,
) -> Step {
    Step {
        at: Duration::from_secs(at),
        says,
        act: Act::Cluster(act),
    }
}

const fn ill(at: u64, says: &'static str, ill: bool) -> Step {
    Step {
        at: Duration::from_secs(at),
        says,
        act: Act::Ill("catalog", ill),
    }
}

impl Step {
    /// Carries out the step.
    pub(crate) fn act(
        self,
        cluster: &mut Cluster,
        instances: &Instances,
    ) -> Result<(), FabricError> {
        match self.act {
            Act::Cluster(act) => act(cluster),
            Act::Ill(service, ill) => {
                instances.set_ill(service, ill);
                Ok(())
            }
        }
    }
}

/// Returns true if every partition has its target number of replicas, and they are reachable.
pub(crate) fn is_settled(cluster: &Cluster) -> bool {
    let page = PageRequest::default();
    let applications = cluster.applications(None, &page);
    let services = applications
        .items
        .iter()
        .flat_map(|application| cluster.services(&application.name, None, &page))
        .flat_map(|services| services.items);
    let mut partitions = services
        .flat_map(|service| cluster.partitions(&service.name, &page))
        .flat_map(|partitions| partitions.items);
    partitions.all(|partition| {
        let wanted = match partition.scale {
            ServiceScale::Stateless { instance_count, .. } => i64::from(instance_count),
            ServiceScale::Stateful { target, .. } => i64::from(target),
        };
        let ready = partition
            .replicas
            .values()
            .filter(|replica| replica.is_resolvable());
        ready.count() as i64 >= wanted
    })
}

/// The service whose label is set to a wrong value.
fn payments() -> FabricName {
    name("fabric:/Shop/Payments")
}

fn name(text: &'static str) -> FabricName {
    FabricName::parse(text).expect("the names of the demo are names")
}

fn set_instances(
    cluster: &mut Cluster,
    service: &'static str,
    count: i32,
) -> Result<(), FabricError> {
    let update = ServiceUpdate {
        instance_count: Some(count),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(service), update)
}

/// Ends the process that hosts the first partition's primary.
fn crash_primary(cluster: &mut Cluster) -> Result<(), FabricError> {
    let partitions = cluster.partitions(&name("fabric:/Shop/Orders"), &PageRequest::default())?;
    let primary = partitions.items.iter().find_map(|p| p.primary());
    let Some(node) = primary.map(|primary| Arc::clone(&primary.node)) else {
        // The primary is moving already.
        return Ok(());
    };
    let process = PackageKey::shared("fabric:/Shop", "OrdersPkg").process("Code");
    cluster.crash_code_package(&node, &process, 3)
}

/// Long enough to be seen between two upgrade domains.
const BETWEEN_DOMAINS: Span = Span::from_millis(500);

fn upgrade(cluster: &mut Cluster, version: &str) -> Result<(), FabricError> {
    cluster.upgrade_application(
        &name("fabric:/Site"),
        UpgradeRequest::new(version).with_wait(BETWEEN_DOMAINS),
    )
}

fn join(cluster: &mut Cluster) -> Result<(), FabricError> {
    let scale = ServiceScale::Stateless {
        instance_count: 2,
        min_instance_count: 1,
    };
    let reviews = name("fabric:/Shop/Reviews");
    cluster.create_service(ServiceCreation::new(
        name("fabric:/Shop"),
        reviews,
        "ReviewsType",
        scale,
    ))
}

#[cfg(test)]
mod tests {
    use servicefabric_emulator::hosting::Timestamp;
    use servicefabric_emulator::topology::Topology;

    use super::*;

    #[test]
    fn steps_are_in_order_and_end_before_the_story_does() {
        assert!(STEPS.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert!(STEPS.iter().all(|step| step.at < LENGTH));
    }

    #[test]
    fn the_story_can_be_told_three_times_and_ends_as_it_began() {
        let topology = Topology::from_toml(crate::TOPOLOGY).unwrap();
        let mut cluster = Cluster::new(&topology).unwrap();
        let moment = |after: Duration| Timestamp::from_millis(after.as_secs() * 1000);
        let began = |cluster: &Cluster| {
            let page = PageRequest::default();
            let shop = cluster
                .services(&name("fabric:/Shop"), None, &page)
                .unwrap();
            let services: Vec<_> = shop.items.iter().map(|s| s.name.to_string()).collect();
            let site = cluster.application(&name("fabric:/Site")).unwrap();
            (services, site.type_version.clone())
        };
        let before = began(&cluster);
        for round in 0..3 {
            let start = LENGTH * round;
            for step in STEPS {
                cluster.advance(moment(start + step.at));
                step.act(&mut cluster, &Instances::default())
                    .unwrap_or_else(|error| panic!("{}: {error}", step.says));
            }
            cluster.advance(moment(start + LENGTH));
            assert_eq!(began(&cluster), before, "round {round}");
        }
    }
}
