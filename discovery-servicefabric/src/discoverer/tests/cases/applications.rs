//! Several services, in one application and in two.

use super::*;

/// Q04 to Q06
#[tokio::test(start_paused = true)]
async fn services_of_two_applications_have_clusters_and_reports_of_their_own() {
    let cluster = with_labels(&[]);
    let instances = |first: i64| {
        let ids = [first, first + 1].into_iter();
        ids.map(|id| replica(ServiceKind::Stateless, id, ADDRESS))
            .collect::<Vec<_>>()
    };
    cluster.edit(|contents| {
        contents
            .service_type("AppType", "1.0", "PlainType", [("a", "b")])
            .remove_service("fabric:/App/Web")
            .service(
                "fabric:/App/Web",
                "WebType",
                ServiceKind::Stateless,
                [("P1", instances(0)), ("P2", instances(2))],
            )
            .service(
                "fabric:/App/Plain",
                "PlainType",
                ServiceKind::Stateless,
                [("P3", instances(4))],
            );
    });
    let with_replicas = || ServiceFabricOptions::default().with_report_replicas_health(true);
    let found = outcome(&cluster, with_replicas()).await;
    assert_eq!(found.clusters, ["fabric:/App/Web"]);
    assert_eq!(found.destinations.len(), 4);
    assert_eq!(
        found.reports,
        [
            "replica P1/0 Ok",
            "replica P1/1 Ok",
            "replica P2/2 Ok",
            "replica P2/3 Ok",
            "service App~Web Ok",
        ]
    );
    let found = outcome(&cluster, ServiceFabricOptions::default()).await;
    assert_eq!(found.reports, OK);

    cluster.edit(|contents| {
        contents
            .application("fabric:/Other", "AppType", "1.0", [])
            .stateless(
                "fabric:/App/Api",
                "WebType",
                [("P4", vec![(6, "https://a:1")])],
            )
            .stateless(
                "fabric:/Other/Web",
                "WebType",
                [("P5", vec![(7, "https://b:1")])],
            );
    });
    let mut found = outcome(&cluster, ServiceFabricOptions::default()).await;
    found.clusters.sort();
    assert_eq!(
        found.clusters,
        ["fabric:/App/Api", "fabric:/App/Web", "fabric:/Other/Web"]
    );
    found.reports.sort();
    assert_eq!(
        found.reports,
        [
            "service App~Api Ok",
            "service App~Web Ok",
            "service Other~Web Ok"
        ]
    );
}
