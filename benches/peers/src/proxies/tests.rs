//! Tests of the rendered configurations, also against the programs themselves.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use super::*;
use crate::tls;

/// Calls `test` with the settings of a proxy.
fn with_setup(large_bodies: bool, test: impl FnOnce(&Setup<'_>)) {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, _) = tls::prepare(directory.path()).unwrap();
    let origins =
        [5001, 5002, 5003, 5004].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    test(&Setup {
        directory: directory.path(),
        ports: Ports::choose().unwrap(),
        origins: &origins,
        http2_origins: false,
        workers: 1,
        large_bodies,
        open_files: 20_000,
        certificate: &certificate,
    });
}

/// Finds a proxy that `cargo xtask peers NAME` has fetched, or one on the `PATH`. These proxies are
/// fetched only by name: a test without its proxy prints a message and ends.
fn find(kind: Kind) -> Option<PathBuf> {
    let set = std::env::var_os("PEERS_DIR").map(PathBuf::from);
    let this = std::env::current_exe().unwrap();
    let fetched = this.ancestors().map(|directory| directory.join("peers"));
    let places = set.into_iter().chain(fetched).map(|peers| Programs {
        gateway: PathBuf::new(),
        gateway_plain: PathBuf::new(),
        peers,
        competitors: PathBuf::new(),
    });
    let found = places
        .into_iter()
        .find_map(|programs| programs.find(kind).ok());
    if found.is_none() {
        println!(
            "left out: there is no {0}; `cargo xtask peers {0}` fetches it",
            kind.name()
        );
    }
    found
}

/// Checks the written configuration with the program.
#[track_caller]
fn accepts(kind: Kind) {
    let Some(program) = find(kind) else {
        return;
    };
    for large_bodies in [false, true] {
        with_setup(large_bodies, |setup| {
            let command = kind.check(&program, setup).unwrap();
            let output = command
                .expect("it can check")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let said =
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(
                output.status.success(),
                "{kind:?}, large bodies {large_bodies}: {said}"
            );
        });
    }
}

#[test]
fn nginx_accepts_its_configuration() {
    accepts(Kind::Nginx);
}

#[test]
fn haproxy_accepts_its_configuration() {
    accepts(Kind::Haproxy);
}

#[test]
fn envoy_accepts_its_configuration() {
    accepts(Kind::Envoy);
}

#[test]
fn caddy_accepts_its_configuration() {
    accepts(Kind::Caddy);
}

#[test]
fn every_configuration_names_every_origin_and_port() {
    with_setup(false, |setup| {
        for kind in Kind::ALL {
            let command = kind.command(Path::new("program"), setup).unwrap();
            let mut told: String = command
                .get_args()
                .map(|argument| argument.to_string_lossy() + "\n")
                .collect();
            for entry in fs::read_dir(setup.directory).unwrap() {
                let path = entry.unwrap().path();
                if told.contains(&*path.to_string_lossy()) {
                    told.push_str(&fs::read_to_string(path).unwrap());
                }
            }
            for origin in setup.origins {
                assert!(
                    told.contains(&origin.to_string()) || told.contains(&origin.port().to_string()),
                    "{kind:?}: {told}"
                );
            }
            for protocol in [Protocol::Http1, Protocol::H2c, Protocol::Tls] {
                let port = kind.address(setup.ports, protocol).port().to_string();
                assert!(
                    !kind.speaks(protocol) || told.contains(&port),
                    "{kind:?} {protocol:?}: {told}"
                );
            }
        }
    });
}

#[test]
fn settings_for_large_bodies_are_there_only_for_them() {
    for (large, expected) in [(false, [false, false]), (true, [true, true])] {
        with_setup(large, |setup| {
            let found = [
                nginx::configuration(setup).contains("proxy_request_buffering off"),
                haproxy::configuration(setup).contains("option splice-response"),
            ];
            assert_eq!(found, expected);
        });
    }
}

#[test]
fn a_version_is_found_in_what_programs_say_of_themselves() {
    for (line, version) in [
        ("nginx version: nginx/1.22.1", "1.22.1"),
        (
            "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/",
            "2.6.12-1+deb12u4",
        ),
        (
            "envoy  version: 9e55807/1.40.0/Clean/RELEASE/BoringSSL",
            "1.40.0",
        ),
        ("v2.11.7 h1:yj0Y4fYZ=", "2.11.7"),
        ("proxy-gateway 0.1.0", "0.1.0"),
        ("nothing", "nothing"),
    ] {
        assert_eq!(version_of_line(line), version);
    }
}

#[test]
fn a_program_that_is_missing_is_told_how_to_get() {
    let directory = tempfile::tempdir().unwrap();
    let programs = Programs {
        gateway: directory.path().join("gateway"),
        gateway_plain: directory.path().join("plain"),
        peers: directory.path().to_owned(),
        competitors: directory.path().to_owned(),
    };
    assert!(programs.find(Kind::Relay).is_ok());
    assert_eq!(
        programs.find(Kind::Gateway).unwrap_err(),
        "its program is missing"
    );
    assert!(
        programs
            .find(Kind::Pingora)
            .unwrap_err()
            .contains("--peers pingora")
    );
    fs::write(directory.path().join("competitor-pingora"), "").unwrap();
    assert!(programs.find(Kind::Pingora).is_ok());
}

#[test]
fn competitors_have_the_version_of_their_lock_files() {
    for kind in Kind::ALL {
        let version = competitors::version(kind);
        assert_eq!(
            version.is_some(),
            kind.source() == Source::Competitor,
            "{kind:?}"
        );
        assert!(
            version.is_none_or(|version| version.contains('.')),
            "{version:?}"
        );
    }
}
