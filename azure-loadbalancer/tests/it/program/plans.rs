//! Plans for people and scripts, and their execution by `apply`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::peers::{self, PeerOutput};

use super::{ended, example, program, state};

struct Place {
    kept: tempfile::TempDir,
    state: PathBuf,
}

impl Place {
    fn new() -> Self {
        let (kept, state) = state();
        Self { kept, state }
    }

    fn file(&self, name: &str, document: &Value) -> PathBuf {
        let path = self.kept.path().join(name);
        std::fs::write(&path, document.to_string()).unwrap();
        path
    }

    async fn run(&self, command: &str, services: &Path, nodes: &Path, more: &[&str]) -> PeerOutput {
        let mut program = program();
        program
            .arg(command)
            .arg("--config")
            .arg(example("azure.json"));
        program
            .arg("--services")
            .arg(services)
            .arg("--nodes")
            .arg(nodes);
        program.arg("--state").arg(&self.state).args(more);
        peers::output(program).await
    }
}

/// Returns the example's services with one changed.
fn services(change: impl Fn(&mut Value)) -> Value {
    let text = std::fs::read_to_string(example("services.json")).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    let items = all["items"].as_array_mut().unwrap();
    change(
        items
            .iter_mut()
            .find(|one| one["metadata"]["name"] == "web")
            .unwrap(),
    );
    all
}

fn make_internal(web: &mut Value) {
    web["metadata"]["annotations"]["service.beta.kubernetes.io/azure-load-balancer-internal"] =
        json!("true");
}

/// Returns the numbered writes of a plan, and those that `apply` has reported.
fn writes(output: &PeerOutput) -> Vec<String> {
    let numbered = |line: &str| {
        let (number, write) = line.split_once(". ")?;
        number.parse::<u8>().ok()?;
        Some(write.to_owned())
    };
    let lines = output.stdout.lines();
    let mut writes: Vec<_> = lines
        .filter_map(|line| {
            numbered(line).or_else(|| Some(line.strip_prefix("written: ")?.to_owned()))
        })
        .collect();
    writes.sort();
    writes
}

#[tokio::test]
async fn the_plan_of_a_flip_shows_every_write_and_deletions_first() {
    let place = Place::new();
    let nodes = example("nodes.json");
    let before = place.file("before.json", &services(|_| {}));
    let new = place
        .run("plan", &before, &nodes, &["--detailed-exitcode"])
        .await;
    ended(&new, 3);
    assert!(
        new.stdout.contains("put networkSecurityGroup"),
        "{}",
        new.stdout
    );
    assert!(
        new.stdout.contains("the address of shop-"),
        "{}",
        new.stdout
    );
    let applied = place.run("apply", &before, &nodes, &[]).await;
    ended(&applied, 0);
    assert_eq!(writes(&new), writes(&applied));
    ended(
        &place
            .run("plan", &before, &nodes, &["--detailed-exitcode"])
            .await,
        0,
    );

    let after = place.file("after.json", &services(make_internal));
    let more = ["--delete-left-addresses"];
    let plan = place.run("plan", &after, &nodes, &more).await;
    ended(&plan, 0);
    let first = plan.stdout.lines().next().unwrap();
    assert!(first.starts_with("deletes: write "), "{}", plan.stdout);
    assert!(
        plan.stdout
            .contains("(20.0.0.1) for ever: shop/web needs it no more"),
        "{}",
        plan.stdout
    );
    let flipped = place.run("apply", &after, &nodes, &more).await;
    ended(&flipped, 0);
    assert_eq!(writes(&plan), writes(&flipped), "{}", plan.stdout);
    assert!(
        writes(&plan)
            .iter()
            .any(|one| one.starts_with("delete loadBalancer")),
        "{}",
        plan.stdout
    );
    // Deletions that cannot be undone are listed first.
    assert!(
        flipped.stderr.contains("a public address is given up"),
        "{}",
        flipped.stderr
    );
}

#[tokio::test]
async fn an_address_that_was_handed_out_is_deleted_only_when_that_is_asked_for() {
    let place = Place::new();
    let nodes = example("nodes.json");
    ended(
        &place
            .run("apply", &example("services.json"), &nodes, &[])
            .await,
        0,
    );
    let has_address = || {
        std::fs::read_to_string(&place.state)
            .unwrap()
            .contains("\"20.0.0.1\"")
    };
    let after = place.file("after.json", &services(make_internal));
    let kept = place.run("apply", &after, &nodes, &[]).await;
    ended(&kept, 0);
    assert!(
        kept.stdout.contains("--delete-left-addresses"),
        "{}",
        kept.stdout
    );
    assert!(has_address());
    ended(
        &place
            .run("apply", &after, &nodes, &["--delete-left-addresses"])
            .await,
        0,
    );
    assert!(!has_address());
}

/// The configuration allows it as the option does. A key that is `null` is one that is missing.
#[tokio::test]
async fn a_configuration_says_what_becomes_of_addresses_that_services_leave() {
    for (written, stays) in [("\"keep\"", true), ("null", true), ("\"delete\"", false)] {
        let place = Place::new();
        let nodes = example("nodes.json");
        let before = place
            .run("apply", &example("services.json"), &nodes, &[])
            .await;
        ended(&before, 0);
        let good = std::fs::read_to_string(example("azure.json")).unwrap();
        let mut config: Value = serde_json::from_str(&good).unwrap();
        config["leftAddresses"] = serde_json::from_str(written).unwrap();
        let config = place.file("azure.json", &config);
        let after = place.file("after.json", &services(make_internal));
        let mut apply = program();
        apply.arg("apply").arg("--config").arg(config);
        apply.arg("--services").arg(after).arg("--nodes").arg(nodes);
        apply.arg("--state").arg(&place.state);
        ended(&peers::output(apply).await, 0);
        let state = std::fs::read_to_string(&place.state).unwrap();
        assert_eq!(state.contains("\"20.0.0.1\""), stays, "{written}");
    }
}

#[tokio::test]
async fn plans_are_for_people() {
    let place = Place::new();
    let nodes = example("nodes.json");
    let all = example("services.json");
    let no_services = place.file("none.json", &json!({"kind": "List", "items": []}));
    for (services, command) in [
        (&all, "plan"),
        (&all, "apply"),
        (&no_services, "plan"),
        (&no_services, "apply"),
    ] {
        let shown = place.run(command, services, &nodes, &[]).await;
        ended(&shown, 0);
        for line in shown.stdout.lines() {
            assert!(line.len() < 320, "{line}");
            let noise = [
                "etag",
                "provisioningState",
                "{\"",
                "Microsoft.Network/loadBalancers/shop/probes",
            ];
            assert!(!noise.iter().any(|noise| line.contains(noise)), "{line}");
        }
        if services == &no_services {
            assert!(
                shown
                    .stdout
                    .contains("belongs to no service and stays; `--remove-orphans` removes it"),
                "{}",
                shown.stdout
            );
        }
    }
}

#[tokio::test]
async fn a_list_without_nodes_empties_no_pool_and_apply_says_so() {
    let place = Place::new();
    let all = example("services.json");
    ended(
        &place.run("apply", &all, &example("nodes.json"), &[]).await,
        0,
    );
    let none = place.file("nodes.json", &json!({"kind": "List", "items": []}));
    for command in ["plan", "apply"] {
        let shown = place.run(command, &all, &none, &[]).await;
        ended(&shown, 0);
        assert!(
            shown.stdout.contains("keeps its members"),
            "{}",
            shown.stdout
        );
        assert_eq!(writes(&shown), [""; 0]);
        assert!(
            shown.stdout.contains("no node is known"),
            "{}",
            shown.stdout
        );
    }
    let after = std::fs::read_to_string(&place.state).unwrap();
    assert!(after.contains("node-1") && after.contains("node-2"));
    // A first run without nodes reports that, too.
    let fresh = Place::new();
    let shown = fresh.run("apply", &all, &none, &[]).await;
    ended(&shown, 0);
    assert!(
        shown.stdout.contains("no node answers for its services"),
        "{}",
        shown.stdout
    );
}
