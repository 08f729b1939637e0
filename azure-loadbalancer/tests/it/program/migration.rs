//! From Basic to Standard with the program and its emulator, one stage for each confirmed call.

use std::path::{Path, PathBuf};

use testkit::peers::{self, PeerOutput};
use tokio::process::Command;

use super::{ended, example, program, resources, state};

struct Cluster {
    directory: tempfile::TempDir,
    state: PathBuf,
}

impl Cluster {
    async fn run(&self, sku: &str, arguments: &[&str]) -> PeerOutput {
        peers::output(self.command(sku, arguments)).await
    }

    fn command(&self, sku: &str, arguments: &[&str]) -> Command {
        let good = std::fs::read_to_string(example("azure.json")).unwrap();
        let config: &Path = &self.directory.path().join("azure.json");
        let words = format!("{{ \"loadBalancerSku\": \"{sku}\",");
        std::fs::write(config, good.replacen('{', &words, 1)).unwrap();
        let mut command = program();
        command.args(&arguments[..1]).arg("--config").arg(config);
        command.arg("--services").arg(example("services.json"));
        command.arg("--nodes").arg(example("nodes.json"));
        command
            .arg("--state")
            .arg(&self.state)
            .args(&arguments[1..]);
        command
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.state).unwrap()
    }
}

#[tokio::test]
async fn each_confirmed_stage_is_carried_out_and_no_other() {
    let (directory, state) = state();
    let cluster = Cluster { directory, state };
    let applied = cluster.run("basic", &["apply"]).await;
    ended(&applied, 0);
    assert!(
        applied.stdout.contains("shop/web: 20.0.0.1"),
        "{}",
        applied.stdout
    );
    let plan = ["plan", "--migrate-to-standard", "--detailed-exitcode"];
    let first = cluster.run("standard", &plan).await;
    ended(&first, 3);
    assert!(first.stdout.contains("traffic: STOPS"), "{}", first.stdout);
    assert!(first.stdout.contains("way back: "), "{}", first.stdout);
    assert!(
        first
            .stdout
            .contains("shop/orders may get another internal address"),
        "{}",
        first.stdout
    );
    let before = cluster.text();
    let wrong = cluster
        .run(
            "standard",
            &["apply", "--migrate-to-standard", "0123456789ab"],
        )
        .await;
    ended(&wrong, 1);
    assert!(
        wrong.stderr.contains("nothing is written"),
        "{}",
        wrong.stderr
    );
    assert_eq!(cluster.text(), before);

    let mut stages = 0;
    loop {
        let planned = cluster.run("standard", &plan).await;
        let Some((_, after)) = planned.stdout.split_once("apply --migrate-to-standard ") else {
            ended(&planned, 0);
            assert_eq!(planned.stdout, "Everything is of sku Standard.\n");
            break;
        };
        let digest = after.split_whitespace().next().unwrap().trim_matches('`');
        let done = cluster
            .run("standard", &["apply", "--migrate-to-standard", digest])
            .await;
        ended(&done, 0);
        assert!(done.stdout.starts_with("done: "), "{}", done.stdout);
        stages += 1;
    }
    assert_eq!(stages, 3, "addresses were static from the beginning");
    assert!(!cluster.text().contains("\"Basic\""), "{}", cluster.text());
    let rest = cluster.run("standard", &["plan"]).await;
    ended(&rest, 0);
    assert!(
        rest.stdout.contains("Nothing to write for 2 services."),
        "{}",
        rest.stdout
    );
    assert!(rest.stdout.contains("Nothing"), "{}", rest.stdout);
    assert!(
        cluster.text().contains("\"20.0.0.1\""),
        "the address has stayed"
    );
    assert!(resources(&cluster.state) > 0);
}

/// A forgotten program would write between the stages.
#[tokio::test]
async fn a_stage_waits_for_whoever_leads() {
    let (directory, state) = state();
    let cluster = Cluster { directory, state };
    ended(&cluster.run("basic", &["apply"]).await, 0);
    let planned = cluster
        .run("standard", &["plan", "--migrate-to-standard"])
        .await;
    let (_, after) = planned
        .stdout
        .split_once("apply --migrate-to-standard ")
        .unwrap();
    let digest = after.split_whitespace().next().unwrap().trim_matches('`');
    let before = cluster.text();
    let lock = cluster.directory.path().join("lock");
    let held = std::fs::File::create(&lock).unwrap();
    held.lock().unwrap();
    let lock = lock.to_str().unwrap();
    let stage = [
        "apply",
        "--migrate-to-standard",
        digest,
        "--leader-lock",
        lock,
    ];
    let mut stage = peers::spawn(cluster.command("standard", &stage));
    stage
        .wait_for_output("standing by: another program has the lock")
        .await;
    assert_eq!(cluster.text(), before);
    drop(held);
    stage.wait_for_output("done: ").await;
    assert_eq!(stage.wait().await.code(), Some(0));
    assert_ne!(cluster.text(), before);
    // A program that runs once and waits for no lease has no use for it.
    let once = cluster
        .run("standard", &["apply", "--leader-lock", lock])
        .await;
    ended(&once, 2);
}
