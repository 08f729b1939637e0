//! The program in front of an emulated Service Fabric cluster.

use std::time::Duration;

use crate::common::{ConfigFile, address_after, output, start};
use serde_json::Value;
use servicefabric_emulator::cluster::{FabricName, PartitionInformation};
use servicefabric_emulator::gateway::{Emulator, Fault, FaultAction, Responder};
use servicefabric_emulator::health::{EntityKey, HealthQuery, HealthState};
use servicefabric_emulator::topology::Topology;
use testkit::client::{Connection, Load};
use testkit::origin::Origin;
use testkit::time::{eventually, guarded};

const CLUSTER: &str = r#"
    [cluster]
    health_report_interval = 0

    [[application_types]]
    name = "ShopType"

    [application_types.service_types.WebType.labels]
    YARP.Enable = true
    YARP.Routes.web.Path = "/shop/{**rest}"

    [application_types.service_types.BadType.labels]
    YARP.Enable = true
    YARP.Routes.bad.Path = "/bad/{oops"

    [application_types.service_types.StickyType.labels]
    YARP.Enable = true
    YARP.Routes.sticky.Path = "/sticky"
    YARP.Routes.sticky.AuthorizationPolicy = "Default"
    YARP.Backend.SessionAffinity.Enabled = true
    YARP.Backend.HealthCheck.Passive.Enabled = true

    [application_types.service_types.QuietType.labels]
    YARP.Routes.quiet.Path = "/quiet"

    [applications.Shop]
    type = "ShopType"
    services.Quiet = { type = "QuietType" }
    services.Web = { type = "WebType", instances = 2 }
    services.Bad = { type = "BadType" }
    services.Sticky = { type = "StickyType" }
"#;

/// Starts a cluster whose services are small HTTP servers.
async fn cluster() -> Emulator {
    cluster_at("127.0.0.1:0").await
}

async fn cluster_at(address: &str) -> Emulator {
    let emulator = Emulator::builder(Topology::from_toml(CLUSTER).expect("it is a topology"))
        .listen(address)
        .workload(Responder::default())
        .start()
        .await
        .expect("it starts");
    let web = FabricName::parse("fabric:/Shop/Web").expect("it is a name");
    eventually("the services are ready", async || {
        emulator.with_cluster(|cluster| {
            let page = Default::default();
            let partitions = cluster
                .partitions(&web, &page)
                .expect("there is the service");
            let replicas = partitions.items.iter().flat_map(|p| p.replicas.values());
            replicas.filter(|replica| replica.is_resolvable()).count() == 2
        })
    })
    .await;
    emulator
}

fn config(gateway: &str) -> ConfigFile {
    ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ServiceFabricDiscovery": {{
                "Gateways": ["{gateway}"],
                "DiscoveryPeriod": "200ms", "FastPeriod": "100ms",
                "DiscoverInsecureHttpDestinations": true
            }}
        }}"#
    ))
}

/// Returns the health of a service in the cluster, from the reports of the proxy.
fn reported(emulator: &Emulator, service: &str) -> Option<HealthState> {
    let entity = EntityKey::Service(FabricName::parse(service).expect("it is a name"));
    let health = emulator
        .with_cluster(|cluster| cluster.health(&entity, &HealthQuery::default()))
        .expect("there is the service");
    let mut events = health.events.iter();
    let event = events.find(|event| event.report.source == "YARP")?;
    Some(event.state())
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_routes_problems_and_reports_and_tells_the_cluster_nothing() {
    let emulator = cluster().await;
    let file = config(&emulator.endpoint());
    let arguments = ["discover", "--config", &file.argument(), "--format", "json"];
    let found = output(&arguments).await.expect_success();
    let found: Value = serde_json::from_str(&found.stdout).expect("it is JSON");
    let provider = &found["providers"][1];
    assert_eq!(provider["name"], "servicefabric");
    let routes = provider["ReverseProxy"]["Routes"]
        .as_object()
        .expect("there are routes");
    assert_eq!(
        routes.keys().collect::<Vec<_>>(),
        [
            "fabric%3A%2FShop%2FSticky:sticky",
            "fabric%3A%2FShop%2FWeb:web"
        ]
    );
    let web = &provider["ReverseProxy"]["Clusters"]["fabric:/Shop/Web"];
    assert_eq!(
        web["Destinations"].as_object().map(|all| all.len()),
        Some(2)
    );
    let diagnostics = provider["diagnostics"]
        .as_array()
        .expect("there are problems");
    let pointers: Vec<_> = diagnostics
        .iter()
        .filter_map(|of| of["pointer"].as_str())
        .collect();
    for label in [
        "YARP.Routes.bad.Path",
        "YARP.Routes.sticky.AuthorizationPolicy",
    ] {
        assert!(
            pointers.iter().any(|of| of.ends_with(label)),
            "{label}: {pointers:?}"
        );
    }
    let reports: Vec<_> = provider["health_reports"]
        .as_array()
        .expect("there are reports")
        .iter()
        .map(|report| (&report["entity"], &report["health"]["HealthState"]))
        .collect();
    assert_eq!(reports.len(), 3, "{reports:?}");
    assert!(
        reports
            .iter()
            .any(|(entity, state)| **entity == "service Shop~Sticky" && **state == "Warning")
    );
    assert!(
        reports
            .iter()
            .any(|(entity, state)| **entity == "service Shop~Bad" && **state == "Warning")
    );
    assert!(
        reports
            .iter()
            .any(|(entity, state)| **entity == "service Shop~Web" && **state == "Ok")
    );
    assert_eq!(reported(&emulator, "fabric:/Shop/Bad"), None);

    let not_served = provider["not_served"]
        .as_array()
        .expect("not all are served");
    let mut names = not_served.iter().map(|one| &one["name"]);
    assert!(
        names.any(|name| name == "fabric:/Shop/Quiet"),
        "{not_served:?}"
    );

    let text = output(&["discover", "--config", &file.argument()])
        .await
        .expect_success()
        .stdout;
    assert!(
        text.contains("servicefabric: 2 routes, 2 clusters"),
        "{text}"
    );
    assert!(text.contains("not served fabric:/Shop/Quiet: "), "{text}");
    assert!(
        text.contains("would report service Shop~Bad: Warning"),
        "{text}"
    );
    emulator.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_serves_what_is_discovered_and_tells_the_cluster() {
    let emulator = cluster().await;
    let file = config(&emulator.endpoint());
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let address = address_after(&process.output(), "listening on http://");
    let mut client = Connection::http1(address).await.expect("it listens");
    let answer = client.get("/shop/cart").await.expect("it answers");
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("fabric:/Shop/Web"));
    eventually("the cluster knows of the bad label", async || {
        reported(&emulator, "fabric:/Shop/Bad") == Some(HealthState::Warning)
    })
    .await;

    // A failing cluster changes nothing.
    let down = Fault::new("*", FaultAction::fail(503, "FABRIC_E_SERVICE_OFFLINE"));
    emulator
        .faults()
        .inject(down)
        .expect("there is room for it");
    let provider = async || {
        let admin = address_after(&process.output(), "admin page on http://");
        let mut client = Connection::http1(admin).await.expect("it listens");
        client
            .get("/api/v1/providers")
            .await
            .expect("it answers")
            .text()
    };
    eventually("the source is failing", async || {
        provider().await.contains("failing")
    })
    .await;
    let answer = client.get("/shop/cart").await.expect("it answers");
    assert_eq!(answer.status, 200);
    process.interrupt();
    assert!(process.wait().await.success());
    emulator.shutdown().await;
}

/// A faulty control plane affects no request: neither a hang, nor nonsense, a truncated response, a closed
/// connection or a rejection.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_hangs_lies_or_dies_fails_no_request() {
    let emulator = cluster().await;
    let file = ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ServiceFabricDiscovery": {{
                "Gateways": ["{}"], "CallTimeout": "1s",
                "DiscoveryPeriod": "200ms", "FastPeriod": "100ms",
                "DiscoverInsecureHttpDestinations": true
            }}
        }}"#,
        emulator.endpoint()
    ));
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let address = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let is_live = async || {
        let mut client = Connection::http1(admin).await.expect("it listens");
        let answer = client.get("/api/v1/providers").await.expect("it answers");
        let answer: Value = answer.json();
        let providers = answer["providers"].as_array().expect("there are some");
        let is_it = |it: &&Value| it["name"] == "servicefabric";
        providers.iter().find(is_it).expect("it is there")["state"] == "live"
    };
    eventually("the source lives", is_live).await;
    let pause = Duration::from_millis(10);
    let load = Load::new(address)
        .path("/shop/cart")
        .connections(2)
        .pause(pause);
    let load = load.start();
    let text = |text: &str| FaultAction::Text {
        status: 200,
        text: text.to_owned(),
    };
    for action in [
        FaultAction::Delay {
            milliseconds: 600_000,
        },
        text("<html>It works!</html>"),
        text(r#"{ "Items": [{ "Id": 5 }] }"#),
        FaultAction::CloseMidAnswer,
        FaultAction::Close,
        FaultAction::fail(503, "FABRIC_E_SERVICE_OFFLINE"),
    ] {
        let what = format!("{action:?}");
        let fault = Fault::new("*", action);
        emulator
            .faults()
            .inject(fault)
            .expect("there is room for it");
        eventually("the source does not live", async || !is_live().await).await;
        let so_far = load.report().finished;
        load.wait_for_finished(so_far + 20).await;
        assert_eq!(load.report().failed, Default::default(), "{what}");
        emulator.faults().clear();
        eventually("the source lives again", is_live).await;
    }
    load.stop().await.assert_no_failure();
    process.interrupt();
    assert!(process.wait().await.success());
    emulator.shutdown().await;
}

/// The restart is noticed through failing requests, since the periods are longer than any guard. The proxy polls within
/// two seconds, which a test of `discovery-servicefabric` shows in virtual time
/// (`a_cluster_that_comes_back_elsewhere_is_found_within_two_seconds`). Requests that succeed cost no read.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_started_again_is_found_by_the_requests_that_fail() {
    // No other test takes the port while the cluster is away.
    let place = format!("127.0.0.1:{}", testkit::peers::free_port());
    let emulator = cluster_at(&place).await;
    let endpoint = emulator.endpoint();
    let file = ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "ServiceFabricDiscovery": {{
                "Gateways": ["{endpoint}"], "DiscoverInsecureHttpDestinations": true,
                "DiscoveryPeriod": "1h", "FastPeriod": "1h", "FullRefreshPeriod": "1h"
            }}
        }}"#
    ));
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let address = address_after(&process.output(), "listening on http://");
    let mut client = Connection::http1(address).await.expect("it listens");
    let mut status = async || client.get("/shop/cart").await.expect("it answers").status;
    assert_eq!(status().await, 200);
    // A delay of nothing counts the reads of services.
    let counted = Fault::new("/Services/*", FaultAction::Delay { milliseconds: 0 });
    let counted = emulator.faults().inject(counted);
    counted.expect("there is room for it");
    for _ in 0..200 {
        assert_eq!(status().await, 200);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(
        emulator.faults().hits(),
        0,
        "nothing is read while requests succeed"
    );
    emulator.shutdown().await;
    for _ in 0..20 {
        assert_eq!(status().await, 502);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let emulator = cluster_at(&place).await;
    let found = async {
        while status().await != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    guarded("requests that reach the cluster again", found).await;
    process.interrupt();
    assert!(process.wait().await.success());
    emulator.shutdown().await;
}

/// A stateful service whose requests choose the partition.
const REGIONS: &str = r#"
    [[application_types]]
    name = "StoreType"

    [application_types.service_types.DbType]
    kind = "stateful"

    [application_types.service_types.DbType.labels]
    YARP.Enable = true
    YARP.Routes.db.Path = "/db"
    YARP.Backend.ServiceFabric.PartitionMode = "Key"
    YARP.Backend.ServiceFabric.PartitionKey.Query = "region"

    [applications.Store]
    type = "StoreType"
    services.Db = { type = "DbType", partitions = { names = ["eu", "us"] } }
"#;

/// A partition that the first reads do not reach has no destination, since no other partition has its data.
/// The others serve.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_cannot_be_read_gets_503_and_the_others_serve() {
    let emulator = Emulator::builder(Topology::from_toml(REGIONS).expect("it is a topology"))
        .listen("127.0.0.1:0")
        .workload(Responder::default())
        .start()
        .await
        .expect("it starts");
    let db = FabricName::parse("fabric:/Store/Db").expect("it is a name");
    let partitions = || {
        emulator.with_cluster(|cluster| {
            let partitions = cluster.partitions(&db, &Default::default());
            let partitions = partitions.expect("there is the service").items;
            partitions.into_iter().cloned().collect::<Vec<_>>()
        })
    };
    eventually("the partitions are ready", async || {
        let ready = partitions().into_iter().filter(|partition| {
            let mut replicas = partition.replicas.values();
            replicas.any(|replica| replica.is_resolvable())
        });
        ready.count() == 2
    })
    .await;
    let unread = partitions()
        .into_iter()
        .find(|partition| partition.information == PartitionInformation::Named("us".to_owned()))
        .expect("it is there");
    let failing = Fault::new(
        format!("/Partitions/{}/$/GetReplicas", unread.id),
        FaultAction::fail(503, "FABRIC_E_NOT_READY"),
    );
    let failing = emulator.faults().inject(failing);
    failing.expect("there is room for it");

    let file = config(&emulator.endpoint());
    let mut process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let address = address_after(&process.output(), "listening on http://");
    let status = async |region: &str| {
        let mut client = Connection::http1(address).await.expect("it listens");
        let path = format!("/db?region={region}");
        client.get(&path).await.expect("it answers").status
    };
    for _ in 0..5 {
        assert_eq!(status("eu").await, 200);
        assert_eq!(status("us").await, 503);
        assert_eq!(status("asia").await, 400);
    }
    emulator.faults().clear();
    eventually("the partition is read", async || status("us").await == 200).await;
    process.interrupt();
    assert!(process.wait().await.success());
    emulator.shutdown().await;
}

#[tokio::test]
async fn a_gateway_that_nobody_is_behind_is_named() {
    let file = config("http://127.0.0.1:1");
    let found = output(&["discover", "--config", &file.argument()]).await;
    assert_eq!(found.status.code(), Some(1));
    assert!(found.stdout.contains("no answer: "), "{}", found.stdout);
    assert!(found.stdout.contains("127.0.0.1:1"), "{}", found.stdout);
}

/// The routes of a file are known from the start. All other routes are unknown until the cluster responds.
#[tokio::test(flavor = "multi_thread")]
async fn before_the_cluster_answers_known_routes_are_served_and_all_else_is_503() {
    let known = Origin::named("known");
    // No server listens there any more.
    let place = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let place = place.expect("a port is free");
    let file = ConfigFile::new(&format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{
                "Routes": {{ "known": {{ "ClusterId": "known", "Match": {{ "Path": "/known" }} }} }},
                "Clusters": {{ "known": {{ "Destinations": {{ "1": {{ "Address": "http://{}/" }} }} }} }}
            }},
            "ServiceFabricDiscovery": {{
                "Gateways": ["http://{place}"],
                "DiscoveryPeriod": "200ms", "FastPeriod": "100ms",
                "DiscoverInsecureHttpDestinations": true
            }}
        }}"#,
        known.addr()
    ));
    let mut process = start(&["run", "--config", &file.argument()], "get 503").await;
    let address = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let mut client = Connection::http1(address).await.expect("it accepts");
    eventually("the route of the file is served", async || {
        let answer = Connection::http1(address)
            .await
            .expect("it accepts")
            .get("/known")
            .await;
        answer.is_ok_and(|answer| answer.status == 200 && answer.text() == "known")
    })
    .await;
    let answer = client.get("/shop/cart").await.expect("it answers");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("5"));
    let ready = async || {
        let mut page = Connection::http1(admin).await.expect("it listens");
        page.get("/readyz").await.expect("it answers").status
    };
    assert_eq!(ready().await, 503);
    process.wait_for_output("nothing of it serves yet").await;

    let emulator = Emulator::builder(Topology::from_toml(CLUSTER).expect("it is a topology"))
        .listen(place.to_string())
        .workload(Responder::default())
        .start()
        .await
        .expect("the port is still free");
    process.wait_for_output("a second Ctrl-C").await;
    let status = async |path: &str| {
        let mut client = Connection::http1(address).await.expect("it accepts");
        client.get(path).await.expect("it answers").status
    };
    eventually("the discovered route is served", async || {
        status("/shop/cart").await == 200
    })
    .await;
    eventually("what has no route is not found", async || {
        status("/nothing").await == 404
    })
    .await;
    assert_eq!(status("/known").await, 200);
    assert_eq!(ready().await, 200);
    process.interrupt();
    assert!(process.wait().await.success());
    emulator.shutdown().await;
}
