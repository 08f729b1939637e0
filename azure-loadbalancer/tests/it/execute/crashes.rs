//! Crashes: the process ends after any of its requests, before or after it was carried out, and another one
//! continues.

use std::future::{Ready, ready};
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};

use azure_loadbalancer::arm::RetryPolicy;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Lost};
use azure_loadbalancer::{Config, Executor, Node, Service};
use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service as TowerService;

use crate::execute::world::*;

/// A transport that carries a number of requests. The next one reaches only the emulator, if at all.
#[derive(Clone)]
struct Crashing {
    emulator: Emulator,
    left: Arc<AtomicI64>,
    is_carried_out: bool,
}

impl TowerService<Request<Bytes>> for Crashing {
    type Response = Response<Bytes>;
    type Error = Lost;
    type Future = Ready<Result<Response<Bytes>, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        if left > 0 {
            return self.emulator.call(request);
        }
        if left == 0 && self.is_carried_out {
            drop(self.emulator.call(request));
        }
        ready(Err(Lost))
    }
}

/// Reconciles up to a request. Returns true if it completed.
pub(crate) async fn up_to(
    emulator: &Emulator,
    requests: i64,
    is_carried_out: bool,
    config: &Config,
    services: &[Service],
    nodes: &[Node],
) -> bool {
    let left = Arc::new(AtomicI64::new(requests));
    let crashing = Crashing {
        emulator: emulator.clone(),
        left: Arc::clone(&left),
        is_carried_out,
    };
    let client = client_through(crashing, RetryPolicy::never());
    let executor = Executor::new(client, config.clone()).unwrap();
    let _ = executor.reconcile(services, nodes).await;
    left.load(Ordering::Relaxed) >= 0
}

fn gets_an_address(service: &Service) -> bool {
    let is_internal = |key: &String| key.ends_with("azure-load-balancer-internal");
    service.load_balancer_ip.is_none() && !service.annotations.keys().any(is_internal)
}

/// Moves from one set of services to another, with a crash after every request on the way.
async fn assert_survives(before: &[Service], after: &[Service]) {
    for is_carried_out in [false, true] {
        let mut requests = 0;
        loop {
            let emulator = azure(EmulatorOptions::default());
            let report = executor(&emulator)
                .reconcile(before, &nodes(2))
                .await
                .unwrap();
            assert!(
                report.is_converged() && report.errors().is_empty(),
                "{report:#?}"
            );
            let got_through = up_to(
                &emulator,
                requests,
                is_carried_out,
                &config(),
                after,
                &nodes(2),
            )
            .await;
            emulator.with(|machine| machine.finish_operations());
            let next = executor(&emulator);
            let report = next.reconcile(after, &nodes(2)).await.unwrap();
            assert!(
                report.is_converged() && report.errors().is_empty(),
                "after {requests}: {report:#?}"
            );
            let (plan, _) = next.plan(after, &nodes(2)).await.unwrap();
            assert!(plan.is_done(), "after {requests}: {plan:#?}");
            let kept = after.len();
            let shown = contents(&emulator);
            let frontends: usize = shown
                .iter()
                .filter(|(id, _)| id.contains("/loadbalancers/testcluster"))
                .map(|(_, lb)| {
                    lb["properties"]["frontendIPConfigurations"]
                        .as_array()
                        .unwrap()
                        .len()
                })
                .sum();
            assert_eq!(frontends, kept, "after {requests}");
            let addresses = shown
                .keys()
                .filter(|id| id.contains("/publicipaddresses/testcluster-"));
            let external = after.iter().filter(|service| gets_an_address(service));
            assert_eq!(addresses.count(), external.count(), "after {requests}");
            assert_nothing_rejected(&emulator);
            if got_through {
                break;
            }
            requests += 1;
        }
        assert!(requests > 5, "there was something to crash");
    }
}

#[test]
fn while_services_come() {
    run(assert_survives(
        &[],
        &[service("a", &[80]), internal(service("b", &[81]))],
    ));
}

#[test]
fn while_services_go() {
    run(assert_survives(
        &[service("a", &[80]), internal(service("b", &[81]))],
        &[],
    ));
}

#[test]
fn while_services_turn_outside_in() {
    let (a, b) = (service("a", &[80]), service("b", &[81]));
    run(assert_survives(
        &[a.clone(), internal(b.clone())],
        &[internal(a), b],
    ));
}

#[test]
fn while_an_address_changes() {
    let auto = service("a", &[80]);
    let pinned = Service {
        load_balancer_ip: Some(USER_IP.to_owned()),
        ..auto.clone()
    };
    let (auto, pinned) = (from_ref(&auto), from_ref(&pinned));
    run(assert_survives(auto, pinned));
    run(assert_survives(pinned, auto));
}

#[test]
fn while_an_address_changes_its_resource_group() {
    let here = service("a", &[80]);
    let there = elsewhere(here.clone());
    let (here, there) = (from_ref(&here), from_ref(&there));
    run(assert_survives(there, here));
    run(assert_survives(here, there));
    run(assert_survives(there, &[]));
}
