//! Tests of the program: its output and its exit codes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod api_server;
mod documents;
mod fabric_by_hand;
mod identity;
mod leaders;
mod migration;
mod nodes_from;
mod operation;
mod plans;
mod schemas;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use testkit::peers::{self, PeerOutput};
use testkit::time::eventually;
use tokio::process::Command;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_azure-loadbalancer"));
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("example")
        .join(name)
}

/// Returns a command for the example, with a copy of its state.
fn about(command: &str, state: &Path) -> Command {
    let mut program = program();
    program
        .arg(command)
        .arg("--config")
        .arg(example("azure.json"))
        .arg("--services")
        .arg(example("services.json"))
        .arg("--state")
        .arg(state);
    if command != "orphans" {
        program.arg("--nodes").arg(example("nodes.json"));
    }
    program
}

fn state() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json");
    std::fs::copy(example("state.json"), &path).unwrap();
    (directory, path)
}

#[track_caller]
fn ended(output: &PeerOutput, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}\n{}",
        output.stdout,
        output.stderr
    );
}

#[tokio::test]
async fn what_is_planned_is_applied_and_then_there_is_nothing_to_do() {
    let (_kept, state) = state();
    let planned = peers::output(about("plan", &state)).await;
    ended(&planned, 0);
    assert!(
        planned.stdout.contains("put loadBalancer shop\n"),
        "{}",
        planned.stdout
    );
    assert!(
        planned.stdout.contains("because shop/web"),
        "{}",
        planned.stdout
    );
    assert!(
        !planned.stdout.contains('\u{1b}'),
        "colours are for terminals"
    );
    assert_eq!(
        std::fs::read_to_string(&state).unwrap(),
        std::fs::read_to_string(example("state.json")).unwrap()
    );

    let applied = peers::output(about("apply", &state)).await;
    ended(&applied, 0);
    assert!(
        applied.stdout.contains("shop/web: 20.0.0.1"),
        "{}",
        applied.stdout
    );
    assert!(
        applied.stdout.contains("shop/orders: 10.20.0.4"),
        "{}",
        applied.stdout
    );

    let mut json = about("plan", &state);
    json.args(["--format", "json"]);
    let planned = peers::output(json).await;
    ended(&planned, 0);
    let plan: Value = serde_json::from_str(&planned.stdout).unwrap();
    assert_eq!(plan["actions"], serde_json::json!([]));
    assert_eq!(plan["services"]["shop/web"]["ingress"][0]["ip"], "20.0.0.1");
}

#[tokio::test]
async fn what_belongs_to_nobody_is_told() {
    let (kept, state) = state();
    ended(&peers::output(about("apply", &state)).await, 0);
    let all_is_well = peers::output(about("orphans", &state)).await;
    ended(&all_is_well, 0);
    let none = kept.path().join("none.json");
    std::fs::write(&none, r#"{"kind":"List","items":[]}"#).unwrap();
    let mut orphans = program();
    orphans
        .arg("orphans")
        .arg("--config")
        .arg(example("azure.json"))
        .arg("--services")
        .arg(&none)
        .arg("--state")
        .arg(&state);
    let orphans = peers::output(orphans).await;
    ended(&orphans, 1);
    assert!(
        orphans.stdout.contains("publicIPAddresses"),
        "{}",
        orphans.stdout
    );
    // Nothing was removed.
    ended(&peers::output(about("orphans", &state)).await, 0);
}

/// Returns the number of resources in a state file.
fn resources(state: &Path) -> usize {
    let text = std::fs::read_to_string(state).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    value["value"].as_array().unwrap().len()
}

#[tokio::test]
async fn another_file_than_was_meant_takes_nothing_down() {
    let (kept, state) = state();
    ended(&peers::output(about("apply", &state)).await, 0);
    let before = resources(&state);
    let file = |name: &str, text: &str| {
        let path = kept.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let with = |services: &Path, more: &[&str]| {
        let mut command = program();
        command
            .arg("apply")
            .arg("--config")
            .arg(example("azure.json"));
        command.arg("--services").arg(services).args(more);
        command.arg("--state").arg(&state);
        command
    };
    let members = example("nodes.json");
    let nodes = ["--nodes", members.to_str().unwrap()];

    // Nodes in place of services.
    let swapped = peers::output(with(&members, &nodes)).await;
    ended(&swapped, 1);
    assert!(
        swapped.stderr.contains("none of kind Service"),
        "{}",
        swapped.stderr
    );
    assert_eq!(resources(&state), before);
    // An empty list of nodes would empty the pools.
    let without = peers::output(with(&example("services.json"), &[])).await;
    ended(&without, 2);
    assert!(without.stderr.contains("--nodes"), "{}", without.stderr);

    // A shorter file: resources of the missing services stay, unless their removal is requested.
    let short = file("short.json", r#"{"kind":"List","items":[]}"#);
    let kept_all = peers::output(with(&short, &nodes)).await;
    ended(&kept_all, 0);
    assert_eq!(resources(&state), before);
    assert!(
        kept_all.stdout.contains("`--remove-orphans` removes it"),
        "{}",
        kept_all.stdout
    );
    let removed = peers::output(with(&short, &[&nodes[..], &["--remove-orphans"]].concat())).await;
    ended(&removed, 0);
    assert!(resources(&state) < before);
    assert!(!removed.stdout.contains("orphan:"), "{}", removed.stdout);
}

#[tokio::test]
async fn services_of_an_api_server_are_served_and_told_where_they_are_reached() {
    let (_kept, state) = state();
    let (address, patches) = api_server::start().await;
    let to_it = |command: &str| {
        let mut program = program();
        program
            .arg(command)
            .arg("--config")
            .arg(example("azure.json"));
        program
            .args(["--kubernetes", &address])
            .arg("--state")
            .arg(&state);
        program
    };
    let planned = peers::output(to_it("plan")).await;
    ended(&planned, 0);
    assert!(planned.stdout.contains("shop/web"), "{}", planned.stdout);
    assert!(planned.stdout.contains("10.20.0.9"), "{}", planned.stdout);

    let mut watching = to_it("apply");
    watching.arg("--watch");
    let mut watching = peers::spawn(watching);
    watching.wait_for_output("shop/web: 20.0.0.1").await;
    let patched = async {
        while patches.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), patched)
        .await
        .unwrap();
    watching.terminate();
    assert_eq!(watching.wait().await.code(), Some(0));
    let patches = patches.lock();
    assert_eq!(patches.len(), 1);
    assert_eq!(patches[0].0, "/api/v1/namespaces/shop/services/web/status");
    assert_eq!(
        patches[0].1["status"]["loadBalancer"]["ingress"][0]["ip"],
        "20.0.0.1"
    );
}

/// `--finalizer` puts Kubernetes' finalizer on services, and without it none is put. What is wrong with a service is an
/// event either way.
#[tokio::test]
async fn the_program_puts_finalizers_if_told_to_and_writes_events() {
    let mut wrong = api_server::web();
    wrong["metadata"]["name"] = "wrong".into();
    wrong["metadata"]["uid"] = "9f2a1c7e-0000-4000-8000-000000000001".into();
    let timeout = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
    wrong["metadata"]["annotations"] = serde_json::json!({ timeout: "abc" });
    let services = serde_json::json!([api_server::web(), wrong]);
    for puts in [true, false] {
        let (_kept, state) = state();
        let (address, written) =
            api_server::start_serving(0, 503, Default::default(), services.clone()).await;
        let mut watching = program();
        watching
            .arg("apply")
            .arg("--config")
            .arg(example("azure.json"));
        watching.args(["--kubernetes", &address, "--watch", "--state"]);
        watching.arg(&state).args(puts.then_some("--finalizer"));
        let mut watching = peers::spawn(watching);
        // The status is written last.
        let status = "/api/v1/namespaces/shop/services/web/status";
        eventually("the status is written", async || {
            written.lock().iter().any(|(path, _)| path == status)
        })
        .await;
        watching.terminate();
        // The last result decides, and one service has an error.
        assert_eq!(watching.wait().await.code(), Some(1));
        let written = written.lock();
        let finalizers: Vec<_> = written
            .iter()
            .filter(|(path, _)| path == "/api/v1/namespaces/shop/services/web")
            .map(|(_, patch)| patch["metadata"]["finalizers"].clone())
            .collect();
        let one = serde_json::json!(["service.kubernetes.io/load-balancer-cleanup"]);
        assert_eq!(finalizers, vec![one; usize::from(puts)], "{written:?}");
        let events: Vec<_> = written
            .iter()
            .filter(|(path, _)| path == "/api/v1/namespaces/shop/events")
            .map(|(_, event)| {
                (
                    &event["involvedObject"]["name"],
                    &event["type"],
                    &event["message"],
                )
            })
            .collect();
        assert_eq!(events.len(), 1, "{written:?}");
        let (name, kind, message) = events[0];
        assert_eq!((name, kind), (&"wrong".into(), &"Warning".into()));
        assert!(message.as_str().unwrap().contains("abc"), "{message}");
    }
}

#[tokio::test]
async fn an_api_server_that_fails_for_a_moment_is_asked_again() {
    let (_kept, state) = state();
    for (status, code) in [(503, 0), (401, 1)] {
        let (address, _) = api_server::start_failing(2, status).await;
        let mut plan = program();
        plan.arg("plan")
            .arg("--config")
            .arg(example("azure.json"))
            .args(["--kubernetes", &address])
            .arg("--state")
            .arg(&state);
        let planned = peers::output(plan).await;
        ended(&planned, code);
        assert_eq!(planned.stdout.contains("shop/web"), code == 0);
        assert!(planned.stderr.contains("not now"), "{}", planned.stderr);
    }
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let (kept, state) = state();
    let file = |name: &str, text: &str| {
        let path = kept.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let good = std::fs::read_to_string(example("azure.json")).unwrap();
    for (config, services, expected) in [
        (good.as_str(), "{", "kubectl get services"),
        (
            &good,
            r#"[{"kind":"Service","metadata":{}}]"#,
            "item 0 (Service without a name)",
        ),
        ("{}", "[]", "subscriptionId"),
        (&good.replace("shop-net", ""), "[]", "vnetName"),
    ] {
        let mut command = program();
        command
            .arg("plan")
            .arg("--config")
            .arg(file("azure.json", config))
            .arg("--services")
            .arg(file("services.json", services));
        command.arg("--nodes").arg(example("nodes.json"));
        command.arg("--state").arg(&state);
        let output = peers::output(command).await;
        ended(&output, 1);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
        assert!(output.stdout.is_empty());
    }
    let mut usage = program();
    usage.args(["plan", "--confg", "x"]);
    let output = peers::output(usage).await;
    ended(&output, 2);
    assert!(output.stderr.contains("--config"), "{}", output.stderr);
}

#[tokio::test]
async fn a_service_that_cannot_have_what_it_asks_for_is_bad() {
    let (kept, state) = state();
    let text = std::fs::read_to_string(example("services.json")).unwrap();
    let bad = text.replace("\"annotations\": {", "\"annotations\": { \"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout\": \"abc\",");
    let services = kept.path().join("services.json");
    std::fs::write(&services, bad).unwrap();
    let mut command = program();
    command
        .arg("plan")
        .arg("--config")
        .arg(example("azure.json"))
        .arg("--services")
        .arg(services)
        .arg("--nodes")
        .arg(example("nodes.json"))
        .arg("--state")
        .arg(&state);
    let output = peers::output(command).await;
    ended(&output, 1);
    assert!(
        output.stdout.contains("error: shop/orders"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("put loadBalancer shop\n"),
        "the other is planned: {}",
        output.stdout
    );
}

/// An Azure with the example's state, and its address.
async fn emulator() -> (peers::PeerProcess, String) {
    let mut command = program();
    command.args(["emulator", "--listen", "127.0.0.1:0", "--state"]);
    command.arg(example("state.json"));
    let mut emulator = peers::spawn(command);
    emulator.wait_for_output("ready at http://").await;
    let address = peers::address_after(&emulator.output(), "ready at http://");
    (emulator, format!("http://{address}"))
}

#[tokio::test]
async fn the_emulator_is_an_azure_to_apply_to() {
    let mut command = program();
    command.args([
        "emulator",
        "--listen",
        "127.0.0.1:0",
        "--operation-requests",
        "2",
        "--id-casing-seed",
        "1",
        "--state",
    ]);
    command.arg(example("state.json"));
    let mut emulator = peers::spawn(command);
    emulator.wait_for_output("ready at http://").await;
    let output = emulator.output();
    let endpoint = output
        .rsplit_once("ready at ")
        .unwrap()
        .1
        .lines()
        .next()
        .unwrap()
        .trim()
        .to_owned();
    let to_it = |command: &str| {
        let mut program = program();
        program
            .arg(command)
            .arg("--config")
            .arg(example("azure.json"))
            .arg("--services")
            .arg(example("services.json"));
        program
            .arg("--nodes")
            .arg(example("nodes.json"))
            .arg("--endpoint")
            .arg(&endpoint);
        program
    };
    ended(&peers::output(to_it("apply")).await, 0);
    let planned = peers::output(to_it("plan")).await;
    ended(&planned, 0);
    assert!(
        planned.stdout.contains("Nothing to write for 2 services."),
        "{}",
        planned.stdout
    );
    emulator.terminate();
    assert_eq!(emulator.wait().await.code(), Some(0));
}

#[test]
fn the_schema_names_every_field() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../schema/config.schema.json")).unwrap();
    let config = serde_json::to_value(azure_loadbalancer::Config::new("s", "rg", "l")).unwrap();
    let named: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    let mut written: Vec<_> = config.as_object().unwrap().keys().collect();
    written.sort();
    assert_eq!(named, written);
    for (name, property) in schema["properties"].as_object().unwrap() {
        let (default, value) = (&property["default"], &config[name]);
        // Zero stands for the default of the edition.
        assert!(
            default.is_null() || default == value || *default == 0,
            "{name}: {default} is not {value}"
        );
        if let Some(known) = property["enum"].as_array() {
            assert!(known.contains(value), "{name}: {value}");
        }
    }
}

/// Orphans stay unless their removal is requested, whatever the source of services: an API server may be that
/// of the wrong cluster. This one has one of the example's two services.
#[tokio::test]
async fn another_api_server_takes_nothing_down() {
    let (server, _) = api_server::start().await;
    let has_orders = |state: &Path| {
        let text = std::fs::read_to_string(state).unwrap();
        text.contains("a7e1c2b5c93a44a0e8d3e0c2d1ad6b0")
    };
    let says = |words: &str| {
        let text = std::fs::read_to_string(example("azure.json")).unwrap();
        text.replacen('{', &format!("{{ {words}"), 1)
    };
    let cases: [(&str, &[&str], bool); 4] = [
        ("", &[], true),
        (r#""orphans": "report","#, &[], true),
        (r#""orphans": "remove","#, &[], false),
        ("", &["--remove-orphans"], false),
    ];
    for (words, arguments, stay) in cases {
        let (kept, state) = state();
        ended(&peers::output(about("apply", &state)).await, 0);
        let config = kept.path().join("azure.json");
        std::fs::write(&config, says(words)).unwrap();
        let mut apply = program();
        apply
            .arg("apply")
            .arg("--config")
            .arg(&config)
            .args(["--kubernetes", &server, "--state"])
            .arg(&state)
            .args(arguments);
        let applied = peers::output(apply).await;
        ended(&applied, 0);
        assert_eq!(
            applied.stdout.contains("belongs to no service and stays"),
            stay,
            "{}",
            applied.stdout
        );
        assert_eq!(has_orders(&state), stay, "{words} {arguments:?}");
    }
}
