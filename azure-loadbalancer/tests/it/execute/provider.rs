//! The interface of one service at a time.

use azure_loadbalancer::LoadBalancerProvider;
use azure_loadbalancer::emulator::EmulatorOptions;
use azure_loadbalancer::execute::ServiceError;
use azure_loadbalancer::provider::ProviderError;

use crate::execute::world::*;

// Cases G5, G8, G9, with the calls of Kubernetes.
#[tokio::test(start_paused = true)]
async fn a_service_comes_and_goes() {
    let emulator = azure(EmulatorOptions::default());
    let before = contents(&emulator);
    let provider = LoadBalancerProvider::new(executor(&emulator));
    let web = service("web", &[80]);
    assert_eq!(provider.get(&web).await.unwrap(), None);
    let ingress = provider.ensure(&web, &nodes(2)).await.unwrap();
    assert_eq!(ingress.len(), 1);
    assert_eq!(provider.get(&web).await.unwrap(), Some(ingress.clone()));

    let writes = provider.executor().client().counts().writes;
    assert_eq!(provider.update(&web, &nodes(2)).await.unwrap(), ingress);
    assert_eq!(
        provider.executor().client().counts().writes,
        writes,
        "the same again writes nothing"
    );

    // External becomes internal, and external again.
    let inside = provider
        .update(&internal(web.clone()), &nodes(2))
        .await
        .unwrap();
    assert!(inside[0].ip.to_string().starts_with("10.0."));
    provider.update(&web, &nodes(2)).await.unwrap();

    provider.ensure_deleted(&web, &nodes(2)).await.unwrap();
    provider.ensure_deleted(&web, &nodes(2)).await.unwrap();
    assert_eq!(provider.get(&web).await.unwrap(), None);
    assert_eq!(contents(&emulator), before);
    assert_nothing_rejected(&emulator);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_was_started_anew_leaves_alone_what_it_has_not_heard_of() {
    let emulator = azure(EmulatorOptions::default());
    let (a, b) = (service("a", &[80]), service("b", &[81]));
    let first = LoadBalancerProvider::new(executor(&emulator));
    let where_a_is = first.ensure(&a, &nodes(1)).await.unwrap();
    let second = LoadBalancerProvider::new(executor(&emulator));
    second.ensure(&b, &nodes(1)).await.unwrap();
    assert_eq!(second.get(&a).await.unwrap(), Some(where_a_is));
    // A change of kind that happened meanwhile is found all the same.
    second
        .ensure_deleted(&internal(a.clone()), &nodes(1))
        .await
        .unwrap();
    assert_eq!(second.get(&a).await.unwrap(), None);
    assert!(second.get(&b).await.unwrap().is_some());
    // A complete list removes the rest.
    second.reconcile_all(&[], &nodes(1)).await.unwrap();
    assert_eq!(second.get(&b).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn an_error_says_which_service_and_why() {
    let emulator = azure(EmulatorOptions::default());
    let provider = LoadBalancerProvider::new(executor(&emulator));
    let bad = annotated(
        service("bad", &[80]),
        "azure-load-balancer-tcp-idle-timeout",
        "3",
    );
    let error = provider.ensure(&bad, &nodes(1)).await.unwrap_err();
    let ProviderError::Service { service, source } = &error else {
        panic!("{error:?}")
    };
    let ServiceError::Plan(why) = &**source else {
        panic!("{source:?}")
    };
    assert_eq!(service, &bad.key);
    assert!(why.to_string().contains("idle-timeout"), "{why}");
    assert_eq!(emulator.with(|machine| machine.counts().writes), 0);
    // It can still be deleted.
    provider.ensure_deleted(&bad, &nodes(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_while_another_waits_stays_deleted() {
    let emulator = azure(EmulatorOptions::default().operation_requests(2));
    let provider = LoadBalancerProvider::new(executor(&emulator));
    let (a, b, few) = (service("a", &[80]), service("b", &[81]), nodes(1));
    provider.ensure(&a, &few).await.unwrap();
    // Both are requested at the same time as the deletion, and one of them has waited for its turn.
    let (first, deleted, second) = tokio::join!(
        provider.ensure(&b, &few),
        provider.ensure_deleted(&a, &few),
        provider.ensure(&b, &few)
    );
    assert_eq!(first.unwrap(), second.unwrap());
    deleted.unwrap();
    assert_eq!(provider.get(&a).await.unwrap(), None);
}
