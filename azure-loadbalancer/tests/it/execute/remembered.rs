//! Former addresses of the cluster, while security rules still lead to them.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use azure_loadbalancer::arm::RetryPolicy;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Lost};
use azure_loadbalancer::{Config, Executor};
use bytes::Bytes;
use http::{Method, Request, Response};
use tower_service::Service as TowerService;

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

/// The emulator, which lists nothing in place of a security group while it lies.
#[derive(Clone)]
struct Liar {
    emulator: Emulator,
    lies: Arc<AtomicBool>,
}

impl TowerService<Request<Bytes>> for Liar {
    type Response = Response<Bytes>;
    type Error = Lost;
    type Future = Ready<Result<Response<Bytes>, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let is_group = request.uri().path().contains("networkSecurityGroups");
        if is_group && request.method() == Method::GET && self.lies.load(Ordering::Relaxed) {
            let list = Response::new(Bytes::from_static(br#"{"value":[]}"#));
            return ready(Ok(list));
        }
        self.emulator.call(request)
    }
}

/// A response without an id would be written back without an id, and without its rules.
#[tokio::test(start_paused = true)]
async fn a_list_in_place_of_the_security_group_is_an_error_and_nothing_is_written() {
    let emulator = azure(EmulatorOptions::default());
    let lies = Arc::new(AtomicBool::new(false));
    let liar = Liar {
        emulator: emulator.clone(),
        lies: Arc::clone(&lies),
    };
    let client = client_through(liar, RetryPolicy::default());
    let executor = Executor::new(client, config()).unwrap();
    let flip = |is_internal: bool| {
        let service = service("c", &[80]);
        match is_internal {
            true => internal(service),
            false => service,
        }
    };
    let report = executor.reconcile(&[flip(false)], &nodes(2)).await.unwrap();
    assert!(report.is_converged(), "{report:#?}");
    let before = contents(&emulator);

    lies.store(true, Ordering::Relaxed);
    let error = executor
        .reconcile(&[flip(true)], &nodes(2))
        .await
        .unwrap_err();
    let cause = std::error::Error::source(&error).expect("there is a cause");
    assert!(cause.to_string().contains("it has no id"), "{cause}");
    assert_eq!(contents(&emulator), before);

    lies.store(false, Ordering::Relaxed);
    let report = executor.reconcile(&[flip(true)], &nodes(2)).await.unwrap();
    assert!(report.is_converged(), "{report:#?}");
    let rules = security_rules(&emulator);
    assert!(!rules.contains("Allow"), "{rules}");
}
