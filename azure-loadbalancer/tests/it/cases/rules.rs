use azure_loadbalancer::annotations::keys;
use azure_loadbalancer::plan::PlanError;
use azure_loadbalancer::resources::{LoadDistribution, ProbeProtocol, TransportProtocol};
use azure_loadbalancer::service::ServicePort;
use azure_loadbalancer::{Config, Service};
use serde_json::json;

use crate::support::*;

fn made(config: &Config, asked: Service) -> Azure {
    let mut azure = empty();
    let (plan, _) = azure.converge(config, &[asked], &[]);
    assert!(
        plan.services
            .values()
            .all(|outcome| outcome.error.is_none()),
        "{:?}",
        plan.services
    );
    azure
}

fn rejected(config: &Config, asked: Service) -> PlanError {
    let (plan, log) = empty().converge(config, &[asked], &[]);
    assert_eq!(log, Vec::<String>::new());
    plan.services
        .into_values()
        .next()
        .and_then(|outcome| outcome.error)
        .expect("an error")
}

fn mixed(name: &str) -> Service {
    let mut asked = service(name, &[80]);
    asked.ports.push(ServicePort::udp(1234, 11234));
    asked
}

fn local(mut asked: Service) -> Service {
    asked.local_traffic_only = true;
    asked.health_check_node_port = Some(32456);
    asked
}

// Case D2.
#[test]
fn a_udp_port_has_no_probe() {
    let azure = made(&note(), mixed("a"));
    let rules = azure.rules("testCluster");
    assert_eq!(names(&rules), ["aa-TCP-80", "aa-UDP-1234"]);
    assert!(rules[0].properties.probe.is_some() && rules[1].properties.probe.is_none());
    assert_eq!(rules[1].properties.protocol, Some(TransportProtocol::Udp));
    let probes = azure.probes("testCluster");
    assert_eq!(names(&probes), ["aa-TCP-80"]);
    let probe = &probes[0].properties;
    assert_eq!(
        (
            probe.port,
            probe.interval_in_seconds,
            probe.number_of_probes
        ),
        (10080, Some(5), Some(2))
    );
    let rule = &rules[0].properties;
    assert_eq!(
        (
            rule.frontend_port,
            rule.backend_port,
            rule.enable_floating_ip
        ),
        (80, 80, Some(true))
    );
}

// Cases D3, D4.
#[test]
fn affinity_is_by_the_clients_address() {
    let mut asked = service("a", &[80]);
    for (affinity, distribution) in [
        (false, LoadDistribution::Default),
        (true, LoadDistribution::SourceIp),
    ] {
        asked.client_affinity = affinity;
        let azure = made(&note(), asked.clone());
        let rule = &azure.rules("testCluster")[0].properties;
        assert_eq!(
            rule.load_distribution
                .clone()
                .unwrap_or(LoadDistribution::Default),
            distribution
        );
    }
}

// Cases D5, D6, D25.
#[test]
fn local_traffic_is_probed_where_nodes_tell() {
    let azure = made(&note(), local(service("a", &[80])));
    let probe = &azure.probes("testCluster")[0].properties;
    assert_eq!(
        (&probe.protocol, probe.port),
        (&Some(ProbeProtocol::Http), 32456)
    );
    assert_eq!(probe.request_path.as_deref(), Some("/healthz"));
    assert!(matches!(
        rejected(&note(), local(mixed("a"))),
        PlanError::Annotation(_)
    ));
    let mut nowhere = local(service("a", &[80]));
    nowhere.health_check_node_port = None;
    assert!(
        rejected(&note(), nowhere)
            .to_string()
            .contains("healthCheckNodePort")
    );
    // In the current edition all ports have a probe, UDP too.
    let mut asked = local(mixed("a"));
    asked.ports.push(ServicePort::tcp(81, 10081));
    let asked = with(asked, keys::PROBE_PROTOCOL, "tcp");
    let azure = made(&current(), asked);
    assert_eq!(names(&azure.probes("testCluster")), ["aa-TCP-32456"]);
    assert!(
        azure
            .rules("testCluster")
            .iter()
            .all(|rule| rule.properties.probe.is_some())
    );
}

// Case D16.
#[test]
fn all_of_a_probe_is_compared() {
    let mut azure = empty();
    let mut asked = service("a", &[80]);
    asked.ports[0].node_port = Some(32456);
    azure.converge(&note(), std::slice::from_ref(&asked), &[]);
    azure.converge(&note(), &[local(asked.clone())], &[]);
    let probe = &azure.probes("testCluster")[0].properties;
    assert_eq!(
        (&probe.protocol, probe.request_path.as_deref()),
        (&Some(ProbeProtocol::Http), Some("/healthz"))
    );
    azure.converge(&note(), &[asked], &[]);
    let probe = &azure.probes("testCluster")[0].properties;
    assert_eq!(
        (&probe.protocol, probe.request_path.as_deref()),
        (&Some(ProbeProtocol::Tcp), None)
    );
}

// Case D8.
#[test]
fn services_share_a_load_balancer() {
    let mut azure = empty();
    let (a, b) = (service("a", &[80, 443]), service("b", &[80]));
    azure.converge(&note(), &[a.clone(), b.clone()], &[]);
    assert_eq!(azure.rules("testCluster").len(), 3);
    assert_eq!(azure.frontends("testCluster").len(), 2);
    azure.converge(&note(), &[deleting(a), b.clone()], &[]);
    assert_eq!(names(&azure.rules("testCluster")), ["ab-TCP-80"]);
    assert_eq!(azure.probes("testCluster").len(), 1);
    azure.converge(&note(), &[deleting(b)], &[]);
    assert!(azure.balancers().is_empty());
}

// Case D12.
#[test]
fn idle_timeouts_have_limits() {
    for wrong in ["3", "31", "abc", "4.5", "", "-4", "4294967296"] {
        let error = rejected(
            &note(),
            with(service("a", &[80]), keys::TCP_IDLE_TIMEOUT, wrong),
        );
        assert!(
            error.to_string().contains(keys::TCP_IDLE_TIMEOUT),
            "{error}"
        );
    }
    rejected(
        &current(),
        with(service("a", &[80]), keys::TCP_IDLE_TIMEOUT, "101"),
    );
    for (config, longest) in [(note(), 30), (current(), 100)] {
        let asked = with(mixed("a"), keys::TCP_IDLE_TIMEOUT, &longest.to_string());
        let mut azure = made(&config, asked);
        let rules = azure.rules("testCluster");
        assert_eq!(rules[0].properties.idle_timeout_in_minutes, Some(longest));
        assert_eq!(rules[1].properties.idle_timeout_in_minutes, Some(4));
        // Without the annotation it is the default again.
        azure.converge(&config, &[mixed("a")], &[]);
        assert_eq!(
            azure.rules("testCluster")[0]
                .properties
                .idle_timeout_in_minutes,
            Some(4)
        );
    }
}

// Case D18.
#[test]
fn tcp_reset_is_for_standard_load_balancers() {
    let reset = |azure: &Azure| azure.rules("testCluster")[0].properties.enable_tcp_reset;
    assert_eq!(reset(&made(&current(), service("a", &[80]))), Some(true));
    let off = with(service("a", &[80]), keys::DISABLE_TCP_RESET, "true");
    assert_eq!(reset(&made(&current(), off)), Some(false));
    assert_eq!(reset(&made(&note(), service("a", &[80]))), Some(false));
}

// Case D19.
#[test]
fn probes_follow_annotations() {
    let mut https = service("a", &[8000]);
    https.ports[0].app_protocol = Some("HTTPS".to_owned());
    let azure = made(&current(), https.clone());
    let probe = &azure.probes("testCluster")[0].properties;
    assert_eq!(
        (&probe.protocol, probe.request_path.as_deref()),
        (&Some(ProbeProtocol::Https), Some("/"))
    );
    let basic = Config {
        edition: azure_loadbalancer::config::Edition::Current,
        ..note()
    };
    assert_eq!(
        made(&basic, https.clone()).probes("testCluster")[0]
            .properties
            .protocol,
        Some(ProbeProtocol::Tcp)
    );

    // The port's own annotation takes precedence over the application's protocol, and that over the
    // annotation for all ports.
    let port = |what: &str| keys::of_port(8000, what);
    let asked = with(
        with(https, &port(keys::PORT_PROBE_PROTOCOL), "http"),
        keys::PROBE_REQUEST_PATH,
        "up",
    );
    let asked = with(
        with(asked, keys::PROBE_INTERVAL, "9"),
        &port(keys::PORT_PROBE_COUNT),
        "3",
    );
    let asked = with(asked, &port(keys::PORT_PROBE_PORT), "9000");
    let azure = made(&current(), asked);
    let probe = &azure.probes("testCluster")[0].properties;
    assert_eq!(
        (&probe.protocol, probe.request_path.as_deref()),
        (&Some(ProbeProtocol::Http), Some("/up"))
    );
    assert_eq!(
        (probe.interval_in_seconds, probe.probe_threshold, probe.port),
        (Some(9), Some(3), 9000)
    );
}

#[test]
fn a_probes_port_may_be_that_of_another_port() {
    let mut asked = service("a", &[80, 90]);
    asked.ports[1].name = Some("health".to_owned());
    for named in ["90", "health"] {
        let asked = with(
            asked.clone(),
            &keys::of_port(80, keys::PORT_PROBE_PORT),
            named,
        );
        assert_eq!(
            made(&current(), asked).probes("testCluster")[0]
                .properties
                .port,
            10090
        );
    }
    let error = rejected(
        &current(),
        with(asked, &keys::of_port(80, keys::PORT_PROBE_PORT), "nope"),
    );
    assert!(error.to_string().contains("health-probe_port"), "{error}");
}

#[test]
fn probes_that_take_too_long_are_rejected() {
    for (interval, count) in [
        ("60", "2"),
        ("4", "2"),
        ("5", "1"),
        ("5", "24"),
        ("x", "2"),
        ("4294967295", "4294967295"),
    ] {
        let asked = with(service("a", &[80]), keys::PROBE_INTERVAL, interval);
        rejected(&current(), with(asked, keys::PROBE_COUNT, count));
    }
    made(
        &current(),
        with(service("a", &[80]), keys::PROBE_INTERVAL, "59"),
    );
}

// Case D23.
#[test]
fn ports_go_without_rule_or_probe() {
    let asked = service("a", &[80, 8000, 9000]);
    let asked = with(asked, &keys::of_port(8000, keys::PORT_NO_RULE), "true");
    let asked = with(asked, &keys::of_port(9000, keys::PORT_NO_PROBE), "true");
    let azure = made(&current(), asked);
    let rules = azure.rules("testCluster");
    assert_eq!(names(&rules), ["aa-TCP-80", "aa-TCP-9000"]);
    assert!(rules[1].properties.probe.is_none());
    assert_eq!(names(&azure.probes("testCluster")), ["aa-TCP-80"]);
}

// Case D22.
#[test]
fn without_a_floating_address_packets_go_to_the_node_port() {
    let azure = made(
        &current(),
        with(service("a", &[80]), keys::DISABLE_FLOATING_IP, "true"),
    );
    let rule = &azure.rules("testCluster")[0].properties;
    assert_eq!((rule.frontend_port, rule.backend_port), (80, 10080));
    assert_ne!(rule.enable_floating_ip, Some(true));
}

#[test]
fn a_port_of_nodes_is_that_of_one_service() {
    let asked = |name: &str| with(service(name, &[80]), keys::DISABLE_FLOATING_IP, "true");
    let (plan, _) = empty().converge(&current(), &[asked("a"), asked("b")], &[]);
    assert!(plan.services[&key("a")].error.is_none());
    assert!(matches!(
        plan.services[&key("b")].error,
        Some(PlanError::PortConflict { port: 10080, .. })
    ));
}

#[test]
fn ports_that_cannot_be_are_rejected() {
    let mut sctp = service("a", &[80]);
    sctp.ports[0].protocol = "SCTP".to_owned();
    let mut without = service("a", &[80]);
    without.ports[0].node_port = None;
    for asked in [
        sctp,
        without,
        service("a", &[]),
        service("a", &[80, 80]),
        service("a", &[0]),
    ] {
        rejected(&note(), asked.clone());
        rejected(&current(), asked);
    }
}

// Case D27.
#[test]
fn what_others_put_on_the_load_balancer_stays() {
    let mut azure = made(&note(), service("a", &[80]));
    let id = note().load_balancer_id("testCluster");
    let frontend = id.child("frontendIPConfigurations", "theirs");
    azure.add_public_ip("rg", "theirs", "9.9.9.9", "Basic", &[]);
    let mut document = serde_json::to_value(&azure.snapshot.load_balancers[0]).unwrap();
    let mut add = |kind: &str, part: serde_json::Value| {
        let list = document["properties"]
            .as_object_mut()
            .unwrap()
            .entry(kind)
            .or_insert(json!([]));
        list.as_array_mut().unwrap().push(part);
    };
    add(
        "frontendIPConfigurations",
        json!({"name": "theirs", "zones": ["1"], "properties": {"publicIPAddress": {"id": note().public_ip_id("rg", "theirs")}}}),
    );
    add(
        "backendAddressPools",
        json!({"name": "theirs", "properties": {"drainPeriodInSeconds": 9}}),
    );
    add(
        "probes",
        json!({"name": "theirs", "properties": {"protocol": "Tcp", "port": 1}}),
    );
    add(
        "loadBalancingRules",
        json!({"name": "theirs", "properties": {"protocol": "Tcp", "frontendPort": 80, "backendPort": 80,
        "frontendIPConfiguration": {"id": frontend}, "backendAddressPool": {"id": id.child("backendAddressPools", "theirs")}}}),
    );
    add(
        "inboundNatRules",
        json!({"name": "nat", "properties": {"frontendPort": 22, "frontendIPConfiguration": {"id": frontend}}}),
    );
    add(
        "outboundRules",
        json!({"name": "out", "properties": {"frontendIPConfigurations": [{"id": frontend}]}}),
    );
    azure.snapshot.load_balancers[0] = serde_json::from_value(document.clone()).unwrap();
    azure.converge(&note(), &[service("a", &[81]), service("b", &[80])], &[]);
    azure.converge(&note(), &[], &[]);
    azure.converge(
        &note(),
        &[deleting(service("a", &[81])), deleting(service("b", &[80]))],
        &[],
    );
    let after = serde_json::to_value(azure.balancer_named("testCluster")).unwrap();
    for (kind, name) in [
        ("frontendIPConfigurations", "theirs"),
        ("backendAddressPools", "theirs"),
        ("probes", "theirs"),
        ("loadBalancingRules", "theirs"),
        ("inboundNatRules", "nat"),
        ("outboundRules", "out"),
    ] {
        let find = |document: &serde_json::Value| {
            let parts = document["properties"][kind].as_array().unwrap().clone();
            parts.into_iter().find(|part| part["name"] == name)
        };
        let (old, new) = (find(&document).unwrap(), find(&after).unwrap());
        for (field, value) in old["properties"].as_object().unwrap() {
            assert_eq!(new["properties"][field], *value, "{kind}: {field}");
        }
    }
}
