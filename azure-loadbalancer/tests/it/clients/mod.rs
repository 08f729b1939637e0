//! The emulator under foreign clients: Microsoft's own libraries for Python and for Node. They come with
//! `cargo xtask peers azure azure-arm-network`; their scripts are in `python/` and `node/`. They also read
//! the reconciler's resources, so that both ends of the wire are verified independently.

mod reconciled;

use std::path::Path;
use std::time::Duration;

use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, EmulatorServer};
use testkit::peers;

/// The time limit of a script. It takes two seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(120);

async fn start(options: EmulatorOptions) -> EmulatorServer {
    let emulator = Emulator::new(options);
    emulator.with(|machine| machine.add_group("s", "rg", "westus"));
    let started = EmulatorServer::start("127.0.0.1:0", emulator).await;
    started.expect("nothing is in the way")
}

/// Runs a script, and returns its checks. `None` if there is no Python for it.
async fn run(script: &str, endpoint: &str) -> Option<Vec<String>> {
    run_with(script, endpoint, "").await
}

/// Runs a script with its expected values.
async fn run_with(script: &str, endpoint: &str, expected: &str) -> Option<Vec<String>> {
    let python = peers::find("azure-python")?;
    let home = tempfile::tempdir().expect("a directory can be made");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/python");
    let mut command = python.command();
    command
        .arg(scripts.join(script))
        // The environment does not influence the clients: no proxy, no credentials of a user.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("LC_ALL", "C.UTF-8")
        .env("NO_PROXY", "*")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint)
        .env("ENDPOINT", endpoint)
        .env("EXPECTED", expected);
    let done = peers::output_within(LIMIT, command).await.expect_success();
    Some(checked(&done.stdout))
}

/// Returns the names of the script's checks.
fn checked(output: &str) -> Vec<String> {
    let lines = output.lines();
    let checked = lines.filter_map(|line| line.strip_prefix("checked "));
    checked.map(str::to_owned).collect()
}

const NETWORK_CHECKS: [&str; 6] = [
    "public_addresses",
    "load_balancers",
    "etags",
    "pools",
    "security_groups",
    "deletions",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_library_finds_what_it_expects() {
    let server = start(EmulatorOptions::default()).await;
    if let Some(checked) = run("network_checks.py", &server.endpoint()).await {
        assert_eq!(checked, NETWORK_CHECKS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_follows_slow_writes_small_pages_and_odd_ids() {
    let options = EmulatorOptions::default()
        .operation_requests(5)
        .page_size(1)
        .id_casing_seed(1)
        .token("emulated-token");
    let server = start(options).await;
    if let Some(checked) = run("network_checks.py", &server.endpoint()).await {
        assert_eq!(checked, NETWORK_CHECKS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_identity_library_gets_a_token() {
    let server = start(EmulatorOptions::default().token("the-token")).await;
    if let Some(checked) = run("identity_checks.py", &server.endpoint()).await {
        assert_eq!(checked, ["managed_identity"]);
    }
}
