//! Rolling upgrades.

use indexmap::IndexMap;

use crate::cluster::testing::{SHOP, cluster, name, partition_of, pass, ready};
use crate::cluster::{
    ApplicationCreation, ApplicationStatus, ApplicationUpgrade, Cluster, ErrorCode, FailureAction,
    FailureReason, PartitionKey, ServiceCreation, ServiceScale, ServiceStatus, ServiceUpdate,
    UpgradeDomainState, UpgradeMode, UpgradeRequest, UpgradeState,
};
use crate::health::{EntityKey, HealthReport, HealthState};
use crate::hosting::{Attempts, Behaviour, Life, PackageKey, ProcessBehaviour, Span};

const SHOP_NAME: &str = "fabric:/Shop";
const WEB: &str = "fabric:/Shop/Web";
const STORE: &str = "fabric:/Shop/Store";

fn state(cluster: &Cluster) -> UpgradeState {
    let application = cluster.application(&name(SHOP_NAME)).unwrap();
    application.upgrade.as_ref().unwrap().state
}

fn version(cluster: &Cluster) -> String {
    cluster
        .application(&name(SHOP_NAME))
        .unwrap()
        .type_version
        .clone()
}

#[test]
fn an_upgrade_rolls_through_the_domains_and_never_takes_all() {
    let mut cluster = cluster(SHOP);
    let before = ready(&cluster, WEB);
    let request = UpgradeRequest::new("2.0.0").with_wait(Span::from_secs(10));
    cluster
        .upgrade_application(&name(SHOP_NAME), request)
        .unwrap();
    let application = cluster.application(&name(SHOP_NAME)).unwrap();
    assert_eq!(application.status, ApplicationStatus::Upgrading);
    assert_eq!(
        cluster.service(&name(WEB)).unwrap().status,
        ServiceStatus::Upgrading
    );
    let mut seconds = 0;
    while !state(&cluster).is_final() {
        pass(&mut cluster, 1);
        seconds += 1;
        assert!(
            ready(&cluster, WEB).len() >= 2,
            "at most one domain is away"
        );
        let primary = partition_of(&cluster, STORE).primary();
        assert!(primary.is_some(), "the store goes on");
        assert!(seconds < 600, "it comes to an end");
    }
    assert!(
        seconds >= 50,
        "there was a wait after each of five domains: {seconds}"
    );
    assert_eq!(version(&cluster), "2.0.0");
    assert_eq!(
        cluster.service(&name(WEB)).unwrap().manifest_version,
        "2.0.0"
    );
    let after = ready(&cluster, WEB);
    assert_eq!(after.len(), 3);
    assert!(
        after.iter().all(|found| !before.contains(found)),
        "all have new addresses"
    );
}

#[test]
fn instances_are_drained_before_their_domain_is_upgraded() {
    let mut cluster = cluster(SHOP);
    cluster.set_resolve_cache(Span::ZERO);
    let update = ServiceUpdate {
        instance_close_delay: Some(Span::from_secs(20)),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    cluster
        .upgrade_application(&name(SHOP_NAME), UpgradeRequest::new("2.0.0"))
        .unwrap();
    let mut drained = 0;
    for _ in 0..200 {
        let listed = ready(&cluster, WEB).len();
        let resolved = cluster
            .resolve(&name(WEB), &PartitionKey::None, None)
            .unwrap();
        drained += usize::from(resolved.endpoints.len() < listed);
        assert!(listed >= 2);
        pass(&mut cluster, 1);
    }
    assert!(
        drained >= 3 * 19,
        "three instances, each for twenty seconds: {drained}"
    );
    assert_eq!(version(&cluster), "2.0.0");
}

#[test]
fn parameters_alone_leave_the_packages_alone() {
    let mut cluster = cluster(SHOP);
    let before = ready(&cluster, WEB);
    let parameters = IndexMap::from([("Host".to_owned(), "b.example".to_owned())]);
    let request = UpgradeRequest::new("1.0.0").with_parameters(parameters.clone());
    cluster
        .upgrade_application(&name(SHOP_NAME), request)
        .unwrap();
    pass(&mut cluster, 1);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardCompleted);
    assert_eq!(
        cluster.application(&name(SHOP_NAME)).unwrap().parameters,
        parameters
    );
    assert_eq!(ready(&cluster, WEB), before);
}

#[test]
fn a_manual_upgrade_waits_for_each_domain() {
    let mut cluster = cluster(SHOP);
    let request = UpgradeRequest::new("2.0.0").with_mode(UpgradeMode::UnmonitoredManual);
    cluster
        .upgrade_application(&name(SHOP_NAME), request)
        .unwrap();
    for _ in 0..4 {
        pass(&mut cluster, 3600);
        assert_eq!(state(&cluster), UpgradeState::RollingForwardPending);
        cluster.resume_upgrade(&name(SHOP_NAME)).unwrap();
    }
    pass(&mut cluster, 60);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardCompleted);
    let error = cluster.resume_upgrade(&name(SHOP_NAME)).unwrap_err();
    assert_eq!(error.code, ErrorCode::ApplicationNotUpgrading);
}

#[test]
fn a_version_that_crashes_is_taken_back() {
    let mut cluster = cluster(SHOP);
    // From now on, started processes crash after 2 s. Running ones continue.
    let crashing = ProcessBehaviour {
        lives: vec![Life::crashing_after(Span::from_secs(2)); 4],
        ..ProcessBehaviour::default()
    };
    let behaviour = Behaviour::default().with_process("Code", crashing);
    cluster
        .script(None, &PackageKey::shared(SHOP_NAME, "WebPkg"), behaviour)
        .unwrap();
    let request = UpgradeRequest::new("2.0.0")
        .with_mode(UpgradeMode::Monitored)
        .with_wait(Span::from_secs(60))
        .with_domain_timeout(Span::from_secs(120));
    cluster
        .upgrade_application(&name(SHOP_NAME), request)
        .unwrap();
    for _ in 0..1000 {
        if state(&cluster).is_final() {
            break;
        }
        pass(&mut cluster, 1);
    }
    assert_eq!(state(&cluster), UpgradeState::RollingBackCompleted);
    assert_eq!(version(&cluster), "1.0.0");
    let application = cluster.application(&name(SHOP_NAME)).unwrap();
    assert!(!application.upgrade.as_ref().unwrap().failure.is_empty());
    assert_eq!(application.status, ApplicationStatus::Ready);
    pass(&mut cluster, 600);
    assert_eq!(ready(&cluster, WEB).len(), 3);
}

#[test]
fn a_version_that_cannot_be_downloaded_leaves_the_old_one_in_service() {
    let text = format!("hosting.DeploymentMaxFailureCount = 2\n{SHOP}");
    let mut cluster = cluster(&text);
    cluster.set_resolve_cache(Span::ZERO);
    let update = ServiceUpdate {
        instance_close_delay: Some(Span::from_secs(5)),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    let behaviour = Behaviour::default().with_download(Attempts::always_failing());
    let package = PackageKey::shared(SHOP_NAME, "WebPkg");
    cluster.script(None, &package, behaviour).unwrap();
    let request = UpgradeRequest::new("2.0.0")
        .with_mode(UpgradeMode::Monitored)
        .with_domain_timeout(Span::from_secs(600));
    cluster
        .upgrade_application(&name(SHOP_NAME), request)
        .unwrap();
    // The first domain with an instance has failed by then: two attempts, 10 s apart.
    pass(&mut cluster, 60);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardInProgress);
    let resolved = cluster
        .resolve(&name(WEB), &PartitionKey::None, None)
        .unwrap();
    assert_eq!(
        resolved.endpoints.len(),
        3,
        "all of them answer, in the old version"
    );
    pass(&mut cluster, 600);
    assert_eq!(state(&cluster), UpgradeState::RollingBackCompleted);
    assert_eq!(ready(&cluster, WEB).len(), 3);
}

#[test]
fn an_upgrade_is_taken_back_on_request() {
    let mut cluster = cluster(SHOP);
    let request = UpgradeRequest::new("2.0.0").with_wait(Span::from_secs(10));
    cluster
        .upgrade_application(&name(SHOP_NAME), request)
        .unwrap();
    pass(&mut cluster, 15);
    cluster.roll_back_upgrade(&name(SHOP_NAME)).unwrap();
    assert_eq!(state(&cluster), UpgradeState::RollingBackInProgress);
    pass(&mut cluster, 60);
    assert_eq!(state(&cluster), UpgradeState::RollingBackCompleted);
    assert_eq!(version(&cluster), "1.0.0");
    let node = ready(&cluster, WEB)[0].0.clone();
    let packages = cluster.deployed_packages(&node, &name(SHOP_NAME)).unwrap();
    assert!(
        packages.iter().all(|package| &*package.version == "1.0.0"),
        "{packages:?}"
    );
}

#[test]
fn what_cannot_be_upgraded_is_rejected() {
    let mut cluster = cluster(SHOP);
    let shop = name(SHOP_NAME);
    let reject = |cluster: &mut Cluster, request: UpgradeRequest| {
        cluster
            .upgrade_application(&shop, request)
            .unwrap_err()
            .code
    };
    let same = IndexMap::from([("Host".to_owned(), "a.example".to_owned())]);
    let request = UpgradeRequest::new("1.0.0").with_parameters(same);
    assert_eq!(
        reject(&mut cluster, request),
        ErrorCode::ApplicationAlreadyInTargetVersion
    );
    let request = UpgradeRequest::new("9.0.0");
    assert_eq!(
        reject(&mut cluster, request),
        ErrorCode::ApplicationTypeNotFound
    );
    let unknown = IndexMap::from([("Nope".to_owned(), String::new())]);
    let request = UpgradeRequest::new("2.0.0").with_parameters(unknown);
    assert_eq!(reject(&mut cluster, request), ErrorCode::InvalidArgument);
    cluster
        .upgrade_application(
            &shop,
            UpgradeRequest::new("2.0.0").with_wait(Span::from_secs(60)),
        )
        .unwrap();
    let request = UpgradeRequest::new("1.0.0");
    assert_eq!(
        reject(&mut cluster, request),
        ErrorCode::ApplicationUpgradeInProgress
    );
    for version in ["1.0.0", "2.0.0"] {
        let error = cluster.unprovision("ShopType", version).unwrap_err();
        assert_eq!(error.code, ErrorCode::ApplicationTypeInUse);
    }
}

/// A monitored upgrade with this time per domain, and a wait of a second.
fn monitored(version: &str, domain_timeout: u64) -> UpgradeRequest {
    let same = IndexMap::from([("Host".to_owned(), "a.example".to_owned())]);
    UpgradeRequest::new(version)
        .with_parameters(same)
        .with_mode(UpgradeMode::Monitored)
        .with_wait(Span::from_secs(1))
        .with_domain_timeout(Span::from_secs(domain_timeout))
}

fn upgrade(cluster: &Cluster) -> &ApplicationUpgrade {
    let application = cluster.application(&name(SHOP_NAME)).unwrap();
    application.upgrade.as_ref().unwrap()
}

/// `SHOP` with five instances, each of which takes `delay` seconds to drain.
fn draining(delay: u64) -> Cluster {
    let mut cluster = cluster(SHOP);
    cluster.set_resolve_cache(Span::ZERO);
    let update = ServiceUpdate {
        instance_count: Some(5),
        instance_close_delay: Some(Span::from_secs(delay)),
        ..ServiceUpdate::default()
    };
    cluster.update_service(&name(WEB), update).unwrap();
    pass(&mut cluster, 1);
    cluster
}

fn resolved(cluster: &mut Cluster) -> usize {
    let answer = cluster.resolve(&name(WEB), &PartitionKey::None, None);
    answer.unwrap().endpoints.len()
}

#[test]
fn a_time_limit_of_an_earlier_upgrade_does_not_end_a_later_one() {
    let mut cluster = draining(10);
    let shop = name(SHOP_NAME);
    let forward = monitored("2.0.0", 100).with_timeout(Span::from_secs(120));
    cluster.upgrade_application(&shop, forward).unwrap();
    pass(&mut cluster, 95);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardCompleted);
    cluster
        .upgrade_application(&shop, monitored("1.0.0", 100))
        .unwrap();
    for _ in 0..95 {
        pass(&mut cluster, 1);
        assert_eq!(upgrade(&cluster).failure, "");
    }
    assert_eq!(state(&cluster), UpgradeState::RollingForwardCompleted);
    assert_eq!(version(&cluster), "1.0.0");
}

#[test]
fn a_wait_for_an_application_that_was_deleted_does_not_shorten_that_of_another() {
    let mut cluster = cluster(SHOP);
    let shop = name(SHOP_NAME);
    let slow = UpgradeRequest::new("2.0.0").with_wait(Span::from_secs(100));
    cluster.upgrade_application(&shop, slow.clone()).unwrap();
    pass(&mut cluster, 50);
    cluster.delete_application(&shop).unwrap();
    let again = ApplicationCreation::new(shop.clone(), "ShopType", "1.0.0");
    cluster.create_application(again).unwrap();
    cluster.upgrade_application(&shop, slow).unwrap();
    // The first domain's wait began now: after 60 s it is not over.
    pass(&mut cluster, 60);
    let done = |cluster: &Cluster| {
        let domains = upgrade(cluster).domains.iter();
        domains
            .filter(|domain| domain.state == UpgradeDomainState::Completed)
            .count()
    };
    assert_eq!(done(&cluster), 0);
    pass(&mut cluster, 41);
    assert_eq!(done(&cluster), 1);
}

#[test]
fn instances_that_are_upgraded_are_new_ones() {
    let mut cluster = cluster(SHOP);
    let ids = |cluster: &Cluster| -> Vec<i64> {
        let replicas = partition_of(cluster, WEB).replicas.keys();
        replicas.copied().collect()
    };
    let nodes = |cluster: &Cluster| -> Vec<String> {
        let mut nodes: Vec<String> = ready(cluster, WEB)
            .into_iter()
            .map(|found| found.0)
            .collect();
        nodes.sort();
        nodes
    };
    let (before, on) = (ids(&cluster), nodes(&cluster));
    cluster
        .upgrade_application(&name(SHOP_NAME), UpgradeRequest::new("2.0.0"))
        .unwrap();
    pass(&mut cluster, 60);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardCompleted);
    let after = ids(&cluster);
    assert_eq!(after.len(), 3);
    assert!(after.iter().all(|id| !before.contains(id)), "{after:?}");
    assert_eq!(nodes(&cluster), on, "each is on the node of the one before");
}

#[test]
fn an_upgrade_that_fails_says_why_and_when() {
    let failing = |request: UpgradeRequest| {
        let mut cluster = draining(30);
        cluster
            .upgrade_application(&name(SHOP_NAME), request)
            .unwrap();
        let started = upgrade(&cluster).started_at;
        for _ in 0..300 {
            if upgrade(&cluster).failed_at.is_some() {
                break;
            }
            pass(&mut cluster, 1);
        }
        let found = upgrade(&cluster);
        (
            found.failure_reason,
            found.failed_at.map(|at| at.since(started)),
        )
    };
    assert_eq!(
        failing(monitored("2.0.0", 20)),
        (
            FailureReason::UpgradeDomainTimeout,
            Some(Span::from_secs(20))
        )
    );
    let whole = monitored("2.0.0", 100).with_timeout(Span::from_secs(70));
    assert_eq!(
        failing(whole),
        (
            FailureReason::OverallUpgradeTimeout,
            Some(Span::from_secs(70))
        )
    );
    // Without monitoring there is no limit.
    let unmonitored = monitored("2.0.0", 20)
        .with_timeout(Span::from_secs(70))
        .with_mode(UpgradeMode::UnmonitoredAuto);
    assert_eq!(failing(unmonitored), (FailureReason::None, None));
}

#[test]
fn an_upgrade_that_fails_stops_where_it_is_when_that_is_wanted() {
    let mut cluster = draining(30);
    let shop = name(SHOP_NAME);
    let request = monitored("2.0.0", 20).with_failure_action(FailureAction::Manual);
    cluster.upgrade_application(&shop, request).unwrap();
    pass(&mut cluster, 10);
    assert_eq!(resolved(&mut cluster), 4);
    pass(&mut cluster, 3600);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardPending);
    assert_eq!(upgrade(&cluster).mode, UpgradeMode::UnmonitoredManual);
    assert_eq!(
        upgrade(&cluster).failure_reason,
        FailureReason::UpgradeDomainTimeout
    );
    assert_eq!(resolved(&mut cluster), 5, "what was drained is in service");
    // The upgrade continues from domain to domain, without a time limit, until it is rolled back.
    for _ in 0..2 {
        cluster.resume_upgrade(&shop).unwrap();
        pass(&mut cluster, 60);
        assert_eq!(state(&cluster), UpgradeState::RollingForwardPending);
    }
    let completed = upgrade(&cluster).domains.iter();
    let completed = completed.filter(|domain| domain.state == UpgradeDomainState::Completed);
    assert_eq!(completed.count(), 2);
    cluster.roll_back_upgrade(&shop).unwrap();
    assert_eq!(upgrade(&cluster).failure_reason, FailureReason::Interrupted);
    pass(&mut cluster, 300);
    assert_eq!(state(&cluster), UpgradeState::RollingBackCompleted);
    assert_eq!(ready(&cluster, WEB).len(), 5);
}

#[test]
fn an_unhealthy_application_stops_its_upgrade_after_the_domain() {
    let mut cluster = draining(1);
    let shop = name(SHOP_NAME);
    let request = monitored("2.0.0", 100).with_failure_action(FailureAction::Manual);
    cluster.upgrade_application(&shop, request).unwrap();
    let report = HealthReport::new("test", "state", HealthState::Error);
    let key = EntityKey::Application(shop.clone());
    cluster.report_health(key, report, true).unwrap();
    pass(&mut cluster, 600);
    assert_eq!(state(&cluster), UpgradeState::RollingForwardPending);
    assert_eq!(upgrade(&cluster).failure_reason, FailureReason::HealthCheck);
    // The upgrade continues with the next domain, since health is now up to the client. It is done after the
    // last one.
    for _ in 0..4 {
        cluster.resume_upgrade(&shop).unwrap();
        pass(&mut cluster, 60);
    }
    assert_eq!(state(&cluster), UpgradeState::RollingForwardCompleted);
}

#[test]
fn a_domain_that_was_only_drained_is_in_service_again_at_once() {
    let mut cluster = draining(60);
    let shop = name(SHOP_NAME);
    let before = ready(&cluster, WEB);
    cluster
        .upgrade_application(&shop, UpgradeRequest::new("2.0.0"))
        .unwrap();
    pass(&mut cluster, 50);
    assert_eq!(resolved(&mut cluster), 4);
    cluster.roll_back_upgrade(&shop).unwrap();
    assert_eq!(resolved(&mut cluster), 5);
    assert_eq!(state(&cluster), UpgradeState::RollingBackCompleted);
    assert_eq!(ready(&cluster, WEB), before);
}

#[test]
fn a_service_created_during_an_upgrade_has_its_type_in_both_versions() {
    let text = format!(
        "{SHOP}\n[[application_types]]\nname = \"ShopType\"\nversion = \"3.0.0\"\nbased_on = \"2.0.0\"\n\
         service_types.ExtraType = {{}}\n"
    );
    let mut cluster = cluster(&text);
    let shop = name(SHOP_NAME);
    let scale = ServiceScale::Stateless {
        instance_count: 1,
        min_instance_count: 1,
    };
    let service = |path: &str, service_type: &str| {
        ServiceCreation::new(shop.clone(), name(path), service_type, scale)
    };
    for (from, to) in [("1.0.0", "3.0.0"), ("3.0.0", "2.0.0")] {
        assert_eq!(version(&cluster), from);
        let request = UpgradeRequest::new(to).with_wait(Span::from_secs(60));
        cluster.upgrade_application(&shop, request).unwrap();
        pass(&mut cluster, 5);
        let error = cluster
            .create_service(service("fabric:/Shop/X", "ExtraType"))
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::ServiceTypeNotFound, "{from} to {to}");
        pass(&mut cluster, 600);
        assert_eq!(version(&cluster), to);
    }
    let request = UpgradeRequest::new("1.0.0").with_wait(Span::from_secs(60));
    cluster.upgrade_application(&shop, request).unwrap();
    cluster
        .create_service(service("fabric:/Shop/More", "WebType"))
        .unwrap();
}
