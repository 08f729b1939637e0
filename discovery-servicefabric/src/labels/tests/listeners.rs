//! Replicas with several endpoints.

use super::*;

const THREE: &str = r#"{"Endpoints":{
    "web":"https://10.0.0.1","admin":"https://10.0.0.1:9443","grpc":"https://10.0.0.1:5001","rpc":"net.tcp://10.0.0.1:1/"
}}"#;

fn three(pairs: &[(&str, &str)]) -> ServiceDescription {
    let replicas = vec![replica(1, THREE)];
    service(ServiceKind::Stateless, pairs, vec![singleton(replicas)])
}

#[test]
fn each_listener_has_a_cluster_and_routes_choose() {
    let pairs = [
        ("YARP.Backend.ServiceFabric.ListenerName", "web"),
        ("YARP.Backend.ServiceFabric.ListenerMode", "PerListener"),
        ("YARP.Routes.a.Path", "/{**rest}"),
        ("YARP.Routes.b.Path", "/grpc/{**rest}"),
        ("YARP.Routes.b.ServiceFabric.ListenerName", "grpc"),
        ("YARP.Routes.c.Path", "/web/{**rest}"),
        ("YARP.Routes.c.ServiceFabric.ListenerName", "web"),
    ];
    let config = good(&YarpLabels::default(), &three(&pairs));
    assert_eq!(
        cluster_ids(&config),
        [
            "fabric:/App/Web",
            "fabric:/App/Web/grpc",
            "fabric:/App/Web/admin"
        ]
    );
    let grpc = &config.clusters[&ClusterId::from("fabric:/App/Web/grpc")];
    assert_eq!(addresses(grpc), [("P1/1", "https://10.0.0.1:5001/")]);
    assert_eq!(grpc.metadata.as_ref().unwrap()["__SF.ListenerName"], "grpc");
    let targets: Vec<_> = config
        .routes
        .values()
        .map(|r| r.cluster_id.clone().unwrap())
        .collect();
    assert_eq!(
        targets,
        ["fabric:/App/Web", "fabric:/App/Web/grpc", "fabric:/App/Web"]
    );
    let listeners = ["admin", "grpc", "web"].map(str::to_owned);
    assert_eq!(
        parse(&three(&pairs)).replicas[0].result,
        Ok(listeners.into())
    );
}

#[test]
fn without_a_default_every_listener_that_can_be_reached_has_a_cluster() {
    let options = LabelOptions::default().with_listener_mode(ListenerMode::PerListener);
    let parser = YarpLabels::new(options);
    let config = good(&parser, &three(&[]));
    assert_eq!(
        cluster_ids(&config),
        [
            "fabric:/App/Web",
            "fabric:/App/Web/admin",
            "fabric:/App/Web/grpc",
            "fabric:/App/Web/web"
        ]
    );
    let one = good(
        &parser,
        &three(&[("YARP.Backend.ServiceFabric.ListenerMode", "One")]),
    );
    assert_eq!(cluster_ids(&one), ["fabric:/App/Web"]);
}

#[test]
fn a_route_may_ask_for_a_listener_alone() {
    let pairs = [
        ("YARP.Routes.a.Path", "/"),
        ("YARP.Routes.a.ServiceFabric.ListenerName", "grpc"),
        ("YARP.Routes.b.Path", "/b"),
        ("YARP.Routes.b.ServiceFabric.ListenerName", "gone"),
    ];
    let parsed = parse(&three(&pairs));
    assert_eq!(
        problems(&parsed),
        [
            "warning at /YARP.Routes.b.ServiceFabric.ListenerName: no replica has a usable endpoint called `gone`: of the first one, it has no listener `gone`, only `admin`, `grpc`, `rpc`, `web`"
        ]
    );
    let config = parsed.config.unwrap();
    assert_compiles(&config);
    // It has no destinations, but exists: 503 is better than another service's response.
    let clusters: Vec<_> = config
        .clusters
        .iter()
        .map(|(id, c)| (id.as_str(), c.destinations.len()))
        .collect();
    assert_eq!(
        clusters,
        [
            ("fabric:/App/Web", 1),
            ("fabric:/App/Web/grpc", 1),
            ("fabric:/App/Web/gone", 0)
        ]
    );
}

#[test]
fn a_listener_may_have_any_name() {
    let address = r#"{"Endpoints":{"":"https://h","a/b":"https://h:1","A/B":"https://h:2"}}"#;
    let options = LabelOptions::default().with_listener_mode(ListenerMode::PerListener);
    let replicas = vec![replica(1, address)];
    let described = service(ServiceKind::Stateless, &[], vec![singleton(replicas)]);
    let config = good(&YarpLabels::new(options), &described);
    assert_eq!(
        cluster_ids(&config),
        ["fabric:/App/Web", "fabric:/App/Web/A%2FB"]
    );
}

/// A name that clusters of secondaries have: those were there first.
#[test]
fn a_listener_does_not_take_the_place_of_secondaries() {
    let address = r#"{"Endpoints":{"Secondaries":"https://h:1"}}"#;
    let options = LabelOptions::default()
        .with_listener_mode(ListenerMode::PerListener)
        .with_role_routing(RoleRouting::Methods);
    let replicas = vec![Replica {
        replica_role: ReplicaRole::Primary,
        ..replica(1, address)
    }];
    let described = service(ServiceKind::Stateful, &[], vec![singleton(replicas)]);
    let config = good(&YarpLabels::new(options), &described);
    assert_eq!(
        cluster_ids(&config),
        ["fabric:/App/Web", "fabric:/App/Web/secondaries"]
    );
}

#[test]
fn listeners_that_would_be_one_cluster_are_rejected() {
    let told = rejected(&three(&[
        ("YARP.Routes.a.Path", "/"),
        ("YARP.Routes.a.ServiceFabric.ListenerName", "grpc"),
        ("YARP.Routes.b.Path", "/b"),
        ("YARP.Routes.b.ServiceFabric.ListenerName", "GRPC"),
    ]));
    let error = "error at /: two parts of the service would be the cluster `fabric:/App/Web/GRPC` (rename the listener)";
    assert!(told.contains(&error.to_owned()), "{told:?}");
}
