//! Several programs, of which one writes.

use std::path::Path;

use serde_json::json;
use testkit::peers::{self, PeerProcess};
use testkit::time::eventually;

use super::operation::get;
use super::{api_server, emulator, example, program};
use crate::support::leases::{COLLECTION, Leases, NAME};

fn watching(endpoint: &str, more: &[&str]) -> PeerProcess {
    let mut apply = program();
    apply
        .arg("apply")
        .arg("--config")
        .arg(example("azure.json"));
    apply.args([
        "--watch",
        "--endpoint",
        endpoint,
        "--status-listen",
        "127.0.0.1:0",
    ]);
    peers::spawn({
        apply.args(more);
        apply
    })
}

async fn told(program: &PeerProcess, path: &str) -> String {
    let address = peers::address_after(&program.output(), "address=");
    get(&address.to_string(), path).await
}

#[tokio::test]
async fn one_of_two_programs_writes_and_the_other_follows_it() {
    let leases = Leases::default();
    let (api, _) = api_server::start_with(0, 503, leases.clone()).await;
    let (_azure, endpoint) = emulator().await;
    let lease = format!("infra/{NAME}");
    let start = |host: &str| {
        let mut apply = program();
        apply
            .arg("apply")
            .arg("--config")
            .arg(example("azure.json"));
        apply.args(["--kubernetes", &api, "--endpoint", &endpoint, "--watch"]);
        apply.args([
            "--leader-elect",
            "--lease",
            &lease,
            "--lease-duration",
            "10",
        ]);
        apply
            .args(["--status-listen", "127.0.0.1:0"])
            .env("HOSTNAME", host);
        peers::spawn(apply)
    };
    let mut first = start("pod-1");
    first.wait_for_output("shop/web: 20.0.0.1").await;
    assert!(told(&first, "/readyz").await.ends_with("ok, leading\n"));
    let mut second = start("pod-2");
    second
        .wait_for_output("standing by: another program holds the lease")
        .await;
    let ready = told(&second, "/readyz").await;
    assert!(
        ready.contains("200 OK") && ready.contains("standing by; leading: pod-1_"),
        "{ready}"
    );
    let metrics = told(&second, "/metrics").await;
    assert!(
        metrics.contains("\nazure_loadbalancer_leader 0\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\nazure_loadbalancer_reads_total 0\n"),
        "{metrics}"
    );

    // A stopped program releases the lease.
    first.terminate();
    assert_eq!(first.wait().await.code(), Some(0));
    second.wait_for_output("leading: this program writes").await;
    second.wait_for_output("shop/web: 20.0.0.1").await;
    let metrics = told(&second, "/metrics").await;
    assert!(
        metrics.contains("\nazure_loadbalancer_leader 1\n"),
        "{metrics}"
    );

    // A killed program does not, and is replaced when the lease expires.
    let mut third = start("pod-3");
    third.wait_for_output("standing by").await;
    second.kill().await;
    third.wait_for_output("leading: this program writes").await;
    assert_eq!(leases.now()["spec"]["leaseTransitions"], 2);

    // A program that loses the lease stops writing, and stands by.
    leases.change(|lease| {
        lease["spec"]["holderIdentity"] = json!("by hand");
        lease["spec"]["leaseDurationSeconds"] = json!(3_600);
    });
    third.wait_for_output("does not write any more").await;
    eventually("it tells who leads", async || {
        told(&third, "/readyz").await.contains("leading: by hand")
    })
    .await;
    // Stopping it does not release the holder's lease.
    third.terminate();
    assert_eq!(third.wait().await.code(), Some(0));
    let path = format!("{COLLECTION}/{NAME}");
    assert_eq!(
        leases.answer("GET", &path, b"").1["spec"]["holderIdentity"],
        "by hand"
    );
}

#[tokio::test]
async fn the_lock_of_a_file_does_without_kubernetes() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("lock");
    let (_azure, endpoint) = emulator().await;
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (services, nodes) = (
        text(&example("services.json")),
        text(&example("nodes.json")),
    );
    let lock_text = text(&lock);
    let arguments = [
        "--services",
        &services,
        "--nodes",
        &nodes,
        "--leader-lock",
        &lock_text,
    ];
    let mut first = watching(&endpoint, &arguments);
    first.wait_for_output("shop/web: 20.0.0.1").await;
    let mut second = watching(&endpoint, &arguments);
    second
        .wait_for_output("standing by: another program has the lock")
        .await;
    assert!(told(&second, "/metrics").await.contains("_reads_total 0\n"));
    // Also if it was killed.
    first.kill().await;
    second.wait_for_output("leading: this program writes").await;
    second.wait_for_output("shop/web: 20.0.0.1").await;
    eventually("it is ready", async || {
        told(&second, "/readyz").await.ends_with("ok, leading\n")
    })
    .await;
}

/// A cleaner of temporary files replaces the lock file.
#[tokio::test]
async fn a_lock_whose_file_was_made_again_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("lock");
    let (_azure, endpoint) = emulator().await;
    let (services, nodes) = (example("services.json"), example("nodes.json"));
    let mut program = watching(
        &endpoint,
        &[
            "--services",
            services.to_str().unwrap(),
            "--nodes",
            nodes.to_str().unwrap(),
            "--leader-lock",
            lock.to_str().unwrap(),
        ],
    );
    program.wait_for_output("shop/web: 20.0.0.1").await;
    let another_file = || {
        let draft = directory.path().join("draft");
        let file = std::fs::File::create(&draft).unwrap();
        file.lock().unwrap();
        std::fs::rename(&draft, &lock).unwrap();
        file
    };
    let theirs = another_file();
    program.wait_for_output("was removed or made again").await;
    program
        .wait_for_output("standing by: another program has the lock")
        .await;
    // The file that it waited for is gone as well, and another one is free.
    another_file().unlock().unwrap();
    eventually("it leads again", async || {
        told(&program, "/readyz").await.ends_with("ok, leading\n")
    })
    .await;
    drop(theirs);
}
