//! The program as a service: health checks, sockets and messages of a service manager, configuration of
//! Kubernetes.

#![cfg(unix)]

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{ConfigFile, address_after, command, output, spawn, start};
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::peers::{self, PeerProcess};
use testkit::time::eventually;
use tokio::net::UnixDatagram;
use tokio::process::Command;

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

/// A guard against hanging.
const LIMIT: Duration = Duration::from_secs(60);

fn config(listen: SocketAddr, admin: SocketAddr, origin: SocketAddr) -> String {
    format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "{listen}" }} }},
            "Admin": {{ "Address": "{admin}" }},
            "Server": {{ "ReadinessDelay": "1h" }},
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://{origin}/" }} }} }} }}
            }}
        }}"#
    )
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], peers::free_port()))
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut client = Connection::http1(address).await.expect("it listens");
    client.get(path).await.expect("it answers").text()
}

/// The program, started with a listening socket as systemd does it: as file descriptor 3, announced to its
/// own process id.
fn activated(socket: TcpListener, file: &ConfigFile) -> PeerProcess {
    let script = r#"exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@""#;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, env!("CARGO_BIN_EXE_proxy-gateway")])
        .args(["run", "--config", &file.argument()])
        .env_remove("RUST_LOG")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    peers::spawn(shell)
}

#[tokio::test]
async fn health_succeeds_only_while_the_instance_is_ready() {
    let origin = Origin::named("origin");
    let file = ConfigFile::new(&config(any_port(), any_port(), origin.addr()));
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let url = format!("http://{admin}/readyz");
    let healthy = output(&["health", "--url", &url]).await.expect_success();
    assert_eq!(healthy.stdout, "ready\n");

    process.terminate();
    eventually("a draining instance is not ready", async || {
        let ended = output(&["health", "--url", &url]).await;
        ended.status.code() == Some(1) && ended.stderr.contains("status 503")
    })
    .await;
}

#[tokio::test]
async fn health_fails_without_an_answer() {
    let silent = TcpListener::bind(any_port()).unwrap();
    let address = silent.local_addr().unwrap();
    let url = format!("http://{address}/readyz");
    let ended = output(&["health", "--url", &url, "--timeout", "1"]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("timed out"), "{}", ended.stderr);

    drop(silent);
    let ended = output(&["health", "--url", &url]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("refused"), "{}", ended.stderr);

    let ended = output(&["health", "--url", "https://127.0.0.1/readyz"]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("http://"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_socket_of_the_service_manager_is_served() {
    let origin = Origin::named("origin");
    let socket = TcpListener::bind(any_port()).unwrap();
    let address = socket.local_addr().unwrap();
    let file = ConfigFile::new(&config(address, any_port(), origin.addr()));
    // Kept open here, so that the address would be in use if the program bound it.
    let kept = socket.try_clone().unwrap();
    let mut process = activated(socket, &file);
    process.wait_for_output(READY).await;
    assert_eq!(get(address, "/").await, "origin");
    drop(kept);
}

#[tokio::test]
async fn an_admin_socket_of_the_service_manager_is_served() {
    let origin = Origin::named("origin");
    let socket = TcpListener::bind(any_port()).unwrap();
    let admin = socket.local_addr().unwrap();
    let file = ConfigFile::new(&config(any_port(), admin, origin.addr()));
    let mut process = activated(socket, &file);
    process.wait_for_output(READY).await;
    assert_eq!(get(admin, "/readyz").await, "ready\n");
}

#[tokio::test]
async fn a_socket_that_no_listener_has_ends_the_start() {
    let socket = TcpListener::bind(any_port()).unwrap();
    let address = socket.local_addr().unwrap();
    let file = ConfigFile::new(&config(any_port(), any_port(), free_address()));
    let mut process = activated(socket, &file);
    let (status, output) = process.wait_with_output().await;
    assert_eq!(status.code(), Some(1));
    assert!(output.contains(&address.to_string()), "{output}");
}

#[tokio::test]
async fn systemd_passes_its_sockets() {
    let Some(systemd) = peers::find("systemd-socket-activate") else {
        return;
    };
    let origin = Origin::named("origin");
    let (web, admin) = (free_address(), free_address());
    let file = ConfigFile::new(&config(web, admin, origin.addr()));
    let mut command = systemd.command();
    command
        .args(["--listen", &web.to_string(), "--listen", &admin.to_string()])
        .args([env!("CARGO_BIN_EXE_proxy-gateway"), "run", "--config"])
        .arg(file.path());
    let mut process = peers::spawn(command);
    process
        .wait_for_output(&format!("Listening on {admin}"))
        .await;
    // The first client starts the program, and is served by it.
    assert_eq!(get(web, "/").await, "origin");
    assert_eq!(get(admin, "/readyz").await, "ready\n");
}

#[tokio::test]
async fn the_service_manager_is_notified() {
    let origin = Origin::named("origin");
    let file = ConfigFile::new(&config(any_port(), any_port(), origin.addr()));
    let place = file.folder().join("notify.sock");
    let socket = UnixDatagram::bind(&place).unwrap();
    let mut run = command(&["run", "--config", &file.argument()]);
    run.env("NOTIFY_SOCKET", &place);
    let process = peers::spawn(run);
    assert_eq!(next_message(&socket).await, "READY=1");
    process.terminate();
    assert_eq!(next_message(&socket).await, "STOPPING=1");
}

async fn next_message(socket: &UnixDatagram) -> String {
    let mut message = [0; 64];
    let received = tokio::time::timeout(LIMIT, socket.recv(&mut message)).await;
    let bytes = received
        .expect("there is a message")
        .expect("it can be received");
    String::from_utf8_lossy(&message[..bytes]).into_owned()
}

/// Kubernetes updates a mounted ConfigMap by swapping the link `..data`; the files beside it link through it.
#[tokio::test]
async fn an_updated_config_map_takes_effect() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let mount = tempfile::tempdir().unwrap();
    let mount = mount.path();
    publish(mount, "..1", &config(any_port(), any_port(), blue.addr()));
    symlink("..data/appsettings.json", mount.join("appsettings.json")).unwrap();
    let path = mount.join("appsettings.json").display().to_string();
    let mut process = spawn(&["run", "--config", &path]);
    process.wait_for_output(READY).await;
    let address = address_after(&process.output(), "listening on http://");
    assert_eq!(get(address, "/").await, "blue");

    publish(mount, "..2", &config(any_port(), any_port(), green.addr()));
    std::fs::remove_dir_all(mount.join("..1")).unwrap();
    eventually("the new version serves", async || {
        get(address, "/").await == "green"
    })
    .await;
}

/// Writes a version of the ConfigMap, and lets `..data` link to it with a rename.
fn publish(mount: &Path, version: &str, text: &str) {
    std::fs::create_dir(mount.join(version)).expect("the folder is ours");
    std::fs::write(mount.join(version).join("appsettings.json"), text).expect("the folder is ours");
    symlink(version, mount.join("..data_tmp")).expect("the folder is ours");
    std::fs::rename(mount.join("..data_tmp"), mount.join("..data")).expect("the folder is ours");
}

#[tokio::test]
async fn the_configurations_of_packaging_have_no_problem() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    for path in ["image", "compose/gateway", "kubernetes"] {
        let file = packaging.join(path).join("appsettings.json");
        let file = file.display().to_string();
        let checked = output(&["check", "--format", "json", "--config", &file]).await;
        let report = checked.expect_success().stdout;
        let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
        // A test beside this one may listen on the usual address of the admin page.
        let problems = report["problems"].as_array().expect("a list");
        let others = problems
            .iter()
            .any(|problem| problem["code"] != "unusable_address");
        assert!(!others, "{file}: {report}");
    }
}
