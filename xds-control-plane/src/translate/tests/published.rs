use super::world::World;
use crate::assemble::{Owner, ServiceResources, oracle};
use crate::translate::HealthCheckKind;

/// A combination of all features, with difficult names.
fn world() -> World {
    let registry = "[
        {name: a, provides: [{name: http}, {name: rpc, proto: grpc}, {name: raw, proto: tcp}],
         branches: [{name: 'fix[1.*(', canary_percent: 40}, {name: 'Ünïcode+', canary_percent: 70}, {name: '100%'}, {name: LONG}]},
        {name: empty, provides: [{name: http}]}
    ]";
    let fixed = "
listeners:
- {name: raw, port: 3306, tcp: {cluster: db, idleTimeout: 30m, maxConnectAttempts: 3}}
- {name: web, address: '::1', port: 8081, http: {useRemoteAddress: true, requestTimeout: 30s, streamIdleTimeout: 1m}}
services:
- {name: db, protocol: tcp, connectTimeout: 2s, endpoints: ['10.0.0.5:3306', '[2001:db8::1]:3306']}
- {name: old, domains: ['*.old.example', old.example], timeout: 1.5s, limits: {maxRetries: 0}, endpoints: ['10.0.0.6:80']}
";
    World::new()
        .registry(&registry.replace("LONG", &"b".repeat(180)))
        .fixed(fixed)
        .settings(r#"{"cds": {"lb_policy": "RING_HASH", "health_checks": {"interval": "250ms"}}}"#)
        .live("a-http@sas=10.0.0.1:80", &[])
        .live("a-fix[1.*(-http@vla=2a02:6b8::1:80", &[])
        .live("a-Ünïcode+-http@vla=10.0.1.1:80", &[])
        .live(
            "j@iva=10.0.2.1:80",
            &[
                "domain-J.example",
                "domain-x:8080",
                "envoy.settings.upstream.max_retries=0",
            ],
        )
}

fn all(world: &World) -> ServiceResources {
    let mut all = ServiceResources::new(Owner::new("all", "all"));
    for service in world.translate().translation.services {
        all.clusters.extend(service.clusters.clone());
        all.assignments.extend(service.assignments.clone());
        all.virtual_hosts.extend(service.virtual_hosts.clone());
        all.listeners.extend(service.listeners.clone());
    }
    all
}

/// A real Envoy accepts everything that is published.
#[tokio::test]
async fn a_real_envoy_takes_it_all() {
    let Some(envoy) = testkit::peers::find("envoy") else {
        return;
    };
    let mut world = world();
    for kind in [
        HealthCheckKind::Tcp,
        HealthCheckKind::None,
        HealthCheckKind::Http("/ping".into()),
    ] {
        world.options.health_check = kind;
        assert_eq!(oracle::validate(&envoy, &all(&world)).await, Ok(()));
    }
    world.options.legacy_regex = true;
    assert_eq!(oracle::validate(&envoy, &all(&world)).await, Ok(()));
}
