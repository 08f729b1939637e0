//! Concurrent writes by other clients.

use std::future::Ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use azure_loadbalancer::arm::RetryPolicy;
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault, FaultAction, Lost};
use azure_loadbalancer::{Executor, LoadBalancerProvider, ServiceKey};
use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service as TowerService;

use crate::execute::world::*;

#[tokio::test(start_paused = true)]
async fn what_was_overtaken_is_planned_anew_at_once() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    executor
        .reconcile(&[service("web", &[80])], &nodes(1))
        .await
        .unwrap();
    emulator.with(|machine| {
        machine.inject(
            Fault::new(FaultAction::Interfere)
                .method(&Method::PUT)
                .path("loadBalancers")
                .times(3),
        )
    });
    let began = Instant::now();
    let report = executor
        .reconcile(&[service("web", &[80, 81])], &nodes(1))
        .await
        .unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    assert_eq!(report.conflicts, 3);
    assert!(
        began.elapsed().as_secs() < 5,
        "no back-off yet: {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn who_is_overtaken_again_and_again_waits_and_then_gives_up() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    executor
        .reconcile(&[service("web", &[80])], &nodes(1))
        .await
        .unwrap();
    let interfere = |times| {
        Fault::new(FaultAction::Interfere)
            .method(&Method::PUT)
            .path("loadBalancers")
            .times(times)
    };
    emulator.with(|machine| machine.inject(interfere(5)));
    let began = Instant::now();
    let report = executor
        .reconcile(&[service("web", &[80, 81])], &nodes(1))
        .await
        .unwrap();
    assert!(report.is_converged(), "{report:#?}");
    assert!(began.elapsed().as_secs() >= 10, "{:?}", began.elapsed());

    emulator.with(|machine| machine.inject(interfere(1_000)));
    let report = executor
        .reconcile(&[service("web", &[80])], &nodes(1))
        .await
        .unwrap();
    assert!(!report.is_converged());
    let error = report
        .error_of(&ServiceKey::new("default", "web"))
        .unwrap()
        .to_string();
    assert!(error.contains("something else may be writing"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn somebody_else_s_write_that_is_under_way_is_waited_for() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    executor
        .reconcile(&[service("web", &[80])], &nodes(1))
        .await
        .unwrap();
    let busy = FaultAction::Answer {
        status: 409,
        code: "AnotherOperationInProgress".to_owned(),
        retry_after: None,
    };
    emulator.with(|machine| machine.inject(Fault::new(busy).method(&Method::PUT).times(2)));
    let began = Instant::now();
    let report = executor
        .reconcile(&[service("web", &[80, 81])], &nodes(1))
        .await
        .unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    assert!(began.elapsed().as_secs() >= 10, "{:?}", began.elapsed());
}

// Case G16.
#[tokio::test(start_paused = true)]
async fn two_at_once_lose_nothing() {
    for requests in 0..4 {
        let emulator = azure(EmulatorOptions::default().operation_requests(requests));
        let (one, two) = (executor(&emulator), executor(&emulator));
        let services = [
            service("a", &[80]),
            service("b", &[81]),
            internal(service("c", &[82])),
        ];
        let few = nodes(2);
        let (first, second) = tokio::join!(
            one.reconcile(&services, &few),
            two.reconcile(&services, &few)
        );
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(
            first.errors().is_empty() && second.errors().is_empty(),
            "{first:#?} {second:#?}"
        );
        let (plan, _) = one.plan(&services, &few).await.unwrap();
        assert!(plan.is_done(), "{plan:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_that_know_only_their_own_services_lose_nothing() {
    let emulator = azure(EmulatorOptions::default().operation_requests(2));
    let (one, two) = (
        LoadBalancerProvider::new(executor(&emulator)),
        LoadBalancerProvider::new(executor(&emulator)),
    );
    let (a, b, few) = (service("a", &[80]), service("b", &[81]), nodes(2));
    let (first, second) = tokio::join!(one.ensure(&a, &few), two.ensure(&b, &few));
    assert_eq!((first.unwrap().len(), second.unwrap().len()), (1, 1));
    assert_eq!(
        one.get(&b).await.unwrap().map(|ingress| ingress.len()),
        Some(1)
    );
    assert_eq!(
        two.get(&a).await.unwrap().map(|ingress| ingress.len()),
        Some(1)
    );
}

/// A client that adds a frontend to a load balancer just before its deletion.
#[derive(Clone)]
struct Rival {
    emulator: Emulator,
    is_done: Arc<AtomicBool>,
}

impl TowerService<Request<Bytes>> for Rival {
    type Response = Response<Bytes>;
    type Error = Lost;
    type Future = Ready<Result<Response<Bytes>, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let is_deletion =
            request.method() == Method::DELETE && request.uri().path().contains("loadBalancers");
        if is_deletion && !self.is_done.swap(true, Ordering::Relaxed) {
            let id = network("loadBalancers", "testCluster");
            let all = self.emulator.with(|machine| machine.resources());
            let mut balancer = all
                .into_iter()
                .find(|one| one["id"].as_str() == Some(&id))
                .unwrap();
            let frontends = balancer["properties"]["frontendIPConfigurations"]
                .as_array_mut()
                .unwrap();
            frontends.push(json!({ "name": "rival", "properties": { "publicIPAddress": { "id": network("publicIPAddresses", "user-ip") } } }));
            self.emulator
                .with(|machine| machine.put(&id, balancer).unwrap());
        }
        self.emulator.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn a_frontend_that_comes_just_before_a_deletion_is_not_lost() {
    let emulator = azure(EmulatorOptions::default());
    executor(&emulator)
        .reconcile(&[service("web", &[80])], &nodes(1))
        .await
        .unwrap();
    let rival = Rival {
        emulator: emulator.clone(),
        is_done: Arc::default(),
    };
    let deleting = Executor::new(client_through(rival, RetryPolicy::default()), config()).unwrap();
    let report = deleting.reconcile(&[], &nodes(1)).await.unwrap();
    assert!(report.is_converged(), "{report:#?}");
    assert_eq!(report.conflicts, 1);
    let all = contents(&emulator);
    let frontends = &all[&network("loadBalancers", "testCluster").to_lowercase()]["properties"]["frontendIPConfigurations"];
    assert_eq!(frontends.as_array().unwrap().len(), 1, "{frontends}");
    assert_eq!(frontends[0]["name"], "rival");
}
