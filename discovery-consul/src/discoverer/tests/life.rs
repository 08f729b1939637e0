//! Tests that the published configuration follows changes.

use discovery_core::{DiscoverErrorKind, SourceState};
use tokio::time::Instant;

use super::*;
use crate::client::ConsulOptions;
use crate::testing::Fault;

fn addresses(state: &ProviderState, name: &str) -> Vec<String> {
    destinations(state, name).into_keys().collect()
}

#[tokio::test(start_paused = true)]
async fn a_flip_is_published_within_a_second() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    consul.register("sas", "n1", served("web", "web-2", 82));
    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    when(&provider, "both", |state| {
        addresses(state, "web").len() == 2
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let started = Instant::now();
    consul.set_check("sas", "web-1", HealthStatus::Critical);
    let state = when(&provider, "one", |state| addresses(state, "web").len() == 1).await;
    assert_eq!(addresses(&state, "web"), ["http://10.0.0.1:82"]);
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}

/// A retry after a rejected token may be 30 s away.
#[tokio::test(start_paused = true)]
async fn a_new_token_in_the_file_is_used_within_two_seconds() {
    const MOST: Duration = Duration::from_secs(2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "old").unwrap();
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    let client = consul.client_with(ConsulOptions::default().with_token_file(file.clone()));
    let provider = ConsulDiscoverer::with_client(client, DiscoveryOptions::default());
    let provider = provider.runner().start();
    let is = |wanted| move |state: &ProviderState| state.status.state == wanted;
    when(&provider, "live", is(SourceState::Live)).await;
    for (number, quiet) in [7_u64, 61, 300, 3601].into_iter().enumerate() {
        consul.fail("", Fault::Status(403, "ACL not found"));
        when(&provider, "failing", is(SourceState::Failing)).await;
        let error = provider.state().status.last_error.clone().unwrap();
        assert_eq!(error.kind, DiscoverErrorKind::Rejected);
        assert!(error.message.contains("403"), "{}", error.message);
        // Wherever the waits between two retries stand.
        tokio::time::sleep(Duration::from_millis(quiet * 1001)).await;
        assert_eq!(provider.state().status.state, SourceState::Failing);
        let token = format!("new-{number}");
        std::fs::write(&file, &token).unwrap();
        consul.heal();
        let begin = Instant::now();
        when(&provider, "live again", is(SourceState::Live)).await;
        let took = begin.elapsed();
        assert!(took <= MOST, "{took:?} after {quiet} s");
        let used = consul.requests().pop().and_then(|request| request.token);
        assert_eq!(used.as_deref(), Some(&*token));
    }
}

#[tokio::test(start_paused = true)]
async fn while_consul_was_never_read_there_is_an_error_and_no_configuration() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    consul.fail("", Fault::Status(500, "No cluster leader"));
    let once = once(&consul, DiscoveryOptions::default()).await;
    assert!(once.report.is_none() && once.state.config.is_none());
    let failure = once.state.status.last_error.clone().unwrap();
    assert_eq!(failure.kind, DiscoverErrorKind::Transient);
    assert!(
        failure.message.contains("No cluster leader"),
        "{}",
        failure.message
    );

    // A token that is rejected at the first cycle is reported as that.
    consul.heal();
    consul.fail("", Fault::Status(403, "ACL not found"));
    let once = self::once(&consul, DiscoveryOptions::default()).await;
    assert!(once.report.is_none() && once.state.config.is_none());
    let failure = once.state.status.last_error.clone().unwrap();
    assert_eq!(failure.kind, DiscoverErrorKind::Rejected);
    assert!(failure.message.contains("403"), "{}", failure.message);
    consul.heal();
    consul.fail("", Fault::Status(500, "No cluster leader"));

    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    when(&provider, "failing", |state| {
        state.status.state == SourceState::Failing
    })
    .await;
    consul.heal();
    when(&provider, "live", |state| {
        addresses(state, "web").len() == 1
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_said_and_changes_nothing() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    when(&provider, "live", |state| {
        addresses(state, "web").len() == 1
    })
    .await;
    consul.fail("", Fault::Reset);
    let state = when(&provider, "the failure", |state| {
        state.status.state == SourceState::Failing
    })
    .await;
    assert_eq!(
        (addresses(&state, "web").len(), state.status.changes),
        (1, 1)
    );
    consul.heal();
    let state = when(&provider, "the recovery", |state| {
        state.status.state == SourceState::Live
    })
    .await;
    assert_eq!(state.status.changes, 1);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_one_datacenter_is_a_warning_and_changes_nothing() {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("vla");
    consul.register("sas", "n1", served("web", "web-1", 81));
    consul.register("vla", "n2", served("web", "web-2", 82));
    let watch = WatchOptions::default().with_datacenters(Datacenters::All);
    let provider = discoverer(&consul, DiscoveryOptions::default().with_watch(watch))
        .runner()
        .start();
    when(&provider, "live", |state| {
        addresses(state, "web").len() == 2
    })
    .await;
    consul.fail_in("vla", "", Fault::Reset);
    let state = when(&provider, "the warning", |state| {
        problems(state)
            .iter()
            .any(|(code, _)| code == "datacenter_failing")
    })
    .await;
    assert_eq!(
        (addresses(&state, "web").len(), state.status.changes),
        (2, 1)
    );
    consul.heal();
    let state = when(&provider, "no warning", |state| state.problems.is_empty()).await;
    assert_eq!(state.status.changes, 1);
}

#[tokio::test(start_paused = true)]
async fn lost_rights_are_said_and_take_nothing_away() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    when(&provider, "live", |state| {
        addresses(state, "web").len() == 1
    })
    .await;
    for path in ["catalog", "health"] {
        consul.fail(path, Fault::Empty);
    }
    let said = |state: &ProviderState| {
        problems(state)
            .iter()
            .any(|(code, _)| code == "catalog_hidden")
    };
    when(&provider, "the warning", said).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let state = provider.state();
    assert_eq!(addresses(&state, "web").len(), 1);
    // It is unknown if the serving configuration is correct.
    assert_eq!(state.status.state, SourceState::Failing);
    assert!(said(&state));
    let error = state.status.last_error.as_ref().unwrap();
    assert!(error.message.contains("Consul hides"), "{}", error.message);
    consul.heal();
    let live = |state: &ProviderState| state.status.state == SourceState::Live && !said(state);
    when(&provider, "the recovery", live).await;
}

/// The agent was away for long, so that waits have grown.
#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_back_is_noticed_within_two_seconds() {
    const MOST: Duration = Duration::from_secs(2);
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    when(&provider, "live", |state| {
        state.status.state == SourceState::Live
    })
    .await;
    for (number, outage) in [7_u64, 61, 300, 601, 3601].into_iter().enumerate() {
        consul.fail("", Fault::Reset);
        // Wherever the waits between two retries stand.
        tokio::time::sleep(Duration::from_millis(outage * 1001)).await;
        assert_eq!(provider.state().status.state, SourceState::Failing);
        let (check, most) = match number % 2 {
            0 => (HealthStatus::Critical, 0),
            _ => (HealthStatus::Passing, 1),
        };
        consul.set_check("sas", "web-1", check);
        consul.heal();
        let healed = Instant::now();
        let is_news = |state: &ProviderState| addresses(state, "web").len() == most;
        when(&provider, "the news", is_news).await;
        let took = healed.elapsed();
        assert!(took <= MOST, "{took:?} after {outage} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_datacenter_delays_the_first_answer_by_the_patience_and_is_named() {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("vla");
    consul.register("sas", "n1", served("web", "web-1", 81));
    consul.fail_in("vla", "", Fault::Hang);
    let started = Instant::now();
    let state = once(&consul, all_datacenters()).await.state;
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(addresses(&state, "web").len(), 1);
    assert_eq!(problems(&state)[0].0, "datacenter_incomplete");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_nobody_could_read_is_failed_and_others_are_served() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    consul.register("sas", "n1", served("broken", "broken", 82));
    consul.fail("health/service/broken", Fault::Status(500, "boom"));
    let state = once(&consul, DiscoveryOptions::default()).await.state;
    assert_eq!(addresses(&state, "web").len(), 1);
    let quarantined: Vec<_> = state
        .status
        .quarantined
        .iter()
        .map(|q| &*q.service)
        .collect();
    assert_eq!(quarantined, ["broken"]);
}

#[tokio::test(start_paused = true)]
async fn defaults_apply_where_nothing_is_said_and_bad_ones_leave_the_last_known_good() {
    let consul = FakeConsul::new("sas");
    let own = served("own", "own", 80).with_tag("proxy.cluster.loadBalancingPolicy=Random");
    consul.register("sas", "n1", served("web", "web", 80));
    consul.register("sas", "n1", own);
    consul.register("sas", "n1", ServiceDefinition::new("silent", 80));
    let json = br#"{"cluster.loadBalancingPolicy": "RoundRobin", "proxy.cluster.metadata.a": 1}"#;
    consul.put("sas", "proxy/defaults", json);
    let options = DiscoveryOptions::default().with_defaults_key("proxy/defaults");
    let provider = discoverer(&consul, options).runner().start();
    let policy = |state: &ProviderState, name: &str| {
        cluster(state, name).and_then(|cluster| cluster.load_balancing_policy.clone())
    };
    let state = when(&provider, "live", |state| cluster(state, "web").is_some()).await;
    assert_eq!(policy(&state, "web").as_deref(), Some("RoundRobin"));
    assert_eq!(policy(&state, "own").as_deref(), Some("Random"));
    assert_eq!(
        problems(&state),
        [],
        "who does not ask to be served gets no defaults"
    );
    for bad in [&b"[1]"[..], b"{", br#"{"a": {}}"#] {
        consul.put("sas", "proxy/defaults", bad);
        let state = when(&provider, "the warning", |state| !state.problems.is_empty()).await;
        assert_eq!(problems(&state)[0].0, "defaults_unusable");
        assert_eq!(policy(&state, "web").as_deref(), Some("RoundRobin"));
        consul.put("sas", "proxy/defaults", json);
        when(&provider, "no warning", |state| state.problems.is_empty()).await;
    }
    consul.fail("kv", Fault::Status(403, "Permission denied"));
    let state = when(&provider, "the warning", |state| !state.problems.is_empty()).await;
    assert_eq!(policy(&state, "web").as_deref(), Some("RoundRobin"));
    consul.heal();
    consul.put(
        "sas",
        "proxy/defaults",
        br#"{"cluster.loadBalancingPolicy": "FirstAlphabetical"}"#,
    );
    when(&provider, "the new ones", |state| {
        policy(state, "web").as_deref() == Some("FirstAlphabetical")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_discoverer_ends_its_requests() {
    let consul = FakeConsul::new("sas");
    let discoverer = discoverer(&consul, DiscoveryOptions::default());
    discoverer.discover().await.unwrap();
    assert!(discoverer.state().is_some());
    drop(discoverer);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = consul.requests().len();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(consul.requests().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_consul_that_shows_nothing_at_all_from_the_beginning_is_not_believed() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    for path in ["catalog", "health"] {
        consul.fail(path, Fault::Empty);
    }
    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    let state = when(&provider, "failing", |state| {
        state.status.state == SourceState::Failing
    })
    .await;
    let failure = state.status.last_error.clone().unwrap();
    assert!(
        failure.message.contains("service_prefix"),
        "{}",
        failure.message
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(provider.state().config.is_none());
    consul.heal();
    when(&provider, "live", |state| {
        addresses(state, "web").len() == 1
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_on_disk_serves_until_an_empty_consul_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let options = || DiscoveryOptions::default().with_persist(folder.path().join("last.json"));
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    let provider = discoverer(&consul, options()).runner().start();
    let path = folder.path().join("last.json");
    testkit::time::eventually("it is kept", || async { path.exists() }).await;
    drop(provider);
    consul.forget("sas");
    let started = Instant::now();
    let provider = discoverer(&consul, options()).runner().start();
    when(&provider, "restored", |state| {
        addresses(state, "web").len() == 1
    })
    .await;
    when(&provider, "empty", |state| {
        state.status.state == SourceState::Live && addresses(state, "web").is_empty()
    })
    .await;
    assert!(
        started.elapsed() >= Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

/// A gateway that starts while some reads fail has last known good destinations on disk, and must keep
/// them.
#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_be_read_at_first_is_waited_for() {
    let consul = FakeConsul::new("sas");
    consul.register("sas", "n1", served("web", "web-1", 81));
    consul.register("sas", "n1", served("api", "api-1", 82));
    consul.fail("health/service/web", Fault::Status(500, "boom"));
    let provider = discoverer(&consul, DiscoveryOptions::default())
        .runner()
        .start();
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(provider.state().config.is_none());
    consul.heal();
    let state = when(&provider, "a configuration", |state| state.config.is_some()).await;
    assert_eq!(
        (
            addresses(&state, "web").len(),
            addresses(&state, "api").len()
        ),
        (1, 1)
    );
}

/// A datacenter that was not read yet removes nothing from a gateway that has last known good destinations
/// on disk.
#[tokio::test(start_paused = true)]
async fn what_a_datacenter_had_stays_until_it_was_read() {
    for path in ["", "catalog/datacenters"] {
        let folder = tempfile::tempdir().unwrap();
        let consul = FakeConsul::new("sas");
        consul.add_datacenter("vla");
        consul.register("sas", "n1", served("web", "web-1", 81));
        consul.register("sas", "n1", served("both", "both-1", 82));
        consul.register("vla", "n2", served("both", "both-2", 83));
        consul.register("vla", "n2", served("far", "far-1", 84));
        let options = all_datacenters().with_persist(folder.path().join("last"));
        let start = || discoverer(&consul, options.clone()).runner().start();
        let provider = start();
        when(&provider, "all", |state| addresses(state, "far").len() == 1).await;
        guarded("the file", async {
            while !folder.path().join("last").exists() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
        drop(provider);

        let datacenter = if path.is_empty() { "vla" } else { "sas" };
        consul.fail_in(datacenter, path, Fault::Status(500, "boom"));
        consul.register("sas", "n1", served("web", "web-2", 85));
        consul.set_check("sas", "both-1", HealthStatus::Critical);
        let provider = start();
        when(&provider, "news", |state| {
            addresses(state, "web").len() == 2
        })
        .await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        let state = provider.state();
        assert_eq!(addresses(&state, "far").len(), 1, "{path}");
        assert!(!addresses(&state, "both").is_empty(), "{path}");
        let codes = problems(&state);
        assert!(
            codes.iter().any(|(code, _)| code == "catalog_incomplete"),
            "{codes:?}"
        );

        consul.heal();
        consul.deregister("vla", "n2", "far-1");
        when(&provider, "gone", |state| cluster(state, "far").is_none()).await;
        when(&provider, "known", |state| {
            addresses(state, "both").len() == 1
        })
        .await;
    }
}
