//! The emulator under foreign clients: the vendor's command line `sfctl` and the Python library
//! `azure-servicefabric`. The scripts are in `python/`; their coverage is in `docs/conformance.md`.
//!
//! Both come with `cargo xtask peers sfctl`. `ONLY=words` in the environment keeps the checks whose name has
//! these words.
#![cfg(feature = "gateway")]

mod documented;
mod script;

use std::path::Path;
use std::time::Duration;

use servicefabric_emulator::gateway::{AadMetadata, Builder, Emulator, Role, TlsOptions};
use servicefabric_emulator::topology::Topology;
use testkit::certs::{CertificateAuthority, Identity};

use self::script::Clients;

/// The virtual time that a cluster gets to place and open everything.
const SETTLED: Duration = Duration::from_secs(10 * 60);

/// Returns a cluster with everything that the clients query.
fn shop() -> Topology {
    Topology::from_toml(include_str!("shop.toml")).expect("the file describes a cluster")
}

/// Starts a cluster in which only scripts move time, and lets it settle.
async fn start(builder: Builder) -> Emulator {
    let started = builder.listen("127.0.0.1:0").manual_time().start().await;
    let emulator = started.expect("nothing is in the way");
    emulator.advance(SETTLED);
    emulator
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_can_do_what_the_table_says() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let emulator = start(Emulator::builder(shop())).await;
    let called = clients
        .run("program_checks.py", &emulator.endpoint(), &[])
        .await;
    documented::compare("sfctl", &called);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_can_do_what_the_table_says() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let emulator = start(Emulator::builder(shop())).await;
    let called = clients
        .run("library_checks.py", &emulator.endpoint(), &[])
        .await;
    documented::compare("azure-servicefabric", &called);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_a_cluster_that_the_library_can_walk() {
    let Some(clients) = Clients::find() else {
        return;
    };
    for path in examples() {
        println!("walking {}", path.display());
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let topology = Topology::from_toml(&text).expect("it describes a cluster");
        let emulator = start(Emulator::builder(topology)).await;
        clients
            .run("walk_checks.py", &emulator.endpoint(), &[])
            .await;
    }
}

#[cfg(feature = "program")]
#[tokio::test]
async fn the_program_is_a_cluster_for_the_library() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_servicefabric-emulator"));
    program
        .args(["serve", "--listen", "127.0.0.1:0", "--manual-time"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut program = testkit::peers::spawn(program);
    program.wait_for_output("ready at http").await;
    let said = program.output();
    let (_, place) = said.split_once("ready at ").expect("it was waited for");
    let endpoint = place.lines().next().expect("the rest of a line");
    clients.run("walk_checks.py", endpoint.trim(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_pages_lead_to_everything() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let emulator = start(Emulator::builder(shop()).page_size(1)).await;
    clients
        .run("walk_checks.py", &emulator.endpoint(), &[])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_clients_show_their_certificates() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let servers = CertificateAuthority::new("servers");
    let admins = CertificateAuthority::new("admins");
    let readers = CertificateAuthority::new("readers");
    let strangers = CertificateAuthority::new("strangers");
    let server = servers.issue(&["localhost", "127.0.0.1"]);
    let tls = TlsOptions::new(server.certificate_pem(), server.key_pem())
        .admins(admins.certificate_pem())
        .readers(readers.certificate_pem());
    let emulator = start(Emulator::builder(shop()).tls(tls)).await;

    let place = tempfile::tempdir().unwrap();
    let authority = place.path().join("authority.pem");
    std::fs::write(&authority, servers.certificate_pem()).unwrap();
    // This variable names the trusted authorities: this version ignores its own options for that.
    let mut variables = vec![
        ("AUTHORITY", authority.clone()),
        ("REQUESTS_CA_BUNDLE", authority),
    ];
    for (name, signed_by) in [
        ("ADMIN", &admins),
        ("READER", &readers),
        ("STRANGER", &strangers),
    ] {
        let directory = place.path().join(name);
        write_client(&directory, &signed_by.issue_client(name));
        variables.push((name, directory));
    }
    clients
        .run("certificate_checks.py", &emulator.endpoint(), &variables)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_shows_its_token() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let metadata = AadMetadata {
        authority: "https://login.example/tenant".to_owned(),
        client: "client-id".to_owned(),
        cluster: "cluster-id".to_owned(),
        login: "https://login.example".to_owned(),
        redirect: "urn:redirect".to_owned(),
        tenant: "tenant".to_owned(),
    };
    let builder = Emulator::builder(shop())
        .bearer("admin", Role::Admin)
        .bearer("reader", Role::Reader)
        .aad_metadata(metadata);
    let emulator = start(builder).await;
    clients
        .run("token_checks.py", &emulator.endpoint(), &[])
        .await;
}

/// Returns the topologies of the crate, by name.
fn examples() -> Vec<std::path::PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies");
    let mut found: Vec<_> = std::fs::read_dir(&directory)
        .expect("the crate comes with examples")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} is empty", directory.display());
    found
}

/// Writes the files of a client, separate and combined.
fn write_client(directory: &Path, client: &Identity) {
    std::fs::create_dir(directory).expect("the name is free");
    let (certificate, key) = (client.certificate_pem(), client.key_pem());
    std::fs::write(directory.join("certificate.pem"), certificate).expect("there is room");
    std::fs::write(directory.join("key.pem"), key).expect("there is room");
    std::fs::write(directory.join("both.pem"), format!("{certificate}{key}"))
        .expect("there is room");
}
