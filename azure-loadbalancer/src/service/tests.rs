use serde_json::json;

use super::{Service, ServiceKey, ServicePort};

#[test]
fn a_document_of_kubernetes_is_read() {
    let service: Service = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "257b9655-5137-4ad2-b091-ef3f07043ad3",
            "annotations": {"a": "b"}, "resourceVersion": "7"
        },
        "spec": {
            "type": "LoadBalancer", "clusterIP": "10.0.0.1", "loadBalancerIP": "1.2.3.4",
            "loadBalancerSourceRanges": ["10.0.0.0/8"], "sessionAffinity": "ClientIP",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 32456,
            "ports": [{"name": "http", "port": 80, "nodePort": 30080, "targetPort": "web", "appProtocol": "http"}]
        },
        "status": {"loadBalancer": {}}
    }))
    .expect("it reads");
    assert_eq!(service.key, ServiceKey::new("shop", "web"));
    assert!(service.is_wanted() && service.client_affinity && service.local_traffic_only);
    assert_eq!(service.health_check_node_port, Some(32456));
    assert_eq!(service.load_balancer_ip.as_deref(), Some("1.2.3.4"));
    let port = ServicePort {
        name: Some("http".to_owned()),
        app_protocol: Some("http".to_owned()),
        ..ServicePort::tcp(80, 30080)
    };
    assert_eq!(service.ports, [port]);
}

#[test]
fn a_service_that_goes_away_or_is_of_another_type_is_not_wanted() {
    let read = |metadata, kind| {
        serde_json::from_value::<Service>(json!({"metadata": metadata, "spec": {"type": kind}}))
            .expect("it reads")
    };
    assert!(read(json!({"name": "a"}), "LoadBalancer").is_wanted());
    assert!(!read(json!({"name": "a"}), "ClusterIP").is_wanted());
    let going = json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert!(!read(going, "LoadBalancer").is_wanted());
}

#[test]
fn without_a_uid_the_key_gives_one() {
    let one = Service::new("default", "web");
    let read: Service =
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {}})).expect("it reads");
    assert_eq!(one.uid_in("c"), read.uid_in("c"));
    assert_ne!(one.uid_in("c"), one.uid_in("d"));
    assert_ne!(one.uid_in("c"), Service::new("default", "web2").uid_in("c"));
}

#[test]
fn the_class_of_a_service_is_read() {
    let read = |class| {
        let document = json!({"metadata": {"name": "a"}, "spec": {"type": "LoadBalancer", "loadBalancerClass": class}});
        serde_json::from_value::<Service>(document)
            .expect("it reads")
            .load_balancer_class
    };
    assert_eq!(
        read(json!("example.com/x")).as_deref(),
        Some("example.com/x")
    );
    assert_eq!(read(json!(null)), None);
}

#[test]
fn keys_are_read_as_they_are_written() {
    assert_eq!("a/b".parse(), Ok(ServiceKey::new("a", "b")));
    for wrong in ["", "a", "/b", "a/", "a/b/c"] {
        assert!(wrong.parse::<ServiceKey>().is_err(), "{wrong:?}");
    }
}
