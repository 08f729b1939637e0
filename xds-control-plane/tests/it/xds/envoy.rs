//! Tests with real Envoys.
//!
//! Without the program `envoy` each test reports that it was left out.

use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;
use testkit::client::{Connection, Load};
use testkit::origin::{NamedOrigin, Origin};
use xds_control_plane::server::{ServerOptions, TypeStatus};
use xds_control_plane::snapshot::ResourceType;

use crate::xds::support::Running;
use crate::xds::support::envoy::{Envoy, Place, Way};
use crate::xds::support::resources::Plan;

/// Returns the response for the service of that name, if there is one.
async fn who_answers(envoy: SocketAddr, service: &str) -> Option<(StatusCode, String)> {
    let mut connection = Connection::http1(envoy).await.ok()?;
    let host = format!("{service}.example");
    let request = connection.request_for(&host, "GET", "/");
    let request = request.body(testkit::body::empty()).unwrap();
    let answer = connection.send(request).await.ok()?;
    Some((answer.status, answer.text()))
}

async fn wait_for_answer(envoy: &Envoy, at: SocketAddr, service: &str, origin: &NamedOrigin) {
    let expected = Some((StatusCode::OK, origin.name().to_owned()));
    let what = format!("{service} is answered by {}", origin.name());
    envoy
        .eventually(&what, async || who_answers(at, service).await == expected)
        .await;
}

#[tokio::test]
async fn every_kind_of_subscription_becomes_active_and_follows_changes() {
    let Some(program) = Envoy::find() else { return };
    let (one, other) = (Origin::named("one"), Origin::named("other"));
    for way in Way::ALL {
        let place = Place::new();
        let listen = place.listener();
        let plan = |endpoint: &NamedOrigin| {
            let service = Plan::default().service("svc", &[endpoint.addr()]);
            service.listen(listen).snapshot()
        };
        let server = Running::start(plan(&one)).await;
        let envoy = Envoy::start(&program, place, way, server.address);
        wait_for_answer(&envoy, listen, "svc", &one).await;
        server.publish(plan(&other));
        wait_for_answer(&envoy, listen, "svc", &other).await;
        for rejections in [
            "cluster_manager.cds",
            "listener_manager.lds",
            "http.http.rds.main",
        ] {
            let rejected = envoy.stat(&format!("{rejections}.update_rejected")).await;
            assert_eq!(rejected, Some(0), "{way:?} {rejections}");
        }
        let nodes = server.handle.nodes();
        let [node] = &nodes[..] else {
            panic!("{way:?}: {nodes:?}");
        };
        assert_eq!(node.node.id, "wtf");
        assert_eq!(node.node.cluster, "vertis-cluster");
        assert!(node.node.agent.starts_with("envoy "), "{way:?}");
        let is_polling = !node.polls.is_empty();
        assert_eq!(is_polling, way == Way::Rest, "{way:?}: {nodes:?}");
        assert_eq!(
            node.streams.is_empty(),
            way == Way::Rest,
            "{way:?}: {nodes:?}"
        );
    }
}

fn clusters_of(server: &Running) -> Option<TypeStatus> {
    let nodes = server.handle.nodes();
    let streams = nodes.iter().flat_map(|node| &node.streams);
    streams
        .flat_map(|stream| &stream.types)
        .find(|of| of.resource_type == ResourceType::Cluster)
        .cloned()
}

#[tokio::test]
async fn what_comes_with_a_rejected_cluster_is_served() {
    let Some(program) = Envoy::find() else { return };
    let (origin, other) = (Origin::named("origin"), Origin::named("other"));
    for way in [Way::Aggregated, Way::AggregatedDelta] {
        let place = Place::new();
        let listen = place.listener();
        let good = Plan::default()
            .service("svc", &[origin.addr()])
            .listen(listen);
        let server = Running::start(good.snapshot()).await;
        let envoy = Envoy::start(&program, place, way, server.address);
        wait_for_answer(&envoy, listen, "svc", &origin).await;

        let next = Plan {
            unusable: Some("unusable".to_owned()),
            ..good.clone()
        };
        let next = next
            .service("unusable", &[origin.addr()])
            .service("more", &[other.addr()]);
        server.publish(next.snapshot());
        wait_for_answer(&envoy, listen, "more", &other).await;
        wait_for_answer(&envoy, listen, "svc", &origin).await;
        let rejection = clusters_of(&server).and_then(|of| of.rejected).unwrap();
        let said = rejection.message;
        assert!(said.contains("unusable: "), "{way:?}: {said}");
        // No other service gets its requests, and Envoy has its cluster: a route without its cluster would
        // also return 503.
        let answer = who_answers(listen, "unusable").await.unwrap();
        assert_eq!(answer.0, StatusCode::SERVICE_UNAVAILABLE, "{way:?}");
        for wrong in ["no_cluster", "rds.main.update_rejected"] {
            let count = envoy.stat(&format!("http.http.{wrong}")).await;
            assert_eq!(count, Some(0), "{way:?} {wrong}");
        }

        // What goes, goes.
        let left = Plan {
            services: next.services[1..].to_vec(),
            ..next.clone()
        };
        server.publish(left.snapshot());
        envoy
            .eventually("the routes are gone", async || {
                let answer = who_answers(listen, "svc").await;
                answer.is_some_and(|(status, _)| status == StatusCode::NOT_FOUND)
            })
            .await;
    }
}

#[tokio::test]
async fn what_envoy_rejects_is_seen_and_not_sent_again() {
    let Some(program) = Envoy::find() else { return };
    let (origin, other) = (Origin::named("origin"), Origin::named("other"));
    for way in [Way::Aggregated, Way::AggregatedDelta, Way::Separate] {
        let place = Place::new();
        let listen = place.listener();
        let good = Plan::default()
            .service("svc", &[origin.addr()])
            .listen(listen);
        let server = Running::start(good.snapshot()).await;
        let envoy = Envoy::start(&program, place, way, server.address);
        wait_for_answer(&envoy, listen, "svc", &origin).await;

        let broken = Plan {
            broken: Some("broken".to_owned()),
            ..good.clone()
        };
        server.publish(broken.snapshot());
        envoy
            .eventually("the rejection is known", async || {
                clusters_of(&server).is_some_and(|of| of.rejected.is_some())
            })
            .await;
        let of = clusters_of(&server).unwrap();
        let rejection = of.rejected.unwrap();
        assert_eq!(Some(rejection.version), of.sent, "{way:?}");
        assert!(
            rejection.message.contains("broken"),
            "{way:?}: {}",
            rejection.message
        );
        envoy
            .wait_for_stat("cluster_manager.cds.update_rejected", |count| count == 1)
            .await;

        // Envoy keeps its earlier resources, follows other changes, and does not get the same again.
        for endpoint in [&other, &origin, &other] {
            let moved = Plan {
                services: vec![("svc".to_owned(), vec![endpoint.addr()])],
                ..broken.clone()
            };
            server.publish(moved.snapshot());
            wait_for_answer(&envoy, listen, "svc", endpoint).await;
        }
        let rejected = envoy.stat("cluster_manager.cds.update_rejected").await;
        assert_eq!(rejected, Some(1), "{way:?}");
        assert_eq!(
            clusters_of(&server).unwrap().responses,
            of.responses,
            "{way:?}"
        );

        // Envoy then takes the fixed resources, with those that came meanwhile.
        let mended = good.service("more", &[origin.addr()]);
        server.publish(mended.snapshot());
        wait_for_answer(&envoy, listen, "more", &origin).await;
    }
}

#[tokio::test]
async fn a_service_comes_and_goes_under_load_without_a_503() {
    let Some(program) = Envoy::find() else { return };
    let origin = Origin::named("origin");
    for way in Way::ALL {
        let place = Place::new();
        let listen = place.listener();
        let stays = Plan::default()
            .service("stays", &[origin.addr()])
            .listen(listen);
        let both = stays.clone().service("comes", &[origin.addr()]);
        let options = ServerOptions::default()
            .with_removal_grace(Duration::from_secs(4))
            .with_addition_lead(Duration::from_secs(2));
        let server = Running::with(stays.snapshot(), options).await;
        let envoy = Envoy::start(&program, place, way, server.address);
        wait_for_answer(&envoy, listen, "stays", &origin).await;

        let steady = Load::new(listen)
            .connections(2)
            .request(|connection, _| request(connection, "stays"))
            .start();
        // Where there is no route, there is no service: anything else is one that was promised and is not there.
        let moved = Load::new(listen)
            .connections(2)
            .request(|connection, _| request(connection, "comes"))
            .expect(|answer| match answer.status {
                StatusCode::OK | StatusCode::NOT_FOUND => Ok(()),
                status => Err(format!("status {}: {}", status.as_u16(), answer.text())),
            })
            .start();
        for _ in 0..3 {
            server.publish(both.snapshot());
            wait_for_answer(&envoy, listen, "comes", &origin).await;
            server.publish(stays.snapshot());
            envoy
                .eventually("the cluster is gone", async || {
                    let clusters = envoy.ask("/clusters").await;
                    clusters.is_some_and(|clusters| !clusters.contains("comes::"))
                })
                .await;
            let answer = who_answers(listen, "comes").await.unwrap();
            assert_eq!(answer.0, StatusCode::NOT_FOUND, "{way:?}");
        }
        // All clusters change at once, and all warm again.
        server.publish(
            Plan {
                connect_timeout: Some(Duration::from_secs(2)),
                ..both
            }
            .snapshot(),
        );
        wait_for_answer(&envoy, listen, "comes", &origin).await;
        for load in [steady, moved] {
            let report = load.stop().await;
            assert!(
                report.succeeded > 0 && report.failures() == 0,
                "{way:?}: {report}"
            );
        }
    }
}

fn request(connection: &Connection, service: &str) -> http::Request<testkit::body::Body> {
    let host = format!("{service}.example");
    let request = connection.request_for(&host, "GET", "/");
    request.body(testkit::body::empty()).unwrap()
}

/// X19: an Envoy without an aggregated stream has one for each cluster, all over one connection.
#[tokio::test]
async fn five_hundred_clusters_over_separate_streams_are_all_warm() {
    const CLUSTERS: u64 = 500;
    let Some(program) = Envoy::find() else { return };
    let origin = Origin::named("origin");
    let place = Place::new();
    let listen = place.listener();
    let plan = (0..CLUSTERS).fold(Plan::default().listen(listen), |plan, number| {
        plan.service(&format!("svc-{number}"), &[origin.addr()])
    });
    let server = Running::start(plan.snapshot()).await;
    let envoy = Envoy::start(&program, place, Way::Separate, server.address);
    // One more is the control plane itself.
    envoy
        .wait_for_stat("cluster_manager.active_clusters", |count| {
            count == CLUSTERS + 1
        })
        .await;
    envoy
        .wait_for_stat("cluster_manager.warming_clusters", |count| count == 0)
        .await;
    wait_for_answer(&envoy, listen, "svc-499", &origin).await;
    // Clusters, listeners, and the one route configuration.
    assert_eq!(server.handle.open_streams() as u64, CLUSTERS + 3);
}
