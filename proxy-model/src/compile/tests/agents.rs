//! Agent checks.

use std::time::Duration;

use super::*;

#[test]
fn agent_checks() {
    let agent = |agent: Value, destinations: Value| json!({ "Clusters": { "c": { "HealthCheck": { "Agent": agent }, "Destinations": destinations } } });
    let two = || {
        json!({
            "a": { "Address": "http://a/", "Metadata": { "agentcheck.port": " 9001 " } },
            "b": { "Address": "http://b/" },
        })
    };
    let off = accepted(agent(json!({ "Port": 9000 }), two()));
    assert!(off.clusters()[0].agent_check().is_none());
    assert!(!off.clusters()[0].upstream().is_limited());

    let snapshot = accepted(agent(json!({ "Enabled": true, "Port": 9000 }), two()));
    let cluster = &snapshot.clusters()[0];
    let check = cluster.agent_check().unwrap();
    let seconds = Duration::from_secs;
    assert_eq!(
        (check.interval(), check.timeout(), check.send()),
        (seconds(2), seconds(2), "")
    );
    let ports: Vec<_> = cluster
        .destinations()
        .iter()
        .map(|d| check.port_at(d))
        .collect();
    assert_eq!(ports, [Some(9001), Some(9000)]);
    // Its agents may limit connections, which all workers then share.
    assert!(cluster.upstream().is_limited() && cluster.upstream().max_connections().is_none());

    let set = json!({ "Enabled": true, "Port": 9000, "Send": "orders\n", "Interval": "5s", "Timeout": "1s" });
    let snapshot = accepted(agent(set, two()));
    let check = snapshot.clusters()[0].agent_check().unwrap();
    assert_eq!(
        (check.interval(), check.timeout(), check.send()),
        (seconds(5), seconds(1), "orders\n")
    );
    assert_eq!(
        accepted(agent(
            json!({ "Enabled": true, "Interval": "7s", "Port": 1 }),
            two()
        ))
        .clusters()[0]
            .agent_check()
            .unwrap()
            .timeout(),
        seconds(7)
    );

    rejected(
        agent(json!({ "Enabled": true }), two()),
        "missing_agent_port",
        "/Clusters/c/HealthCheck/Agent/Port",
    );
    let wrong = json!({ "a": { "Address": "http://a/", "Metadata": { "AgentCheck.Port": "0" } } });
    rejected(
        agent(json!({ "Enabled": true, "Port": 9000 }), wrong),
        "invalid_metadata",
        "/Clusters/c/Destinations/a/Metadata/AgentCheck.Port",
    );
    for (more, code, below) in [
        (json!({ "Interval": "0s" }), "not_positive", "Interval"),
        (json!({ "Timeout": "0s" }), "not_positive", "Timeout"),
        (json!({ "Send": "x".repeat(4097) }), "too_long", "Send"),
    ] {
        let mut set = json!({ "Enabled": true, "Port": 9000 });
        set.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        rejected(
            agent(set, two()),
            code,
            &format!("/Clusters/c/HealthCheck/Agent/{below}"),
        );
    }
}
