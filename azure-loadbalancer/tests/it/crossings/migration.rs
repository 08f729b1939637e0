//! The migration from Basic to Standard, stage by stage, on the resource manager of these tests.

use std::time::Duration;

use azure_loadbalancer::execute::Executor;
use azure_loadbalancer::node::{Readiness, labels};
use azure_loadbalancer::plan::{Migration, StageKind};

use super::*;

fn basic() -> Config {
    Config {
        load_balancer_sku: LoadBalancerSku::Basic,
        backend_pool_type: PoolMembership::NetworkInterface,
        ..current()
    }
}

/// Creates an Azure with a cluster of SKU Basic: a dynamic address of its own, a user's address, and an
/// internal one.
fn old() -> (FakeArm, Vec<Service>) {
    let azure = azure();
    let theirs = path("publicIPAddresses", "theirs-0");
    azure.change(&theirs, |one| one["sku"]["name"] = json!("Basic"));
    let services = vec![
        service("a", &[80]),
        with(service("b", &[81]), keys::PUBLIC_IP_NAME, "theirs-0"),
        internal("c", &[82]),
    ];
    let report = reconcile(&azure, &basic(), &services);
    assert!(report.errors().is_empty(), "{:?}", report.errors());
    for name in azure.names("publicIPAddresses") {
        let is_own = !name.starts_with("theirs");
        azure.change(&path("publicIPAddresses", &name), |one| {
            if is_own {
                one["properties"]["publicIPAllocationMethod"] = json!("Dynamic");
            }
        });
    }
    azure.writes();
    (azure, services)
}

fn migration(executor: &Executor, services: &[Service]) -> Migration {
    run(executor.migration(services, &nodes())).unwrap()
}

fn verbs(migration: &Migration) -> Vec<(StageKind, Vec<String>)> {
    let stages = migration.stages.iter();
    stages
        .map(|stage| {
            let actions = stage.writes.actions();
            (
                stage.kind,
                actions
                    .map(|(_, action)| action.operation.to_string())
                    .collect(),
            )
        })
        .collect()
}

fn values(azure: &FakeArm) -> Vec<Value> {
    let names = azure.names("publicIPAddresses").into_iter();
    names
        .map(|name| {
            azure.get(&path("publicIPAddresses", &name)).unwrap()["properties"]["ipAddress"].clone()
        })
        .collect()
}

#[test]
fn what_each_stage_writes_is_what_was_planned_and_addresses_stay() {
    let (azure, services) = old();
    let before = values(&azure);
    // The reason for the migration: nothing else leads there.
    let rejected = reconcile(&azure, &current(), &services);
    let error = rejected.error_of(&key("a")).unwrap().to_string();
    assert!(
        error.contains("`plan --migrate-to-standard` shows the way"),
        "{error}"
    );
    azure.writes();

    let executor = executor(&azure, &current());
    let first = migration(&executor, &services);
    assert_eq!(first.obstacles, [""; 0]);
    assert_eq!(first.warnings.len(), 1, "{:?}", first.warnings);
    assert!(
        first.warnings[0].contains("default/c may get another internal address"),
        "{:?}",
        first.warnings
    );
    let kinds: Vec<_> = first.stages.iter().map(|stage| stage.kind).collect();
    let all = [
        StageKind::FixAddresses,
        StageKind::TakeDown,
        StageKind::UpgradeAddresses,
        StageKind::BuildUp,
    ];
    assert_eq!(kinds, all);
    assert_eq!(azure.writes(), [""; 0], "looking writes nothing");

    let planned = verbs(&first);
    for done in 0..planned.len() {
        let now = migration(&executor, &services);
        assert_eq!(
            verbs(&now),
            planned[done..],
            "what is left is what was planned"
        );
        assert_eq!(
            migration(&executor, &services).stages[0].digest(),
            now.stages[0].digest()
        );
        let wanted = now.stages[0].writes.actions().count();
        match now.stages[0].kind {
            StageKind::BuildUp => {
                let report = run(executor.reconcile(&services, &nodes())).unwrap();
                assert!(
                    report.is_converged() && report.errors().is_empty(),
                    "{:?}",
                    report.errors()
                );
            }
            _ => assert!(run(executor.execute(&now.stages[0].writes.stages[0])).is_done()),
        }
        assert_eq!(azure.writes().len(), wanted);
        assert_eq!(values(&azure), before, "after stage {done}");
    }
    assert!(migration(&executor, &services).stages.is_empty());
    for kind in ["loadBalancers", "publicIPAddresses"] {
        for name in azure.names(kind) {
            let sku = azure.get(&path(kind, &name)).unwrap()["sku"]["name"].clone();
            assert_eq!(sku, "Standard", "{name}");
        }
    }
    assert_eq!(
        reached_at(&azure, "testCluster", 81).as_deref(),
        Some("theirs-0")
    );
    assert!(reached_at(&azure, "testCluster-internal", 82).is_some());
    assert!(!open_at(&azure, 80).is_empty());
    let rest = reconcile(&azure, &current(), &services);
    assert_eq!(rest.calls.writes, 0);
}

#[test]
fn another_state_is_another_stage() {
    let (azure, services) = old();
    let executor = executor(&azure, &current());
    let before = migration(&executor, &services).stages[0].digest();
    azure.change(&path("publicIPAddresses", "theirs-0"), |one| {
        one["etag"] = json!("W/\"other\"")
    });
    let same = migration(&executor, &services).stages[0].digest();
    assert_eq!(
        same, before,
        "theirs is static already, so this stage does not write it"
    );
    let own = azure
        .names("publicIPAddresses")
        .into_iter()
        .find(|name| !name.starts_with("theirs"));
    azure.change(&path("publicIPAddresses", &own.unwrap()), |one| {
        one["etag"] = json!("W/\"other\"")
    });
    assert_ne!(migration(&executor, &services).stages[0].digest(), before);
}

#[test]
fn what_would_be_lost_is_an_obstacle() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 3] = [
        (
            |one| {
                let list = one["properties"]["frontendIPConfigurations"]
                    .as_array_mut()
                    .unwrap();
                list.push(json!({"name": "by-hand", "properties": {}}));
            },
            "has by-hand, which belongs to no service",
        ),
        (
            |one| one["properties"]["inboundNatRules"] = json!([{"name": "ssh", "properties": {}}]),
            "inbound NAT rules",
        ),
        (
            |one| {
                let list = one["properties"]["backendAddressPools"]
                    .as_array_mut()
                    .unwrap();
                list.push(json!({"name": "other", "properties": {}}));
            },
            "other pools",
        ),
    ];
    for (change, expected) in cases {
        let (azure, services) = old();
        let name = azure
            .names("loadBalancers")
            .into_iter()
            .find(|name| !name.ends_with("-internal"))
            .unwrap();
        azure.change(&path("loadBalancers", &name), change);
        let found = migration(&executor(&azure, &current()), &services);
        assert!(
            found.obstacles.iter().any(|one| one.contains(expected)),
            "{expected}: {:?}",
            found.obstacles
        );
    }
    // A load balancer in the model of a scale set cannot be deleted, independent of members and of the new type
    // of pools.
    for pools in [PoolMembership::NetworkInterface, PoolMembership::Address] {
        let (azure, services) = old();
        let set = "/subscriptions/subscription/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/pool-1";
        let pool = |name: &str| {
            path(
                "loadBalancers",
                &format!("{name}/backendAddressPools/{name}"),
            )
        };
        let model = |pool: &str| {
            let configuration = json!({"name": "c", "properties": {"loadBalancerBackendAddressPools": [{"id": pool}]}});
            let interface =
                json!({"name": "nic", "properties": {"ipConfigurations": [configuration]}});
            json!({"location": "westus", "properties": {"virtualMachineProfile": {"networkProfile": {
                "networkInterfaceConfigurations": [interface]
            }}}})
        };
        let name = azure
            .names("loadBalancers")
            .into_iter()
            .find(|name| !name.ends_with("-internal"))
            .unwrap();
        let config = Config {
            backend_pool_type: pools,
            ..current()
        };
        let obstacles = |pool: &str| {
            azure.insert(set, model(pool));
            migration(&executor(&azure, &config), &services).obstacles
        };
        // In whatever case Azure writes it.
        let found = obstacles(&pool(&name).to_uppercase());
        assert!(
            found
                .iter()
                .any(|one| one.contains("scale set pool-1 has a pool")),
            "{found:?}"
        );
        assert_eq!(obstacles(&pool("another")), [""; 0]);
    }
    // A service that could not be created again keeps its resources, and with it all services.
    let (azure, mut services) = old();
    services[1] = with(services[1].clone(), keys::TCP_IDLE_TIMEOUT, "x");
    let found = migration(&executor(&azure, &current()), &services);
    assert!(
        found
            .obstacles
            .iter()
            .any(|one| one.contains("default/b would not be restored")),
        "{:?}",
        found.obstacles
    );
    // A deleted service has left resources.
    services.remove(1);
    let found = migration(&executor(&azure, &current()), &services);
    assert!(
        found
            .obstacles
            .iter()
            .any(|one| one.contains("belongs to no service")),
        "{:?}",
        found.obstacles
    );
    let not_yet = migration(&executor(&azure, &basic()), &services);
    assert!(
        not_yet.stages.is_empty() && not_yet.obstacles[0].contains("loadBalancerSku"),
        "{not_yet:?}"
    );
}

#[test]
fn nothing_is_taken_down_for_pools_that_would_be_empty() {
    let (azure, services) = old();
    let executor = executor(&azure, &current());
    let node = || nodes().remove(0);
    let mut excluded = nodes().remove(1);
    excluded
        .labels
        .insert(labels::EXCLUDED.to_owned(), String::new());
    // It may stay a member, but the pool is a different one then.
    let not_ready = Node {
        readiness: Readiness::NotReady(Duration::ZERO),
        ..node()
    };
    let cases = [
        (vec![], "no node is known"),
        (vec![not_ready.clone()], "none of 1 known nodes takes part"),
        (
            vec![excluded, not_ready.clone()],
            "none of 2 known nodes takes part",
        ),
    ];
    for (members, why) in cases {
        let found = run(executor.migration(&services, &members)).unwrap();
        let is_obstacle = |one: &String| one.contains("empty pools") && one.contains(why);
        assert!(
            found.obstacles.iter().any(is_obstacle),
            "{why}: {:?}",
            found.obstacles
        );
        // The writes of the last stage have warnings of their own.
        let is_told = |one: &String| one.contains("has no member, since") && one.contains(why);
        assert!(
            found.warnings.iter().any(is_told),
            "{why}: {:?}",
            found.warnings
        );
    }
    // A single participating node is enough.
    let found = run(executor.migration(&services, &[node(), not_ready])).unwrap();
    assert_eq!(found.obstacles, [""; 0]);
    assert_eq!(azure.writes(), [""; 0]);
}

/// Load balancers are read before addresses, so a frontend that another program of the same cluster creates
/// meanwhile shows only by its address.
#[test]
fn a_frontend_of_another_program_is_no_stranger() {
    let (azure, wanted) = (
        azure(),
        vec![with(service("b", &[81]), keys::PUBLIC_IP_NAME, "theirs-0")],
    );
    reconcile(&azure, &current(), &wanted);
    let snapshot = run(azure_loadbalancer::execute::read_snapshot(
        executor(&azure, &current()).client(),
        &current(),
        &wanted,
    ));
    let mut snapshot = snapshot.unwrap();
    snapshot.load_balancers.clear();
    let plan = azure_loadbalancer::plan(&current(), &wanted, &nodes(), &snapshot);
    let error = plan.services[&key("b")].error.as_ref().unwrap().to_string();
    assert!(
        error.contains("another program has written it meanwhile"),
        "{error}"
    );
}
