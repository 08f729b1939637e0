//! Former addresses of the cluster, while security rules still lead to them.

use azure_loadbalancer::arm::RetryPolicy;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use azure_loadbalancer::{Config, Executor};
use http::Method;

use crate::execute::world::*;

/// The executor of a cluster that shares its security group.
fn with_neighbours(emulator: &Emulator) -> Executor {
    let config = Config {
        exclusive_security_group: false,
        ..config()
    };
    Executor::new(
        client_through(emulator.clone(), RetryPolicy::default()),
        config,
    )
    .unwrap()
}

fn security_rules(emulator: &Emulator) -> String {
    let all = contents(emulator);
    all[&network("networkSecurityGroups", "nsg").to_lowercase()]["properties"]["securityRules"]
        .to_string()
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_write_left_open_is_closed_by_the_next() {
    let emulator = azure(EmulatorOptions::default());
    let executor = with_neighbours(&emulator);
    let inside = |address: &str| {
        let mut service = internal(service("inside", &[81]));
        service.source_ranges = vec!["10.0.0.0/8".to_owned()];
        service.load_balancer_ip = Some(address.to_owned());
        service
    };
    let flat = || {
        annotated(
            service("flat", &[80]),
            "azure-disable-load-balancer-floating-ip",
            "true",
        )
    };
    let services = [flat(), inside("10.0.8.1")];
    let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
    assert!(report.is_converged(), "{report:#?}");
    let rules = security_rules(&emulator);
    assert!(rules.contains("10.0.9.3") && rules.contains("10.0.8.1"));

    // Pools and frontends are written, and the security group is not.
    let fault = answer(400, "Refused").method(&Method::PUT).times(1_000);
    emulator.with(|machine| machine.inject(fault.path("networkSecurityGroups")));
    let services = [flat(), inside("10.0.8.2")];
    let report = executor.reconcile(&services, &nodes(2)).await.unwrap();
    assert!(!report.is_converged());
    let rejected = emulator.with(|machine| machine.requests());
    let rejected = rejected
        .iter()
        .filter(|one| one.status == Some(400))
        .count();
    // One for both services and the orphans, one without the second half of them, and one for each of that
    // half.
    assert!(
        (3..=5).contains(&rejected),
        "{rejected} writes were rejected"
    );
    let rules = security_rules(&emulator);
    assert!(rules.contains("10.0.9.3") && rules.contains("10.0.8.1"));
    assert!(
        !contents(&emulator)[&network("loadBalancers", "testCluster").to_lowercase()]
            .to_string()
            .contains("10.0.9.3")
    );

    emulator.with(|machine| machine.clear_faults());
    for _ in 0..2 {
        let report = executor.reconcile(&services, &nodes(2)).await.unwrap();
        assert!(report.is_converged(), "{report:#?}");
        let rules = security_rules(&emulator);
        assert!(
            !rules.contains("10.0.9.3") && !rules.contains("10.0.8.1"),
            "{rules}"
        );
        assert!(rules.contains("10.0.9.2") && rules.contains("10.0.8.2"));
    }
}
