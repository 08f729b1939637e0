//! The cost of a reconciliation that has nothing to do.

use azure_loadbalancer::emulator::EmulatorOptions;
use azure_loadbalancer::{Config, Executor};

use crate::execute::world::*;

#[tokio::test(start_paused = true)]
async fn five_reads_are_enough_for_any_number_of_services() {
    let emulator = azure(EmulatorOptions::default().operation_requests(0));
    let client = executor(&emulator).client().clone();
    let config = Config {
        maximum_load_balancer_rule_count: 1_000,
        maximum_interface_rule_count: 10_000,
        ..config()
    };
    let executor = Executor::new(client, config).unwrap();
    let mut services = Vec::new();
    for count in [1, 10, 60] {
        while services.len() < count {
            let number = u16::try_from(services.len()).unwrap();
            let one = service(&format!("s{number}"), &[80]);
            services.push(if number % 5 == 4 { internal(one) } else { one });
        }
        let report = executor.reconcile(&services, &nodes(20)).await.unwrap();
        assert!(
            report.is_converged() && report.errors().is_empty(),
            "{:#?}",
            report.errors()
        );
        let steady = executor.reconcile(&services, &nodes(20)).await.unwrap();
        assert_eq!((steady.calls.writes, steady.calls.polls), (0, 0));
        assert!(
            steady.calls.reads <= 5,
            "{count} services: {:?}",
            steady.calls
        );
    }
    // Sixty services that change on one load balancer are one write of it, and at most one of the security
    // group.
    let changed: Vec<_> = services
        .iter()
        .map(|service| azure_loadbalancer::Service {
            client_affinity: true,
            ..service.clone()
        })
        .collect();
    let report = executor.reconcile(&changed, &nodes(20)).await.unwrap();
    assert!(report.is_converged());
    assert_eq!(
        report.calls.writes, 2,
        "one for each load balancer: {:?}",
        report.written
    );
}

#[tokio::test(start_paused = true)]
async fn an_order_that_changes_is_no_change() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let mut services = vec![service("a", &[80, 81]), service("b", &[82])];
    let mut few = nodes(5);
    executor.reconcile(&services, &few).await.unwrap();
    services.reverse();
    few.reverse();
    let report = executor.reconcile(&services, &few).await.unwrap();
    assert_eq!(report.calls.writes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_more_is_one_write_for_each_load_balancer() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let services = [service("a", &[80]), internal(service("b", &[81]))];
    executor.reconcile(&services, &nodes(3)).await.unwrap();
    let report = executor.reconcile(&services, &nodes(4)).await.unwrap();
    assert!(report.is_converged());
    assert_eq!(report.calls.writes, 2, "{:?}", report.written);
}
