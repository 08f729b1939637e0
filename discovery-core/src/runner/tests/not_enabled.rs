//! Tests of services that exist but did not opt in to be served.

use proxy_model::Problem;

use super::*;
use crate::discovery::Discovery;
use crate::report::{ServiceOutcome, ServiceReport};

fn not_enabled(name: &str) -> DiscoveredService {
    DiscoveredService::not_enabled(name)
}

async fn report(source: &ScriptedDiscoverer, cycle: usize) -> Vec<ServiceReport> {
    source.wait_for_reports(cycle).await[cycle - 1]
        .services
        .clone()
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_no_longer_enabled_serves_no_more() {
    let source = ScriptedDiscoverer::new("script");
    let forgotten = Problem::warning("/Labels/Enable", "not_enabled", "nobody asks for it");
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    source.answer([
        not_enabled("a").with_problem(forgotten.clone()),
        service("b", "http://b"),
    ]);
    source.answer([broken("a"), service("b", "http://b")]);
    source.answer([service("a", "http://a"), service("b", "http://b")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;

    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["b=http://b"]);
    assert!(state.status.quarantined.is_empty());
    let told: Vec<_> = state.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["warning at /Services/a/Labels/Enable: nobody asks for it"]
    );
    let services = report(&source, 2).await;
    assert_eq!(services[0].outcome, ServiceOutcome::NotEnabled);
    assert!(services[0].problems.iter().eq([&forgotten]));

    // What was good before is forgotten, so there is nothing to go back to.
    let state = after_cycles(&source, &provider, 3).await;
    assert_eq!(serving(&state), ["b=http://b"]);
    assert_eq!(quarantined(&state), ["a"]);
    assert!(state.status.quarantined[0].last_known_good.is_none());

    let state = after_cycles(&source, &provider, 4).await;
    assert_eq!(serving(&state), ["a=http://a", "b=http://b"]);
    assert!(state.problems.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_enabled_frees_its_ids() {
    let source = ScriptedDiscoverer::new("script");
    let claims = |name: &str| {
        DiscoveredService::configured(name, fragment("orders", &format!("http://{name}")))
    };
    source.answer([claims("1"), claims("2")]);
    source.answer([not_enabled("1"), claims("2")]);
    let provider = Runner::new(source.clone()).options(options()).start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["orders=http://1"]);
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["orders=http://2"]);
    assert!(state.status.quarantined.is_empty());
}

/// The source reported it itself, so nothing must be confirmed, and a group that cannot be listed has
/// nothing to keep.
#[tokio::test(start_paused = true)]
async fn it_is_no_disappearance() {
    let source = ScriptedDiscoverer::new("script");
    let rule = ConfirmRemoval::default().with_share(0.5);
    source.answer([service("a", "http://a").in_group("g")]);
    source.answer([not_enabled("a").in_group("g")]);
    let reason = Problem::warning("", "listing", "the application cannot be listed");
    source.answer_with(Discovery::new(vec![]).group_failed("g", reason));
    let provider = Runner::new(source.clone())
        .options(options().with_confirm_removal(rule))
        .start();
    let state = after_cycles(&source, &provider, 1).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    let state = after_cycles(&source, &provider, 2).await;
    assert!(serving(&state).is_empty());
    assert_eq!(
        report(&source, 2).await[0].outcome,
        ServiceOutcome::NotEnabled
    );
    let state = after_cycles(&source, &provider, 3).await;
    assert!(serving(&state).is_empty());
    assert!(report(&source, 3).await.is_empty());
    assert_eq!(state.status.changes, 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_quarantines_it_like_any_other() {
    let source = ScriptedDiscoverer::new("script");
    let unclear = Problem::error("/Labels/Enable", "invalid_label", "neither yes nor no");
    source.answer([service("a", "http://a")]);
    source.answer([not_enabled("a").with_problem(unclear)]);
    let provider = Runner::new(source.clone()).options(options()).start();
    after_cycles(&source, &provider, 1).await;
    let state = after_cycles(&source, &provider, 2).await;
    assert_eq!(serving(&state), ["a=http://a"]);
    assert_eq!(quarantined(&state), ["a"]);
}
