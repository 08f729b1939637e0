//! The steps of a call, carried out one after the other.

use azure_loadbalancer::emulator::{EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::{ActionResult, read_snapshot};
use azure_loadbalancer::steps::{Call, Steps};
use azure_loadbalancer::{Executor, Service, ServiceKey};
use http::Method;

use crate::execute::world::*;

/// Carries out the steps of a call. Returns the number of writes.
async fn call(executor: &Executor, call: Call, services: &[Service], name: &str) -> u64 {
    let key = ServiceKey::new("default", name);
    let mut writes = 0;
    for step in call.steps(executor.config().flip_order) {
        let snapshot = read_snapshot(executor.client(), executor.config(), services)
            .await
            .unwrap();
        let members = nodes(2);
        let steps = Steps::new(executor.config(), services, &members, &snapshot);
        let done = executor
            .execute(&steps.step(call, *step, &key).unwrap())
            .await;
        assert!(
            done.is_done() && done.error().is_none(),
            "{step:?}: {done:?}"
        );
        writes += done.calls.writes;
    }
    writes
}

#[tokio::test(start_paused = true)]
async fn one_service_comes_changes_and_goes_in_steps() {
    let emulator = azure(EmulatorOptions::default().id_casing_seed(3));
    let before = contents(&emulator);
    let executor = executor(&emulator);
    let (a, b) = (service("a", &[80]), internal(service("b", &[81])));
    let both = [a.clone(), b.clone()];
    assert!(call(&executor, Call::Ensure, &both[..1], "a").await >= 3);
    call(&executor, Call::Ensure, &both, "b").await;
    let (plan, _) = executor.plan(&both, &nodes(2)).await.unwrap();
    assert!(plan.is_done(), "{plan:#?}");
    assert_eq!(call(&executor, Call::Update, &both, "a").await, 0);

    let turned = [internal(a), b];
    call(&executor, Call::Update, &turned, "a").await;
    let (plan, _) = executor.plan(&turned, &nodes(2)).await.unwrap();
    assert!(plan.is_done(), "{plan:#?}");

    call(&executor, Call::EnsureDeleted, &turned, "a").await;
    call(&executor, Call::EnsureDeleted, &turned, "b").await;
    assert_eq!(call(&executor, Call::EnsureDeleted, &turned, "b").await, 0);
    assert_eq!(contents(&emulator), before);
    assert_nothing_rejected(&emulator);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_write_that_fails_is_not_begun() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let rejection = FaultAction::Answer {
        status: 400,
        code: "Refused".to_owned(),
        retry_after: None,
    };
    emulator.with(|machine| {
        machine.inject(
            Fault::new(rejection)
                .method(&Method::PUT)
                .path("loadBalancers"),
        )
    });
    let (plan, _) = executor
        .plan(&[service("a", &[80])], &nodes(1))
        .await
        .unwrap();
    let done = executor.execute(&plan).await;
    assert!(!done.is_done());
    assert_eq!(done.error().unwrap().code(), Some("Refused"));
    assert_eq!(done.actions.len(), plan.actions.len());
    assert!(
        matches!(done.actions[0], ActionResult::Written),
        "the public address: {done:?}"
    );
    assert!(
        matches!(done.actions[1], ActionResult::Failed(_)),
        "{done:?}"
    );
    assert!(
        done.actions[2..]
            .iter()
            .all(|one| matches!(one, ActionResult::NotBegun)),
        "{done:?}"
    );
}
