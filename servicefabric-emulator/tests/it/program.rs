//! Tests of the program.
#![cfg(feature = "program")]

use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::Value;
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::client::Connection;
use testkit::peers::{self, PeerOutput, PeerProcess};
use tokio::process::Command;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_servicefabric-emulator"));
    command
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A running `serve`, and the address of its gateway.
struct Serving {
    process: PeerProcess,
    address: SocketAddr,
}

impl Serving {
    async fn start(arguments: &[&str]) -> Self {
        let mut arguments = [&["serve"], arguments].concat();
        if !arguments.contains(&"--listen") {
            arguments.extend(["--listen", "127.0.0.1:0"]);
        }
        let mut process = peers::spawn(command(&arguments));
        process.wait_for_output("ready at http").await;
        let output = process.output();
        let (_, place) = output.split_once("ready at ").expect("it was waited for");
        let (_, address) = place.trim_end().split_once("://").expect("it is a URL");
        Self {
            address: address
                .lines()
                .next()
                .and_then(|line| line.parse().ok())
                .expect("an address"),
            process,
        }
    }

    async fn get(&self, path: &str) -> Value {
        let mut connection = Connection::http1(self.address).await.expect("it listens");
        connection.get(path).await.expect("it answers").json()
    }
}

async fn output(arguments: &[&str]) -> PeerOutput {
    peers::output(command(arguments)).await
}

#[tokio::test]
async fn without_a_file_there_is_an_example() {
    let serving = Serving::start(&["--speed", "100"]).await;
    let nodes = serving.get("/Nodes?api-version=6.0").await;
    assert_eq!(nodes["Items"].as_array().map(Vec::len), Some(5));
    let output = serving.process.output();
    for hint in ["curl '", "sfctl cluster select", "5 nodes", "Ctrl-C"] {
        assert!(output.contains(hint), "{hint} is not in:\n{output}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn signals_stop_it_cleanly() {
    for signal in [PeerProcess::terminate, PeerProcess::interrupt] {
        let mut serving = Serving::start(&["--services"]).await;
        signal(&serving.process);
        let status = serving.process.wait().await;
        assert_eq!(status.code(), Some(0), "{}", serving.process.output());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let mut serving = Serving::start(&[]).await;
    let mut connection = Connection::http1(serving.address)
        .await
        .expect("it listens");
    let fault = r#"{"Path":"*","Action":{"Kind":"Delay","Milliseconds":3600000}}"#;
    let request = connection
        .request("POST", "/emulator/faults")
        .body(testkit::body::full(fault))
        .expect("a request");
    assert_eq!(
        connection.send(request).await.expect("it answers").status,
        200
    );
    // A call in flight, which is awaited after the first signal.
    let call = tokio::spawn(async move { connection.get("/Nodes?api-version=6.0").await.is_err() });
    testkit::time::eventually("the call has come", async || {
        serving.get("/emulator").await["FaultyAnswers"] == 1
    })
    .await;
    serving.process.terminate();
    serving
        .process
        .wait_for_output("again to stop at once")
        .await;
    serving.process.terminate();
    let status = serving.process.wait().await;
    assert_eq!(status.code(), Some(130), "{}", serving.process.output());
    assert!(call.await.expect("nobody aborts it"), "it was answered");
}

#[cfg(unix)]
#[tokio::test]
async fn a_cluster_that_takes_long_to_build_says_so_and_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.toml");
    let text = "[cluster]\nnodes = 1000\n[[application_types]]\nname = \"T\"\nservice_types.S = {}\n\
                [applications.A]\ntype = \"T\"\n[applications.A.services.\"S{n}\"]\ntype = \"S\"\ncount = 60\ninstances = -1\n";
    std::fs::write(&path, text).unwrap();
    let argument = path.to_str().unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--topology", argument];
    let mut process = peers::spawn(command(&arguments));
    process.wait_for_output("is being built").await;
    process.terminate();
    let status = process.wait().await;
    assert_eq!(status.code(), Some(0), "{}", process.output());
    assert!(
        !process.output().contains("ready at"),
        "{}",
        process.output()
    );
}

#[tokio::test]
async fn a_reader_that_has_gone_away_is_no_failure() {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("timelines/long.toml");
    for format in ["text", "json"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = command(&["timeline", script.to_str().unwrap(), "--format", format]);
        let done = command
            .stdout(writer)
            .output()
            .await
            .expect("it is started");
        assert_eq!(done.status.code(), Some(0), "{format}: {done:?}");
        assert!(done.stderr.is_empty(), "{format}: {done:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn too_few_descriptors_are_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.toml");
    let text = "[[application_types]]\nname = \"T\"\nservice_types.S = {}\n\
                [applications.A]\ntype = \"T\"\n[applications.A.services.\"S{n}\"]\ntype = \"S\"\ncount = 100\n";
    std::fs::write(&path, text).unwrap();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg("ulimit -n 300; exec \"$0\" serve --listen 127.0.0.1:0 --services --topology \"$1\"")
        .arg(env!("CARGO_BIN_EXE_servicefabric-emulator"))
        .arg(&path)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let done = peers::output(shell).await;
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("ulimit -n 512"), "{}", done.stderr);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
}

#[tokio::test]
async fn all_addresses_are_shown_as_one_that_can_be_reached() {
    let mut serving = Serving::start(&["--listen", "0.0.0.0:0"]).await;
    assert!(serving.address.ip().is_loopback(), "{}", serving.address);
    // A separate thread writes the log.
    let warning = "every client that reaches this machine";
    serving.process.wait_for_output(warning).await;
}

#[tokio::test]
async fn a_topology_is_read_from_toml_and_json() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("two.toml", "[cluster]\nnodes = 2\n"),
        ("two.json", r#"{"cluster": {"nodes": 2}}"#),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let serving = Serving::start(&["--topology", path.to_str().unwrap()]).await;
        let nodes = serving.get("/Nodes?api-version=6.0").await;
        assert_eq!(nodes["Items"].as_array().map(Vec::len), Some(2), "{name}");
    }
}

#[tokio::test]
async fn options_reach_the_gateway() {
    let serving = Serving::start(&[
        "--manual-time",
        "--page-size",
        "1",
        "--report-interval",
        "0",
    ])
    .await;
    let nodes = serving.get("/Nodes?api-version=6.0").await;
    assert_eq!(nodes["Items"].as_array().map(Vec::len), Some(1));
    let overview = serving.get("/emulator").await;
    assert_eq!(overview["Speed"], 0.0);
    assert_eq!(overview["PageSize"], 1);
}

#[tokio::test]
async fn tls_and_tokens_are_wanted_as_told() {
    let authority = CertificateAuthority::new("test");
    let files = authority.issue(&["localhost"]).write_pem();
    let certificate = files.certificate().to_str().unwrap();
    let key = files.key().to_str().unwrap();
    let serving =
        Serving::start(&["--tls-cert", certificate, "--tls-key", key, "--bearer", "t"]).await;
    let config = authority.client_config(Alpn::Http1);
    let mut connection = Connection::tls(serving.address, "localhost", config)
        .await
        .expect("it speaks TLS");
    let answer = connection
        .get("/Nodes?api-version=6.0")
        .await
        .expect("it answers");
    assert_eq!(answer.status, 401);
    let request = connection
        .request("GET", "/Nodes?api-version=6.0")
        .header("authorization", "Bearer t")
        .body(testkit::body::empty())
        .expect("a request");
    let answer = connection.send(request).await.expect("it answers");
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn bad_files_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    let argument = path.to_str().unwrap();
    let missing = output(&["serve", "--topology", argument]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        missing.stderr.contains("cannot be read"),
        "{}",
        missing.stderr
    );
    for (text, hint) in [
        ("[cluster\n", "line 1"),
        ("[cluster]\nnodez = 2\n", "nodez"),
        ("[applications.Shop]\ntype = \"NoType\"\n", "NoType"),
    ] {
        std::fs::write(&path, text).unwrap();
        let done = output(&["serve", "--listen", "127.0.0.1:0", "--topology", argument]).await;
        assert_eq!(done.status.code(), Some(1), "{text}: {}", done.stderr);
        assert!(done.stderr.contains(hint), "{text}: {}", done.stderr);
        assert!(done.stdout.is_empty(), "{}", done.stdout);
    }
}

#[tokio::test]
async fn settings_that_may_be_meant_otherwise_are_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.toml");
    std::fs::write(
        &path,
        "hosting.ActivationRetryBackoffExponentiationBase = 0",
    )
    .unwrap();
    let serving = Serving::start(&["--topology", path.to_str().unwrap()]).await;
    let output = serving.process.output();
    assert!(
        output.contains("WARN") && output.contains("linear"),
        "{output}"
    );
}

/// Standard error is a pipe that is not read.
#[cfg(unix)]
#[tokio::test]
async fn a_failure_that_nobody_reads_is_told_by_the_exit_code() {
    let mut command = command(&["timeline", "no such file"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = command.stderr(writer).status().await.expect("it runs");
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_so() {
    let serving = Serving::start(&[]).await;
    let address = serving.address.to_string();
    let done = output(&["serve", "--listen", &address]).await;
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains(&address), "{}", done.stderr);
}

#[tokio::test]
async fn wrong_usage_ends_with_2() {
    for arguments in [
        &["--nothing"][..],
        &[],
        &["serve", "--page-size", "0"],
        &["serve", "--speed", "fast"],
        &["serve", "--speed", "0"],
        &["serve", "--speed", "nan"],
        &["serve", "--listen", "99999"],
        &["serve", "--listen", "127.0.0.1:99999"],
        &["serve", "--bearer", ""],
        &["serve", "--speed", "2", "--manual-time"],
        &["serve", "--tls-cert", "a.pem"],
        &["timeline"],
    ] {
        let done = output(arguments).await;
        assert_eq!(
            done.status.code(),
            Some(2),
            "{arguments:?}: {}",
            done.stderr
        );
    }
}

#[tokio::test]
async fn help_and_version_end_with_0() {
    for arguments in [
        &["--help"][..],
        &["serve", "--help"],
        &["timeline", "--help"],
        &["--version"],
    ] {
        let done = output(arguments).await;
        assert_eq!(done.status.code(), Some(0), "{arguments:?}");
        assert!(!done.stdout.is_empty());
    }
}

#[tokio::test]
async fn a_timeline_is_printed_for_people_and_for_programs() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("timelines");
    let script = folder.join("deactivation-1.toml");
    let argument = script.to_str().unwrap();
    let text = output(&["timeline", argument]).await.expect_success();
    let expected = std::fs::read_to_string(folder.join("deactivation-1.log")).unwrap();
    assert_eq!(text.stdout, expected.replace("\r\n", "\n"));
    assert!(text.stderr.is_empty(), "{}", text.stderr);
    let json = output(&["timeline", argument, "--format", "json"])
        .await
        .expect_success();
    let timeline: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert!(
        timeline["log"]
            .as_array()
            .is_some_and(|log| !log.is_empty())
    );
}

#[tokio::test]
async fn a_script_that_is_none_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, "event = [{ at = \"soon\", place = \"r\" }]\n").unwrap();
    let done = output(&["timeline", path.to_str().unwrap()]).await;
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stdout.is_empty());
    assert!(done.stderr.contains("line 1"), "{}", done.stderr);
}

const APPLICATION: &str = r#"<ApplicationManifest ApplicationTypeName="PackedType" ApplicationTypeVersion="1" xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <ServiceManifestImport><ServiceManifestRef ServiceManifestName="FrontPkg" ServiceManifestVersion="1" /></ServiceManifestImport>
  <DefaultServices><Service Name="Front"><StatelessService ServiceTypeName="FrontType" InstanceCount="2"><SingletonPartition /></StatelessService></Service></DefaultServices>
</ApplicationManifest>"#;

const SERVICE: &str = r#"<ServiceManifest Name="FrontPkg" Version="1" xmlns="http://schemas.microsoft.com/2011/01/fabric">
  <ServiceTypes><StatelessServiceType ServiceTypeName="FrontType" /></ServiceTypes>
  <CodePackage Name="Code" Version="1"><EntryPoint><ExeHost><Program>front</Program></ExeHost></EntryPoint></CodePackage>
  <Resources><Endpoints><Endpoint Name="http" Protocol="http" /></Endpoints></Resources>
</ServiceManifest>"#;

#[tokio::test]
async fn a_package_is_deployed_from_its_directory() {
    let place = tempfile::tempdir().unwrap();
    let package = place.path().to_str().unwrap();
    let rejected = output(&["serve", "--package", package]).await;
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        rejected
            .stderr
            .contains("it has no ApplicationManifest.xml"),
        "{}",
        rejected.stderr
    );

    std::fs::write(place.path().join("ApplicationManifest.xml"), APPLICATION).unwrap();
    let rejected = output(&["serve", "--package", package]).await;
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        rejected
            .stderr
            .contains("FrontPkg/ServiceManifest.xml cannot be read"),
        "{}",
        rejected.stderr
    );

    std::fs::create_dir(place.path().join("FrontPkg")).unwrap();
    std::fs::write(place.path().join("FrontPkg/ServiceManifest.xml"), SERVICE).unwrap();
    let serving = Serving::start(&["--package", package, "--services", "--speed", "100"]).await;
    let services = serving
        .get("/Applications/Packed/$/GetServices?api-version=6.0")
        .await;
    assert_eq!(services["Items"][0]["Name"], "fabric:/Packed/Front");
    let applications = serving.get("/Applications?api-version=6.1").await;
    let count = applications["Items"].as_array().map(Vec::len);
    assert_eq!(count, Some(1), "nothing else is in the cluster");
}

/// Returns the date of a cluster's clock, from a service created at its beginning.
async fn begun(arguments: &[&str]) -> String {
    let serving = Serving::start(arguments).await;
    let node = serving.get("/Nodes/_Node_0?api-version=6.0").await;
    node["NodeUpAt"].as_str().expect("it is a date").to_owned()
}

#[tokio::test]
async fn a_clock_begins_when_the_topology_says_or_where_time_stands_still() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("cluster.toml");
    let topology = path.to_str().unwrap();
    // The default date, but written explicitly.
    std::fs::write(&path, "cluster.start = \"2026-01-01T00:00:00Z\"").unwrap();
    assert!(
        begun(&["--topology", topology])
            .await
            .starts_with("2026-01-01T00:00:00")
    );
    std::fs::write(&path, "cluster.nodes = 1").unwrap();
    let still = begun(&["--topology", topology, "--manual-time"]).await;
    assert!(still.starts_with("2026-01-01T00:00:00"), "{still}");
    let now = begun(&["--topology", topology]).await;
    assert!(!now.starts_with("2026-01-01T00:00:00"), "{now}");
}
