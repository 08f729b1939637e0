//! The programs of a fleet, each started with its file of the page.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use testkit::client::Connection;
use testkit::peers::{self, Peer, PeerProcess};
use testkit::time::eventually;

use crate::common::{ConfigFile, start};
use crate::fleet::page::file;

/// Returns an address on which no program listens.
pub(crate) fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], peers::free_port()))
}

/// Returns the response of an admin page with status 200.
async fn asked(admin: SocketAddr, path: &str) -> Option<String> {
    let mut client = Connection::http1(admin).await.ok()?;
    let answer = client.get(path).await.ok()?;
    (answer.status == 200).then(|| answer.text())
}

/// A replica of the control plane.
pub(crate) struct ControlPlane {
    program: Peer,
    process: PeerProcess,
    config: PathBuf,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    _folder: TempDir,
}

impl ControlPlane {
    /// The program, which cargo builds beside the gateway's.
    pub(crate) fn find() -> Option<Peer> {
        peers::built_beside(env!("CARGO_BIN_EXE_proxy-gateway"), "xds-control-plane")
    }

    /// Starts one, and waits until it serves.
    pub(crate) async fn start(program: &Peer, registry: &Path, consul: &str) -> Self {
        Self::start_with(program, registry, consul, "").await
    }

    /// Starts one with `more` at the end of its file.
    pub(crate) async fn start_with(
        program: &Peer,
        registry: &Path,
        consul: &str,
        more: &str,
    ) -> Self {
        let (address, admin) = (free(), free());
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let config = folder.path().join("control-plane.yaml");
        let text = more.to_owned()
            + &file(
                "control-plane.yaml",
                &[
                    ("0.0.0.0:1701", &address.to_string()),
                    ("127.0.0.1:1702", &admin.to_string()),
                    ("registry.yaml", &registry.display().to_string()),
                    ("http://127.0.0.1:8500", consul),
                ],
            );
        fs::write(&config, text).expect("the folder is ours");
        Self {
            process: launch(program, &config).await,
            program: program.clone(),
            config,
            address,
            admin,
            _folder: folder,
        }
    }

    /// Kills it (SIGKILL).
    pub(crate) async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Suspends it (SIGSTOP): its connections stay, the kernel still accepts new ones, but nothing responds.
    pub(crate) fn suspend(&self) {
        self.process.suspend();
    }

    /// Resumes it.
    pub(crate) fn resume(&self) {
        self.process.resume();
    }

    /// Sends SIGTERM, and waits for the end.
    pub(crate) async fn stop(&mut self) {
        self.process.terminate();
        let (status, said) = self.process.wait_with_output().await;
        assert!(status.success(), "{said}");
    }

    /// Restarts it at the same address, and waits until it serves.
    pub(crate) async fn restart(&mut self) {
        self.process = launch(&self.program, &self.config).await;
        let admin = self.admin;
        eventually("it is ready", async || {
            asked(admin, "/readyz").await.is_some()
        })
        .await;
    }

    /// Returns true if it serves resources that were kept from before its start.
    pub(crate) async fn serves_kept(&self) -> bool {
        let metrics = asked(self.admin, "/metrics").await.expect("it answers");
        match metrics
            .lines()
            .find_map(|line| line.strip_prefix("xds_serves_kept "))
        {
            Some("0.0") => false,
            Some("1.0") => true,
            other => panic!("{other:?} in {metrics}"),
        }
    }

    /// Returns the nodes that have a stream open.
    pub(crate) async fn nodes(&self) -> BTreeSet<String> {
        let text = asked(self.admin, "/api/v1/nodes").await;
        let said: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
        let nodes = said["nodes"].as_array().into_iter().flatten();
        nodes
            .filter(|node| {
                node["streams"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty())
            })
            .filter_map(|node| node["id"].as_str().map(str::to_owned))
            .collect()
    }

    /// Waits until all of these have a stream open here.
    pub(crate) async fn until_it_has(&self, nodes: &[&str]) {
        let wanted: BTreeSet<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        eventually(format!("{nodes:?} ask {}", self.address), async || {
            self.nodes().await == wanted
        })
        .await;
    }

    /// Returns the number of resources that clients have rejected.
    pub(crate) async fn rejections(&self) -> u64 {
        let metrics = asked(self.admin, "/metrics").await.expect("it answers");
        let lines = metrics.lines();
        lines
            .filter(|line| line.starts_with("xds_refusals_total"))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum()
    }
}

async fn launch(program: &Peer, config: &Path) -> PeerProcess {
    let mut command = program.command();
    command.arg("serve").arg("--config").arg(config);
    let mut process = peers::spawn(command);
    process.wait_for_output("new configuration is served").await;
    process
}

/// A gateway that follows control planes.
pub(crate) struct Gateway {
    process: PeerProcess,
    file: ConfigFile,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Gateway {
    pub(crate) async fn start(id: &str, planes: [SocketAddr; 2]) -> Self {
        let (address, admin) = (free(), free());
        let config = ConfigFile::new("{}");
        let beside = |name: &str| config.folder().join(name).display().to_string();
        config.write(&file(
            "appsettings.json",
            &[
                ("10.0.0.11:1701", &planes[0].to_string()),
                ("10.0.0.12:1701", &planes[1].to_string()),
                ("gateway-1", id),
                ("/var/lib/proxy/xds.json", &beside("xds.json")),
                ("0.0.0.0:8080", &address.to_string()),
                ("127.0.0.1:9901", &admin.to_string()),
                ("/run/proxy/handover.sock", &beside("handover.sock")),
                ("10s", "4s"),
            ],
        ));
        Self {
            process: run(&config).await,
            file: config,
            address,
            admin,
        }
    }

    /// Sends SIGTERM, and waits for the end.
    pub(crate) async fn stop(&mut self) {
        self.process.terminate();
        let (status, said) = self.process.wait_with_output().await;
        assert!(status.success(), "{said}");
        assert!(
            said.contains("every request in flight was answered"),
            "{said}"
        );
    }

    /// Restarts it at the same address, and waits until it serves.
    pub(crate) async fn restart(&mut self) {
        self.process = run(&self.file).await;
    }

    /// Replaces the process by a second one, and waits for the end of the first.
    pub(crate) async fn replace(&mut self) {
        let successor = run(&self.file).await;
        let (status, said) = self.process.wait_with_output().await;
        assert!(status.success(), "{said}");
        assert!(
            said.contains("every request in flight was answered"),
            "{said}"
        );
        self.process = successor;
    }

    /// Returns the id of its process, which changes when it is replaced.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

async fn run(file: &ConfigFile) -> PeerProcess {
    start(&["run", "--config", &file.argument()], "a second Ctrl-C").await
}

/// Returns an address as Envoy's files write it.
pub(crate) fn at(address: SocketAddr) -> String {
    format!("address: {}, port_value: {}", address.ip(), address.port())
}

/// A real Envoy.
pub(crate) struct Envoy {
    process: PeerProcess,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    _folder: TempDir,
}

impl Envoy {
    pub(crate) fn find() -> Option<Peer> {
        peers::find("envoy")
    }

    pub(crate) async fn start(program: &Peer, id: &str, planes: [SocketAddr; 2]) -> Self {
        let address = free();
        let changes = [
            ("envoy-1", id.to_owned()),
            ("address: 10.0.0.11, port_value: 1701", at(planes[0])),
            ("address: 10.0.0.12, port_value: 1701", at(planes[1])),
            ("address: 0.0.0.0, port_value: 80", at(address)),
        ];
        Self::launch(program, "envoy.yaml", address, &changes).await
    }

    /// Starts one with a file of the page, and waits until it is ready.
    pub(crate) async fn launch(
        program: &Peer,
        name: &str,
        address: SocketAddr,
        changes: &[(&str, String)],
    ) -> Self {
        let admin = free();
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let path = folder.path().join("envoy.yaml");
        let own = at(admin);
        let mut all = vec![("address: 127.0.0.1, port_value: 8001", own.as_str())];
        all.extend(changes.iter().map(|(from, to)| (*from, to.as_str())));
        fs::write(&path, file(name, &all)).expect("the folder is ours");
        let mut command = program.command();
        command.arg("-c").arg(&path);
        // Several run on one machine, so each is small.
        command.args([
            "--use-dynamic-base-id",
            "--concurrency",
            "1",
            "-l",
            "warning",
        ]);
        let envoy = Self {
            process: peers::spawn(command),
            address,
            admin,
            _folder: folder,
        };
        eventually("Envoy is ready", async || {
            asked(admin, "/ready").await.is_some()
        })
        .await;
        envoy
    }

    /// Returns a counter or gauge. `None` if there is none of that name.
    pub(crate) async fn stat(&self, name: &str) -> Option<u64> {
        let text = asked(self.admin, &format!("/stats?filter=^{name}$")).await?;
        let (_, number) = text.trim().rsplit_once(": ")?;
        number.parse().ok()
    }

    /// Returns its output, for a failing test.
    pub(crate) fn output(&self) -> String {
        self.process.output()
    }
}
