//! The program, as somebody runs it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::client::Connection;
use testkit::peers::{self, PeerOutput};
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
    assert_eq!(good.stdout.matches(": good").count(), 3, "{}", good.stdout);

    fs::write(folder.path().join("static.yaml"), "services: [{nam: x}]\n").unwrap();
    let bad = run(&["check", "--config", &config, "--format", "json"]).await;
    assert_eq!(bad.status.code(), Some(1));
    let found: Value = serde_json::from_str(&bad.stdout).unwrap();
    assert_eq!(found["valid"], false);
    assert_eq!(found["problems"][0]["pointer"], "/services/0/name");
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

    // Files are followed.
    let registry = Path::new(&config).with_file_name("registry.yaml");
    fs::write(registry, "services: [{name: shop, provides: [{name: http}]}, {name: cart, provides: [{name: http}]}]\n").unwrap();
    process.wait_for_output("clusters=3").await;
    fs::write(folder.path().join("static.yaml"), "services: [").unwrap();
    process
        .wait_for_output("the static file cannot be used")
        .await;

    process.terminate();
    let ended = tokio::time::timeout(Duration::from_secs(30), process.wait())
        .await
        .expect("it stops");
    assert_eq!(ended.code(), Some(0), "{}", process.output());
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
    let refused = peers::output(serve()).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("server.pem"), "{}", refused.stderr);

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
