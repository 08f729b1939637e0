//! Tests of the program.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use discovery_serf::testing::AgentInMemory;
use discovery_serf::{Member, Tags};
use serde_json::Value;
use servicefabric_emulator::cluster::FabricName;
use servicefabric_emulator::gateway::{Emulator, Responder};
use servicefabric_emulator::topology::Topology;
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::client::Connection;
use testkit::peers::{self, PeerOutput};
use testkit::time::eventually;
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_xds-control-plane");

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn run(arguments: &[&str]) -> PeerOutput {
    peers::output(command(arguments)).await
}

/// A folder with a configuration of a registry and a static file.
fn written(extra: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "registry.yaml",
        "services: [{name: shop, provides: [{name: http}]}]\n",
    );
    write(
        "static.yaml",
        "listeners: [{name: db, port: 3306, tcp: {cluster: db}}]\nservices: [{name: db, protocol: tcp, endpoints: ['10.0.0.1:3306']}]\n",
    );
    let config = format!(
        "listen: 127.0.0.1:{}\nadmin: 127.0.0.1:{}\ndomains: {{suffix: example}}\nregistry: {{file: registry.yaml}}\nstatic: {{file: static.yaml}}\n{extra}",
        peers::free_port(),
        peers::free_port(),
    );
    write("config.yaml", &config);
    let path = folder.path().join("config.yaml").display().to_string();
    (folder, path)
}

fn port(config: &str, key: &str) -> std::net::SocketAddr {
    let text = fs::read_to_string(config).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{key}: ")))
        .unwrap();
    line.parse().unwrap()
}

#[tokio::test]
async fn what_would_be_served_is_printed() {
    let (_folder, config) = written("");
    let all = run(&["render", "--config", &config]).await.expect_success();
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(all["cds"]["resources"][0]["name"], "db");
    assert_eq!(all["cds"]["resources"][1]["name"], "shop-http");
    assert_eq!(all["cds"]["resources"][1]["connectTimeout"], "0.400s");
    assert_eq!(all["lds"]["resources"][0]["name"], "db");
    assert_eq!(
        all["rds"]["resources"][0]["virtualHosts"][0]["domains"][0],
        "shop-http.example"
    );
    let clusters = run(&[
        "render", "--config", &config, "--type", "eds", "--via", "rest",
    ])
    .await
    .expect_success();
    let clusters: Value = serde_json::from_str(&clusters.stdout).unwrap();
    let address = &clusters["resources"][0]["endpoints"][0]["lbEndpoints"][0]["endpoint"]["address"]
        ["socketAddress"];
    assert_eq!(
        (&address["address"], &address["portValue"]),
        (&"10.0.0.1".into(), &3306.into())
    );
    let again = run(&["render", "--config", &config]).await.expect_success();
    assert_eq!(
        serde_json::from_str::<Value>(&again.stdout).unwrap(),
        all,
        "each run says the same, to the version"
    );
}

#[tokio::test]
async fn a_good_configuration_ends_with_0_a_bad_one_with_1_and_wrong_usage_with_2() {
    let (folder, config) = written("");
    let good = run(&["check", "--config", &config]).await.expect_success();
    assert_eq!(good.stdout.matches(": valid").count(), 3, "{}", good.stdout);

    fs::write(folder.path().join("static.yaml"), "services: [{nam: x}]\n").unwrap();
    let bad = run(&["check", "--config", &config, "--format", "json"]).await;
    assert_eq!(bad.status.code(), Some(1));
    let found: Value = serde_json::from_str(&bad.stdout).unwrap();
    assert_eq!(found["valid"], false);
    assert_eq!(found["problems"][0]["pointer"], "/services/0/name");
    fs::write(folder.path().join("static.yaml"), "\n").unwrap();
    let empty = run(&["check", "--config", &config]).await;
    assert!(
        empty.stdout.contains("the file is empty"),
        "{}",
        empty.stdout
    );
    let bad = run(&["render", "--config", &config, "--timeout", "1"]).await;
    assert_eq!(bad.status.code(), Some(1));
    assert!(bad.stderr.contains("static file"), "{}", bad.stderr);

    let missing = folder.path().join("missing.yaml").display().to_string();
    let missing = run(&["serve", "--config", &missing]).await;
    assert_eq!(
        (
            missing.status.code(),
            missing.stderr.contains("missing.yaml")
        ),
        (Some(1), true)
    );
    for wrong in [&["serve"][..], &["render", "--config"], &["nothing"], &[]] {
        assert_eq!(run(wrong).await.status.code(), Some(2), "{wrong:?}");
    }
    let schema = run(&["schema"]).await.expect_success();
    assert!(serde_json::from_str::<Value>(&schema.stdout).is_ok());
}

#[tokio::test]
async fn it_serves_until_it_is_told_to_stop() {
    let (folder, config) = written("");
    let mut process = peers::spawn(command(&["serve", "--config", &config]));
    process.wait_for_output("new configuration is served").await;
    let address = port(&config, "listen");
    let mut connection = Connection::http1(address).await.unwrap();
    let request = connection
        .request("POST", "/v3/discovery:clusters")
        .header("content-type", "application/json")
        .body(http_body_util::Full::new(bytes::Bytes::from_static(
            b"{\"node\":{\"id\":\"wtf\"}}",
        )))
        .unwrap();
    let answer = connection.send(request).await.unwrap();
    let answer: Value = answer.json();
    assert_eq!(answer["resources"][1]["name"], "shop-http");
    let mut admin = Connection::http1(port(&config, "admin")).await.unwrap();
    assert_eq!(admin.get("/readyz").await.unwrap().status, 200);
    let metrics = admin.get("/metrics").await.unwrap().text();
    assert!(
        metrics.contains("xds_source_ready{source=\"registry\"} 1"),
        "{metrics}"
    );
    let named = crate::docs::metrics_of_rules();
    assert!(named.len() > 4, "{named:?}");
    for name in named {
        let (family, kind) = match name.strip_suffix("_total") {
            Some(family) => (family, "counter"),
            None => (name, "gauge"),
        };
        let declared = format!("# TYPE {family} {kind}\n");
        assert!(metrics.contains(&declared), "no metric `{name}`: {metrics}");
    }

    // Files are followed.
    let registry = Path::new(&config).with_file_name("registry.yaml");
    fs::write(registry, "services: [{name: shop, provides: [{name: http}]}, {name: cart, provides: [{name: http}]}]\n").unwrap();
    process.wait_for_output("clusters=3").await;
    fs::write(folder.path().join("static.yaml"), "services: [").unwrap();
    process
        .wait_for_output("the static file cannot be used")
        .await;

    process.terminate();
    let ended = testkit::time::guarded("the end", process.wait()).await;
    assert_eq!(ended.code(), Some(0), "{}", process.output());
}

/// Every reason for which a service is left out or served differently is listed, and their number is that
/// of the metric.
#[tokio::test]
async fn what_is_left_out_is_listed() {
    let (folder, config) = written("");
    let registry = "services:\n- {name: shop, provides: [{name: http}]}\n- {name: 'a b', provides: [{name: http}]}\n\
        - {name: '', provides: [{name: http}]}\n- {name: mail, provides: [{name: smtp, proto: smtp}]}\n\
        - {provides: [{name: http}]}\n- {name: db, provides: [{name: http, domain: shop-http.example}]}\n";
    fs::write(folder.path().join("registry.yaml"), registry).unwrap();
    let fixed =
        "services:\n- {name: rival, domains: [shop-http.example], endpoints: ['10.0.0.9:80']}\n";
    fs::write(folder.path().join("static.yaml"), fixed).unwrap();
    let mut process = peers::spawn(command(&["serve", "--config", &config]));
    process.wait_for_output("new configuration is served").await;
    let mut admin = Connection::http1(port(&config, "admin")).await.unwrap();
    let quarantine: Value = admin.get("/api/v1/quarantine").await.unwrap().json();
    let quarantine = quarantine["quarantine"].as_array().unwrap();
    let reasons_of = |owner: &str| {
        let found = quarantine.iter().find(|entry| entry["owner"] == owner);
        let found = found.unwrap_or_else(|| panic!("no {owner} in {quarantine:#?}"));
        found["reasons"].to_string()
    };
    for (owner, reason) in [
        ("registry/a b", "/services/1/name"),
        ("registry/", "/services/2/name"),
        ("registry/mail", "/services/3/provides/0/proto"),
        ("registry//services/4", "/services/4/name"),
    ] {
        let reasons = reasons_of(owner);
        assert!(reasons.contains(reason), "{owner}: {reasons}");
    }
    let metrics = admin.get("/metrics").await.unwrap().text();
    let line = format!("xds_quarantined_services {}", quarantine.len());
    assert!(metrics.contains(&line), "{metrics}");
    let warnings: Value = admin.get("/api/v1/warnings").await.unwrap().json();
    let warnings = warnings["warnings"].as_array().unwrap();
    let is_there = |owner: &str, code: &str| {
        let is_it = |it: &&Value| it["owner"] == owner && it["code"] == code;
        warnings.iter().filter(is_it).count()
    };
    assert_eq!(is_there("registry/mail", "not_served"), 1, "{warnings:#?}");
    assert_eq!(
        is_there("registry", "source_problem"),
        0,
        "each is told once: {warnings:#?}"
    );
    // One that was good stays as it was.
    fs::write(
        folder.path().join("registry.yaml"),
        "services: [{name: shop, provides: [{name: http, proto: smtp}]}]\n",
    )
    .unwrap();
    eventually("the last known good form serves", async || {
        let mut admin = Connection::http1(port(&config, "admin")).await.unwrap();
        let quarantine: Value = admin.get("/api/v1/quarantine").await.unwrap().json();
        let mut entries = quarantine["quarantine"].as_array().unwrap().iter();
        entries.any(|it| it["owner"] == "registry/shop" && it["serves_last_good"] == true)
    })
    .await;
    process.terminate();
}

/// Returns the output of `render` for a configuration with only these sources.
async fn rendered(sources: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("proxy.json"),
        r#"{"ReverseProxy": {
            "Routes": {"shop": {"ClusterId": "shop", "Match": {"Hosts": ["shop.example"], "Path": "/{**rest}"}}},
            "Clusters": {"shop": {"Destinations": {"d1": {"Address": "http://10.0.0.1:8080/"}}}}
        }}"#,
    )
    .unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, sources).unwrap();
    let path = path.display().to_string();
    let printed = run(&["render", "--config", &path]).await.expect_success();
    serde_json::from_str(&printed.stdout).unwrap()
}

/// The ports of a cluster's endpoints.
fn ports_of(all: &Value, cluster: &str) -> Vec<u64> {
    let assignments = all["eds"]["resources"].as_array().unwrap();
    let found = assignments.iter().find(|a| a["clusterName"] == cluster);
    let localities =
        found.unwrap_or_else(|| panic!("no {cluster} in {all}"))["endpoints"].as_array();
    let endpoints = localities
        .unwrap()
        .iter()
        .flat_map(|l| l["lbEndpoints"].as_array().unwrap());
    let port = |e: &Value| {
        e.pointer("/endpoint/address/socketAddress/portValue")
            .unwrap()
            .as_u64()
    };
    let mut ports: Vec<_> = endpoints.map(|endpoint| port(endpoint).unwrap()).collect();
    ports.sort_unstable();
    ports
}

fn domains_of(all: &Value) -> String {
    let hosts = all["rds"]["resources"][0]["virtualHosts"]
        .as_array()
        .unwrap();
    hosts
        .iter()
        .map(|host| host["domains"].to_string())
        .collect()
}

#[tokio::test]
async fn files_of_a_gateway_are_served_too() {
    let all = rendered("ReverseProxyFiles: [proxy.json]\n").await;
    assert_eq!(ports_of(&all, "shop"), [8080]);
    assert!(domains_of(&all).contains("shop.example"), "{all}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, "ReverseProxyFiles: [missing.json]\n").unwrap();
    let bad = run(&["render", "--config", &path.display().to_string()]).await;
    assert_eq!(bad.status.code(), Some(1));
    assert!(
        bad.stderr.contains("ReverseProxyFiles") && bad.stderr.contains("missing.json"),
        "{}",
        bad.stderr
    );
}

/// Returns whether each of these routes is closed, by the output of `render`.
fn closed_routes(all: &Value) -> Vec<(String, bool)> {
    let configs = all["rds"]["resources"].as_array().unwrap();
    let mut found: Vec<_> = (configs.iter())
        .flat_map(|config| config["virtualHosts"].as_array().unwrap())
        .flat_map(|host| host["routes"].as_array().unwrap())
        .map(|route| {
            let name = route["name"].as_str().unwrap_or_default();
            (name.to_owned(), route["directResponse"]["status"] == 503)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

const GUARDED: &str = r#"{"Policies": {"Authorization": {"staff": {"Networks": {"Deny": ["127.0.0.0/8"]}}FALLBACK},
    "RateLimiter": {"Global": {"Kind": "FixedWindow", "PermitLimit": 1, "Window": "1h"}}},
  "ReverseProxy": {
    "Routes": {
      "web": {"ClusterId": "c", "Match": {"Path": "/{**r}"}},
      "public": {"ClusterId": "c", "AuthorizationPolicy": "Anonymous", "Match": {"Path": "/public"}},
      "wrong": {"ClusterId": "c", "Match": {"Path": "/wrong"}, "AuthorizationPolicy": "staf"},
      "staff": {"ClusterId": "c", "AuthorizationPolicy": "staff", "Match": {"Path": "/staff/{**r}"}}},
    "Clusters": {"c": {"Destinations": {"d": {"Address": "http://127.0.0.1:5001/"}}}}}}"#;

/// Writes a gateway's file with policies and a configuration that serves it, in addition to `more`.
fn guarded(fallback: bool, more: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let text = GUARDED.replace(
        "FALLBACK",
        if fallback { r#", "fallback": {}"# } else { "" },
    );
    fs::write(folder.path().join("proxy.json"), text).unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, format!("ReverseProxyFiles: [proxy.json]\n{more}")).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[tokio::test]
async fn routes_behind_policies_of_a_gateway_are_closed() {
    for (fallback, web_is_closed) in [(false, false), (true, true)] {
        let (_folder, path) = guarded(fallback, "");
        let shown = run(&["render", "--config", &path]).await.expect_success();
        let all: Value = serde_json::from_str(&shown.stdout).unwrap();
        let expected = [
            ("public", false),
            ("staff", true),
            ("web", web_is_closed),
            // A route with an error would leave its requests to another one.
            ("wrong", true),
        ]
        .map(|(name, is_closed)| (name.to_owned(), is_closed));
        assert_eq!(closed_routes(&all), expected, "{all:#}");
        let checked = run(&["check", "--config", &path]).await;
        assert_eq!(checked.status.code(), Some(1), "{}", checked.stdout);
        for told in [
            "/ReverseProxy/Routes/staff/AuthorizationPolicy",
            "the policy `staff` of `Policies.Authorization`",
            "the policy `Global` of `Policies.RateLimiter`",
            "`staf` is not a known authorization policy",
        ] {
            assert!(checked.stdout.contains(told), "{told}: {}", checked.stdout);
        }
        let is_told = checked.stdout.contains("the policy `fallback` of");
        assert_eq!(is_told, fallback, "{}", checked.stdout);
    }
}

/// The policies of a gateway's files apply to what is discovered.
#[tokio::test(flavor = "multi_thread")]
async fn discovered_routes_are_behind_the_policies_of_the_files() {
    let agent = AgentInMemory::new("gw");
    let address = agent.listen().await.unwrap();
    let tags = [
        ("service", "orders"),
        ("host", "orders.local"),
        ("http-port", "5000"),
    ];
    agent.put(Member::new(
        "orders",
        Ipv4Addr::LOCALHOST.into(),
        Tags::from(tags),
    ));
    for fallback in [false, true] {
        let more = format!("SerfDiscovery: {{Agents: ['{address}']}}\n");
        let (_folder, path) = guarded(fallback, &more);
        let shown = run(&["render", "--config", &path]).await.expect_success();
        let all: Value = serde_json::from_str(&shown.stdout).unwrap();
        let routes = closed_routes(&all);
        let orders = routes.iter().find(|(name, _)| name.contains("orders"));
        assert_eq!(
            orders.map(|(_, closed)| *closed),
            Some(fallback),
            "{routes:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serf_cluster_is_served_too() {
    let agent = AgentInMemory::new("gw");
    let address = agent.listen().await.unwrap();
    for (name, port) in [("o1", 5000_u16), ("o2", 5001)] {
        let port = port.to_string();
        let tags = Tags::from([
            ("service", "orders"),
            ("host", "orders.local"),
            ("http-port", port.as_str()),
        ]);
        agent.put(Member::new(name, Ipv4Addr::LOCALHOST.into(), tags));
    }
    let all = rendered(&format!("SerfDiscovery: {{Agents: ['{address}']}}\n")).await;
    assert_eq!(ports_of(&all, "service:orders"), [5000, 5001]);
    assert!(domains_of(&all).contains("orders.local"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_fabric_cluster_is_served_too() {
    let topology = r#"
        [cluster]
        health_report_interval = 0

        [[application_types]]
        name = "ShopType"

        [application_types.service_types.WebType.labels]
        YARP.Enable = true
        YARP.Routes.web.Hosts = "shop.example"

        [applications.Shop]
        type = "ShopType"
        services.Web = { type = "WebType", instances = 2 }
    "#;
    let emulator = Emulator::builder(Topology::from_toml(topology).unwrap())
        .listen("127.0.0.1:0")
        .workload(Responder::default())
        .start()
        .await
        .unwrap();
    let web = FabricName::parse("fabric:/Shop/Web").unwrap();
    eventually("the services are ready", async || {
        emulator.with_cluster(|cluster| {
            let partitions = cluster.partitions(&web, &Default::default()).unwrap();
            let replicas = partitions.items.iter().flat_map(|p| p.replicas.values());
            replicas.filter(|replica| replica.is_resolvable()).count() == 2
        })
    })
    .await;
    let gateway = emulator.endpoint();
    let all = rendered(&format!(
        "ServiceFabricDiscovery: {{Gateways: ['{gateway}'], DiscoverInsecureHttpDestinations: true}}\n"
    ))
    .await;
    let clusters = all["cds"]["resources"].as_array().unwrap();
    let [cluster] = &clusters[..] else {
        panic!("{all}")
    };
    assert_eq!(ports_of(&all, cluster["name"].as_str().unwrap()).len(), 2);
    assert!(domains_of(&all).contains("shop.example"), "{all}");
}

#[tokio::test]
async fn it_serves_over_tls_and_check_says_what_is_wrong_with_the_files() {
    let authority = CertificateAuthority::new("fleet");
    let identity = authority.issue(&["xds.test"]);
    let (folder, config) = written("tls: {certificateFile: server.pem, keyFile: server.key}\n");
    let missing = run(&["check", "--config", &config, "--format", "json"]).await;
    assert_eq!(missing.status.code(), Some(1));
    let found: Value = serde_json::from_str(&missing.stdout).unwrap();
    assert_eq!(found["problems"][0]["pointer"], "/tls");
    let serve = || command(&["serve", "--config", &config]);
    let rejected = peers::output(serve()).await;
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        rejected.stderr.contains("server.pem"),
        "{}",
        rejected.stderr
    );

    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("server.pem", identity.certificate_pem());
    write("server.key", identity.key_pem());
    run(&["check", "--config", &config]).await.expect_success();
    let mut process = peers::spawn(serve());
    process.wait_for_output("new configuration is served").await;
    let client = authority.client_config(Alpn::Http1);
    let address = port(&config, "listen");
    let mut connection = Connection::tls(address, "xds.test", client).await.unwrap();
    let request = connection
        .request("POST", "/v3/discovery:clusters")
        .body(testkit::body::full("{}"))
        .unwrap();
    assert_eq!(connection.send(request).await.unwrap().status, 200);
    process.terminate();
    assert!(process.wait().await.success());
}
