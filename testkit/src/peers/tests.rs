#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use super::lookup::Lookup;
use super::{find, free_port, output, output_within, spawn};
use crate::time::eventually;

fn lookup(variables: &[(&str, &Path)]) -> Lookup {
    Lookup::from_env(|name| {
        let found = variables.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

fn install(directory: &Path, name: &str, mode: u32) {
    fs::create_dir_all(directory).unwrap();
    let path = directory.join(name);
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

fn shell(script: &str) -> Command {
    let mut command = find("sh").expect("there is always a shell").command();
    command.args(["-c", script]);
    command
}

#[test]
fn peers_directory_comes_before_the_path() {
    let scratch = tempfile::tempdir().unwrap();
    let (peers, path) = (scratch.path().join("peers"), scratch.path().join("path"));
    install(&peers.join("bin"), "both", 0o755);
    install(&path, "both", 0o755);
    install(&path, "second", 0o755);
    install(&path, "data", 0o644);
    fs::create_dir(path.join("folder")).unwrap();
    let lookup = lookup(&[("PEERS_DIR", &peers), ("PATH", &path)]);
    assert_eq!(lookup.find("both"), Some(peers.join("bin/both")));
    assert_eq!(lookup.find("second"), Some(path.join("second")));
    for absent in ["data", "folder", "nothing"] {
        assert_eq!(lookup.find(absent), None, "{absent}");
    }
}

#[test]
fn peers_live_in_cargos_target_directory() {
    let scratch = tempfile::tempdir().unwrap();
    install(&scratch.path().join("peers/bin"), "only-here", 0o755);
    let found = lookup(&[("CARGO_TARGET_DIR", scratch.path())]).find("only-here");
    assert_eq!(found, Some(scratch.path().join("peers/bin/only-here")));

    // Without any variable: the directory of this test.
    let program = std::env::current_exe().unwrap();
    let directories = format!("{:?}", lookup(&[]));
    let target = program
        .ancestors()
        .find(|path| path.join("CACHEDIR.TAG").is_file());
    let expected = target.unwrap().join("peers/bin");
    assert!(
        directories.contains(expected.to_str().unwrap()),
        "{directories}"
    );
}

#[test]
fn required_is_a_variable_of_its_own() {
    for (value, required) in [("1", true), ("0", false), ("", false)] {
        let lookup = lookup(&[("REQUIRE_PEERS", Path::new(value))]);
        assert_eq!(lookup.required, required, "{value:?}");
    }
    assert!(!lookup(&[]).required);
}

/// Runs [`inner_test_without_its_peer`] in a separate test process, with output captured as usual.
async fn run_inner_test(required: &str) -> super::PeerOutput {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "peers::tests::inner_test_without_its_peer",
            "--test-threads=1",
        ])
        .env("TESTKIT_INNER", "1")
        .env("REQUIRE_PEERS", required)
        .env("PEERS_DIR", "/nowhere")
        .env_remove("PEER_SKIPS")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    output(command).await
}

#[test]
fn inner_test_without_its_peer() {
    // A no-op by default; the two tests below run it and check its output.
    if std::env::var_os("TESTKIT_INNER").is_some() {
        eprintln!("this is captured");
        assert_eq!(find("testkit-no-such-program"), None);
    }
}

#[tokio::test]
async fn missing_peer_is_skipped_loudly() {
    let run = run_inner_test("0").await.expect_success();
    let line = "SKIPPED (peer missing): testkit-no-such-program — run `cargo xtask peers`\n";
    assert_eq!(run.stderr, line);
    assert!(run.stdout.contains("1 passed"), "{}", run.stdout);
}

#[tokio::test]
async fn missing_peer_fails_where_peers_are_required() {
    let run = run_inner_test("1").await;
    assert!(!run.status.success());
    assert!(
        run.stdout.contains("peer missing: testkit-no-such-program"),
        "{}",
        run.stdout
    );
}

#[tokio::test]
async fn output_and_status_are_captured() {
    let run = output(shell("echo out; echo err >&2; exit 3")).await;
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert_eq!(run.status.code(), Some(3));
}

#[tokio::test]
#[should_panic(expected = "still pending after 50ms")]
async fn program_that_does_not_end_is_given_up() {
    output_within(Duration::from_millis(50), shell("sleep 1000")).await;
}

#[tokio::test]
#[should_panic(expected = "the last words")]
async fn program_that_ends_early_is_quoted() {
    let mut process = spawn(shell("echo the last words; exit 1"));
    process.wait_for_output("ready").await;
}

#[tokio::test]
async fn output_written_just_before_the_end_is_found() {
    for _ in 0..20 {
        let mut process = spawn(shell("echo ready"));
        process.wait_for_output("ready").await;
        let (status, output) = process.wait_with_output().await;
        assert!(status.success());
        assert_eq!(output, "ready\n");
    }
}

/// The letter of the kernel's process state; `None` when there is no such process.
fn state(id: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it, in parentheses, may contain any character.
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_running(id: u32) -> bool {
    !matches!(state(id), None | Some('Z' | 'X'))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn children_are_killed_with_the_program() {
    let mut process = spawn(shell("sleep 1000 & echo child=$!.; wait"));
    process.wait_for_output(".\n").await;
    let printed = process.output();
    let child: u32 = printed
        .trim_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .unwrap();
    let parent = process.id();
    assert!(is_running(child) && is_running(parent));
    drop(process);
    eventually("both are gone", || async {
        !is_running(child) && !is_running(parent)
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn program_can_be_frozen_and_thawed() {
    // Not SIGHUP: under `nohup` it is ignored from the start, and a shell cannot trap an ignored
    // signal.
    let script = "trap 'echo alive' TERM; echo up; while :; do sleep 1000 & wait; done";
    let mut process = spawn(shell(script));
    process.wait_for_output("up").await;
    process.suspend();
    eventually("it is stopped", || async {
        state(process.id()) == Some('T')
    })
    .await;
    process.terminate();
    process.resume();
    process.wait_for_output("alive").await;
    process.kill().await;
    assert_eq!(process.wait().await.code(), None);
}

#[tokio::test]
async fn free_port_can_be_bound() {
    let port = free_port();
    tokio::net::TcpListener::bind(("127.0.0.1", port))
        .await
        .unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_free_port_is_given_to_one_caller_and_never_assigned_by_the_kernel() {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let assigned = range.split_whitespace().next().unwrap();
    let assigned: u16 = assigned.parse().unwrap();
    // None of them is bound, so only the reservation keeps them apart.
    let ports: Vec<_> = (0..200).map(|_| free_port()).collect();
    let different: std::collections::BTreeSet<_> = ports.iter().collect();
    assert_eq!(different.len(), ports.len());
    if assigned > 13_000 {
        assert!(ports.iter().all(|port| *port < assigned), "{ports:?}");
    }
}
