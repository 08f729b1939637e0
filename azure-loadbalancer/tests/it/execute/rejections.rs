//! Rejections that count only against the services responsible.

use azure_loadbalancer::arm::{ArmErrorKind, RetryPolicy};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, Fault, FaultAction};
use azure_loadbalancer::execute::{Reconciled, ServiceError};
use azure_loadbalancer::{Executor, Service, ServiceKey, naming};
use http::Method;
use proptest::prelude::*;
use tokio::time::Instant;

use crate::execute::world::*;

fn prefix(service: &Service) -> String {
    naming::prefix(&service.uid_in("testCluster"))
}

fn reject(status: u16, code: &str) -> Fault {
    let action = FaultAction::Answer {
        status,
        code: code.to_owned(),
        retry_after: None,
    };
    Fault::new(action).times(1_000)
}

/// Rejects writes of a kind while they have a part of this service.
fn reject_part(emulator: &Emulator, kind: &str, service: &Service) {
    let text = prefix(service);
    let fault = reject(400, "InvalidPart").method(&Method::PUT);
    emulator.with(|machine| machine.inject(fault.path(kind).body(text)));
}

fn key(name: &str) -> ServiceKey {
    ServiceKey::new("default", name)
}

/// Creates `count` external services with one port each.
fn many(count: u16) -> Vec<Service> {
    let one = |number: u16| service(&format!("svc{number:03}"), &[1_000 + number]);
    (0..count).map(one).collect()
}

fn writes_of(emulator: &Emulator, kind: &str, status: u16) -> usize {
    let requests = emulator.with(|machine| machine.requests());
    let of_kind = requests
        .iter()
        .filter(|one| one.method != "GET" && one.target.contains(kind));
    of_kind.filter(|one| one.status == Some(status)).count()
}

#[track_caller]
fn assert_only_fails(report: &Reconciled, bad: &[&str], code: &str) {
    let errors = report.errors();
    let failed: Vec<_> = errors.keys().map(|key| key.name.as_str()).collect();
    assert_eq!(failed, bad, "{report:#?}");
    for error in errors.values() {
        let ServiceError::Arm(error) = error else {
            panic!("{error:?}")
        };
        assert!(error.has_code(code), "{error}");
    }
    for (key, outcome) in &report.services {
        let is_reached = outcome.ingress.len() == 1;
        assert!(
            is_reached || bad.contains(&key.name.as_str()),
            "{key}: {outcome:?}"
        );
    }
}

/// The addresses in the pool of the external load balancer.
fn members(emulator: &Emulator) -> usize {
    members_of(emulator, "testCluster")
}

fn members_of(emulator: &Emulator, balancer: &str) -> usize {
    let all = contents(emulator);
    let balancer = &all[&network("loadBalancers", balancer).to_lowercase()];
    let pools = balancer["properties"]["backendAddressPools"]
        .as_array()
        .unwrap();
    pools[0]["properties"]["loadBalancerBackendAddresses"]
        .as_array()
        .map_or(0, Vec::len)
}

#[tokio::test(start_paused = true)]
async fn a_public_address_that_is_rejected_keeps_nobody_else_waiting() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let good = service("good", &[80]);
    let bad = annotated(
        service("bad", &[81]),
        "azure-load-balancer-resource-group",
        "nope",
    );
    let both = [good.clone(), bad];
    let report = executor.reconcile(&both, &nodes(3)).await.unwrap();
    assert_only_fails(&report, &["bad"], "ResourceGroupNotFound");
    assert!(report.left.is_empty(), "{report:#?}");
    assert_eq!(members(&emulator), 3);

    // Nodes, ports and services of the others change as if it were not there.
    let more = Service {
        ports: service("", &[80, 443]).ports,
        ..good
    };
    let all = [both[1].clone(), more, service("new", &[82])];
    let report = executor.reconcile(&all, &nodes(2)).await.unwrap();
    assert_only_fails(&report, &["bad"], "ResourceGroupNotFound");
    assert_eq!(members(&emulator), 2);
    let report = executor.reconcile(&all[..1], &nodes(2)).await.unwrap();
    assert_only_fails(&report, &["bad"], "ResourceGroupNotFound");
    assert!(
        contents(&emulator)
            .keys()
            .all(|id| !id.contains("testcluster"))
    );
}

#[tokio::test(start_paused = true)]
async fn it_is_found_out_whom_a_load_balancer_is_rejected_for() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let services = many(33);
    for bad in [5, 20] {
        reject_part(&emulator, "loadBalancers", &services[bad]);
    }
    let report = executor.reconcile(&services, &nodes(2)).await.unwrap();
    assert_only_fails(&report, &["svc005", "svc020"], "InvalidPart");
    let rejected = writes_of(&emulator, "loadBalancers", 400);
    assert!((2..=2 * 6).contains(&rejected), "{rejected} rejections");
    assert_eq!(report.rejections as usize, rejected);

    // The next time those two are tried after all others, with one attempt each.
    let mut more = services.clone();
    more.push(service("new", &[80]));
    let report = executor.reconcile(&more, &nodes(2)).await.unwrap();
    assert_only_fails(&report, &["svc005", "svc020"], "InvalidPart");
    assert_eq!(writes_of(&emulator, "loadBalancers", 400), rejected + 2);

    emulator.with(|machine| machine.clear_faults());
    let report = executor.reconcile(&more, &nodes(2)).await.unwrap();
    assert_only_fails(&report, &[], "");
    assert!(report.is_converged(), "{report:#?}");
    let (plan, _) = executor.plan(&more, &nodes(2)).await.unwrap();
    assert!(plan.is_done(), "{plan:#?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_found_out_whom_the_security_group_is_rejected_for() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let mut services = many(6);
    services[3].source_ranges = vec!["10.66.0.0/16".to_owned()];
    let fault = reject(400, "SecurityRuleInvalidAddressPrefix").method(&Method::PUT);
    emulator
        .with(|machine| machine.inject(fault.path("networkSecurityGroups").body("10.66.0.0/16")));
    let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
    assert_only_fails(&report, &["svc003"], "SecurityRuleInvalidAddressPrefix");
    // Work that waits for the security group is done for the others.
    let report = executor
        .reconcile(&services[1..4], &nodes(1))
        .await
        .unwrap();
    assert_only_fails(&report, &["svc003"], "SecurityRuleInvalidAddressPrefix");
    let addresses = contents(&emulator)
        .keys()
        .filter(|id| id.contains("/testcluster-a"))
        .count();
    assert_eq!(addresses, 3);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_nobody_and_cannot_go_is_held_against_nobody() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let services = many(3);
    executor.reconcile(&services, &nodes(1)).await.unwrap();
    // The load balancer must keep the frontend of the deleted service.
    let gone = format!(r#""name":"{}""#, prefix(&services[0]));
    let guarded = Guarded {
        emulator: emulator.clone(),
        needed: gone,
    };
    let client = client_through(guarded, RetryPolicy::default());
    let other = Executor::new(client, config()).unwrap();
    let mut rest = services[1..].to_vec();
    rest.push(service("new", &[80]));
    let report = other.reconcile(&rest, &nodes(2)).await.unwrap();
    assert!(report.errors().is_empty(), "{report:#?}");
    assert!(!report.is_converged());
    assert_eq!(report.other_failures[0].code(), Some("Needed"));
    assert_eq!(report.services[&key("new")].ingress.len(), 1);
    assert_eq!(members(&emulator), 2);
}

/// A transport that rejects the removal of a text from load balancers.
#[derive(Clone)]
struct Guarded {
    emulator: Emulator,
    needed: String,
}

impl tower_service::Service<http::Request<bytes::Bytes>> for Guarded {
    type Response = http::Response<bytes::Bytes>;
    type Error = azure_loadbalancer::emulator::Lost;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<bytes::Bytes>) -> Self::Future {
        let path = request.uri().path();
        let writes = request.method() == Method::PUT && path.ends_with("/testCluster");
        let writes = writes && !path.contains("backendAddressPools");
        if !writes || String::from_utf8_lossy(request.body()).contains(&self.needed) {
            return self.emulator.call(request);
        }
        let body = r#"{"error":{"code":"Needed","message":"It is needed."}}"#;
        let answer = http::Response::builder()
            .status(400)
            .body(bytes::Bytes::from_static(body.as_bytes()));
        std::future::ready(Ok(answer.unwrap()))
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_not_write_at_all_is_not_asked_again_and_again() {
    let emulator = azure(EmulatorOptions::default());
    let fault = reject(403, "AuthorizationFailed").method(&Method::PUT);
    emulator.with(|machine| machine.inject(fault.path("loadBalancers")));
    let services = many(20);
    let report = executor(&emulator)
        .reconcile(&services, &nodes(1))
        .await
        .unwrap();
    assert_eq!(report.errors().len(), 20);
    assert_eq!(writes_of(&emulator, "loadBalancers", 403), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_no_write_of_somebody_else() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let services = many(2);
    executor.reconcile(&services, &nodes(1)).await.unwrap();
    emulator.with(|machine| {
        machine.inject(
            reject(409, "ScopeLocked")
                .method(&Method::DELETE)
                .path("publicIPAddresses"),
        )
    });
    let began = Instant::now();
    let going = Service {
        deleting: true,
        ..services[0].clone()
    };
    let all = [going, services[1].clone(), service("new", &[80])];
    let report = executor.reconcile(&all, &nodes(1)).await.unwrap();
    let ServiceError::Arm(error) = report.error_of(&all[0].key).unwrap() else {
        panic!("{report:#?}")
    };
    assert_eq!(
        (error.kind(), error.code()),
        (ArmErrorKind::Conflict, Some("ScopeLocked"))
    );
    assert_eq!(report.errors().len(), 1, "{report:#?}");
    assert_eq!(report.conflicts, 0);
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    assert_eq!(report.services[&key("new")].ingress.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_conflict_asks_for_is_kept() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let busy = FaultAction::Answer {
        status: 409,
        code: "SomethingElse".to_owned(),
        retry_after: Some(60),
    };
    emulator.with(|machine| {
        machine.inject(Fault::new(busy).method(&Method::PUT).path("loadBalancers"))
    });
    let began = Instant::now();
    let report = executor.reconcile(&many(1), &nodes(1)).await.unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    assert!(began.elapsed().as_secs() >= 60, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_tag_that_is_none_keeps_nobody_else_out() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let mistyped = annotated(
        service("bad", &[81]),
        "azure-allowed-service-tags",
        "AzureFrontdor.Backend",
    );
    let services = [
        service("good", &[80]),
        mistyped,
        internal(service("inside", &[82])),
    ];
    let report = executor.reconcile(&services, &nodes(1)).await.unwrap();
    assert_only_fails(&report, &["bad"], "SecurityRuleInvalidAddressPrefix");
}

/// The addresses of nodes are in the same document as the frontends of services.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_rejected_keeps_no_service_waiting() {
    for is_new in [true, false] {
        let emulator = azure(EmulatorOptions::default());
        let executor = executor(&emulator);
        let old = service("old", &[80]);
        if !is_new {
            let before = std::slice::from_ref(&old);
            let report = executor.reconcile(before, &nodes(2)).await.unwrap();
            assert!(report.is_converged());
        }
        let fault = reject(400, "InvalidBackendAddress").method(&Method::PUT);
        emulator.with(|machine| machine.inject(fault.path("loadBalancers").body("10.0.9.3")));
        let services = [old, service("new", &[81])];
        let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
        assert_only_fails(&report, &[], "");
        assert!(!report.is_converged());
        let errors = &report.rejected_nodes;
        assert_eq!(errors.keys().collect::<Vec<_>>(), ["vm-3"]);
        assert!(errors["vm-3"].has_code("InvalidBackendAddress"));
        assert!(report.other_failures.is_empty(), "{report:#?}");
        assert_eq!(members(&emulator), 2);
        // Once with the services and once alone; where none of the nodes was a member, in between as one of
        // three and one of two.
        let rejected = if is_new { 4 } else { 2 };
        assert_eq!(writes_of(&emulator, "loadBalancers", 400), rejected);

        // The other nodes change meanwhile, and rules without a floating address follow them.
        let mut others = nodes(4);
        others.remove(0);
        let flat = annotated(
            services[0].clone(),
            "azure-disable-load-balancer-floating-ip",
            "true",
        );
        let services = [flat, services[1].clone()];
        let report = executor.reconcile(&services, &others).await.unwrap();
        assert_only_fails(&report, &[], "");
        assert_eq!(report.rejected_nodes.len(), 1, "{report:#?}");
        assert_eq!(members(&emulator), 2);

        emulator.with(|machine| machine.clear_faults());
        let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
        assert!(report.is_converged(), "{report:#?}");
        assert_eq!(members(&emulator), 3);
    }
}

/// Both load balancers are written at once, and both are rejected for the same node.
#[tokio::test(start_paused = true)]
async fn a_node_that_two_load_balancers_reject_is_held_against_no_service_and_no_other_node() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let fault = reject(400, "InvalidBackendAddress").method(&Method::PUT);
    emulator.with(|machine| machine.inject(fault.path("loadBalancers").body("10.0.9.1\"")));
    let services = [service("out", &[80]), internal(service("in", &[81]))];
    let report = executor.reconcile(&services, &nodes(5)).await.unwrap();
    assert_only_fails(&report, &[], "");
    let rejected: Vec<_> = report.rejected_nodes.keys().collect();
    assert_eq!(rejected, ["vm-1"]);
    for balancer in ["testCluster", "testCluster-internal"] {
        assert_eq!(members_of(&emulator, balancer), 4, "{balancer}");
    }
}

/// An entry that cannot change or be removed stays as it is, and so does the access to it.
#[tokio::test(start_paused = true)]
async fn a_member_that_cannot_change_stays_as_it_is() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let flat = annotated(
        service("flat", &[80]),
        "azure-disable-load-balancer-floating-ip",
        "true",
    );
    let services = [flat];
    let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
    assert!(report.is_converged(), "{report:#?}");
    let fault = reject(400, "InvalidBackendAddress").method(&Method::PUT);
    emulator.with(|machine| machine.inject(fault.path("loadBalancers").body("10.0.9.77")));
    let mut moved = nodes(4);
    moved[1] = azure_loadbalancer::Node::new("vm-2", "10.0.9.77".parse().unwrap());
    moved.remove(0);
    let report = executor.reconcile(&services, &moved).await.unwrap();
    assert_only_fails(&report, &[], "");
    assert_eq!(report.rejected_nodes.keys().collect::<Vec<_>>(), ["vm-2"]);
    let all = contents(&emulator);
    let pool = &all[&network("loadBalancers", "testCluster").to_lowercase()]["properties"]["backendAddressPools"];
    let group = &all[&network("networkSecurityGroups", "nsg").to_lowercase()];
    for address in ["10.0.9.2", "10.0.9.3", "10.0.9.4"] {
        assert!(pool.to_string().contains(address), "{pool}");
        assert!(group.to_string().contains(address), "{group}");
    }
    assert!(!pool.to_string().contains("10.0.9.1\""), "{pool}");
    assert!(!group.to_string().contains("10.0.9.1\""), "{group}");
}

/// A service without a reachable backend reports no address.
#[tokio::test(start_paused = true)]
async fn a_pool_that_is_rejected_empty_is_an_error_of_its_services() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    let fault = reject(400, "InvalidBackendAddress").method(&Method::PUT);
    emulator.with(|machine| machine.inject(fault.path("loadBalancers").body("10.0.9.")));
    let services = many(2);
    let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
    assert_only_fails(&report, &["svc000", "svc001"], "InvalidBackendAddress");
    let mut outcomes = report.services.values();
    assert!(outcomes.all(|outcome| outcome.ingress.is_empty()));
    assert_eq!(report.rejected_nodes.len(), 3, "{report:#?}");
    assert_eq!(members(&emulator), 0);

    emulator.with(|machine| machine.clear_faults());
    let report = executor.reconcile(&services, &nodes(3)).await.unwrap();
    assert_only_fails(&report, &[], "");
    assert!(report.is_converged(), "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_interfaces_keeps_nobody_out() {
    let emulator = azure(EmulatorOptions::default());
    let executor = executor(&emulator);
    executor.reconcile(&many(1), &[]).await.unwrap();
    let pool = format!(
        "{}/backendAddressPools/testCluster",
        network("loadBalancers", "testCluster")
    );
    let interface = serde_json::json!({ "location": "westus", "properties": { "ipConfigurations": [{ "name": "c", "properties": {
        "subnet": { "id": format!("{NETWORK}/virtualNetworks/vnet/subnets/subnet") },
        "loadBalancerBackendAddressPools": [{ "id": pool }],
    } }] } });
    emulator
        .with(|machine| machine.put(&network("networkInterfaces", "nic"), interface))
        .unwrap();
    let report = executor.reconcile(&many(2), &nodes(2)).await.unwrap();
    assert!(
        report.is_converged() && report.errors().is_empty(),
        "{report:#?}"
    );
    assert!(
        report
            .warnings
            .iter()
            .any(|warning| warning.what.contains("migrateToIpBased")),
        "{:?}",
        report.warnings
    );
    let (plan, _) = executor.plan(&many(2), &nodes(2)).await.unwrap();
    assert!(plan.is_done(), "{plan:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// A rejection of any kind of resource affects only the services responsible, and all succeed once
    /// nothing is rejected any more.
    #[test]
    fn whoever_is_rejected_is_rejected_alone(
        count in 1..13_u16, bad in proptest::collection::btree_set(0..13_usize, 0..4), kind in 0..3_usize, running in any::<bool>(),
        gone in any::<bool>(),
    ) {
        run(async {
            let emulator = azure(EmulatorOptions::default());
            let executor = executor(&emulator);
            let mut services = many(count);
            if running {
                executor.reconcile(&services, &nodes(1)).await.unwrap();
                if gone {
                    services.pop();
                }
                for service in &mut services {
                    service.client_affinity = true;
                    service.source_ranges = vec!["192.0.2.0/24".to_owned()];
                }
            }
            let bad: Vec<usize> = bad.into_iter().filter(|index| *index < services.len()).collect();
            for index in &bad {
                // The part that differs from the others' is rejected.
                let (kind, text) = match kind {
                    0 => {
                        let range = format!("172.{}.0.0/16", 100 + index);
                        services[*index].source_ranges = vec![range.clone()];
                        ("networkSecurityGroups", range)
                    }
                    1 => {
                        let minutes = 5 + index;
                        let patient = annotated(services[*index].clone(), "azure-load-balancer-tcp-idle-timeout", &minutes.to_string());
                        services[*index] = patient;
                        ("loadBalancers", format!(r#""idleTimeoutInMinutes":{minutes}"#))
                    }
                    _ => ("publicIPAddresses", prefix(&services[*index])),
                };
                let fault = reject(400, "InvalidPart").method(&Method::PUT).path(kind).body(text);
                emulator.with(|machine| machine.inject(fault));
            }
            let report = executor.reconcile(&services, &nodes(2)).await.unwrap();
            let failed: Vec<_> = report.errors().keys().map(|key| key.name.clone()).collect();
            let mut expected: Vec<_> = bad.iter().map(|index| format!("svc{index:03}")).collect();
            // Public addresses that are there already are not written any more.
            if running && kind == 2 {
                expected.clear();
            }
            assert_eq!(failed, expected, "{report:#?}");
            assert!(report.other_failures.is_empty(), "{report:#?}");
            assert!(report.rejections <= 16, "{} rejections", report.rejections);
            if expected.len() < services.len() {
                assert_eq!(members(&emulator), 2);
            }
            emulator.with(|machine| machine.clear_faults());
            let report = executor.reconcile(&services, &nodes(2)).await.unwrap();
            assert!(report.is_converged() && report.errors().is_empty(), "{report:#?}");
            let (plan, _) = executor.plan(&services, &nodes(2)).await.unwrap();
            assert!(plan.is_done(), "{plan:#?}");
        });
    }
}
