//! `run`: requests, reload, drain, and errors at the start.

use crate::common::{ConfigFile, address_after, output, start};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::client::{Connection, Load};
use testkit::origin::Origin;
use testkit::peers::{self, PeerProcess};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

pub(crate) fn config(destination: SocketAddr, more: &str) -> String {
    format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{
                "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://{destination}/" }} }} }} }}
            }}
            {more}
        }}"#
    )
}

pub(crate) async fn run(file: &ConfigFile) -> (PeerProcess, SocketAddr) {
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on http://");
    (process, address)
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut client = Connection::http1(address).await.expect("it listens");
    client.get(path).await.expect("it answers").text()
}

#[tokio::test]
async fn a_changed_file_takes_effect_without_losing_a_request() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (process, address) = run(&file).await;
    assert_eq!(get(address, "/").await, "blue");
    let said = process.output();
    assert!(said.contains("serving 1 route to 1 cluster; "), "{said}");
    let load = Load::new(address).connections(4).start();
    load.wait_for_finished(20).await;

    file.write(&config(green.addr(), ""));
    eventually("the new destination answers", async || {
        get(address, "/").await == "green"
    })
    .await;
    load.wait_for_finished(load_so_far(&green) + 20).await;
    load.stop().await.assert_no_failure();
    assert!(!process.output().contains("cannot be used"));
}

fn load_so_far(origin: &Origin) -> u64 {
    origin.traffic().requests()
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_says_what_is_wrong() {
    let blue = Origin::named("blue");
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (mut process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");

    file.write(r#"{ "ReverseProxy": { "Routes": { "r": { "Match": { "Paht": "/x" } } } } }"#);
    process.wait_for_output("Paht").await;
    assert_eq!(get(address, "/").await, "blue");
    eventually("the problems name the key", async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("/ReverseProxy/Routes/r/Match/Paht")
    })
    .await;
    assert_eq!(get(admin, "/readyz").await, "ready\n");
    eventually("the rejection is counted", async || {
        let metrics = get(admin, "/metrics").await;
        metrics.contains("proxy_config_reload_total{result=\"failure\"} 1\n")
    })
    .await;
}

/// Errors that the start rejects are rejected while the program runs, in each section.
#[tokio::test]
async fn an_error_in_any_section_rejects_the_file() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (mut process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let filter = r#""Telemetry": { "LogFilter": "info,=" }"#;
    for (more, place) in [
        (r#""Server": { "Wrokers": 1 }"#, "/Server/Wrokers"),
        (filter, "/Telemetry/LogFilter"),
        (
            r#""Server": { "Zone": "a" }, "Server:Zone:x": "b""#,
            "/Server/Zone",
        ),
    ] {
        file.write(&config(green.addr(), &format!(", {more}")));
        process.wait_for_output(place).await;
        assert_eq!(get(address, "/").await, "blue", "{more}");
        eventually("the problems name it", async || {
            get(admin, "/api/v1/problems").await.contains(place)
        })
        .await;
        let checked = output(&["check", "--config", &file.argument()]).await;
        assert!(checked.stdout.contains(place), "{}", checked.stdout);
        assert_eq!(checked.status.code(), Some(1), "{more}");
    }
    eventually("each rejection is counted", async || {
        let metrics = get(admin, "/metrics").await;
        metrics.contains("proxy_config_reload_total{result=\"failure\"} 3")
    })
    .await;
    file.write(&config(green.addr(), ""));
    eventually("the file is right again", async || {
        get(address, "/").await == "green"
    })
    .await;
}

#[tokio::test]
async fn check_and_run_reject_the_same() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let authority = CertificateAuthority::new("clients");
    let files = authority.issue(&["a.example"]).write_pem();
    let tls = format!(
        r#""Tls": {{ "Certificates": [{{ "CertificateFile": {certificate:?}, "KeyFile": {key:?} }}],
            "ClientCertificateMode": "RequireCertificate", "ClientCaFile": {certificate:?} }}"#,
        certificate = files.certificate(),
        key = files.key(),
    );
    let listeners = |one: &str, more: &str, admin: &str| {
        format!(
            r#"{{ "Listeners": {{ "a": {{ "Address": "{one}" }}, "b": {{ "Address": "127.0.0.1:{port}" {more} }} }},
                 "Admin": {{ "Address": "{admin}" }}, "ReverseProxy": {{}} }}"#
        )
    };
    let (any, own) = (format!("0.0.0.0:{port}"), format!("127.0.0.1:{port}"));
    for (text, place) in [
        (listeners(&any, "", "127.0.0.1:0"), "/Listeners/b/Address"),
        (
            listeners(&format!("[::]:{port}"), "", "127.0.0.1:0"),
            "/Listeners/b/Address",
        ),
        (listeners("127.0.0.1:0", "", &any), "/Listeners/b/Address"),
        (listeners("127.0.0.1:0", "", &own), "/Listeners/b/Address"),
        // A server's certificate in place of the authority's.
        (
            listeners("127.0.0.1:0", &format!(", {tls}"), "127.0.0.1:0"),
            "/Listeners/b/Tls/ClientCaFile",
        ),
    ] {
        let file = ConfigFile::new(&text);
        let checked = output(&["check", "--here", "--config", &file.argument()]).await;
        assert_eq!(checked.status.code(), Some(1), "{text}");
        assert!(
            checked.stdout.contains(&format!("error at {place}")),
            "{}",
            checked.stdout
        );
        let ended = output(&["run", "--config", &file.argument()]).await;
        assert_eq!(ended.status.code(), Some(1), "{text}");
        assert!(
            ended.stderr.contains(&format!("error at {place}")),
            "{}",
            ended.stderr
        );
    }
}

/// The files of a running program that break, and settings that wait for a restart, are listed until they are right.
#[tokio::test]
async fn files_that_break_while_the_program_runs_are_listed() {
    let origin = Origin::named("blue");
    let authority = CertificateAuthority::new("clients");
    let files = authority.issue(&["a.example"]).write_pem();
    let clients = files.add_authority(&authority);
    let keys = files.directory().join("affinity");
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    std::fs::write(&keys, key).unwrap();
    let text = |key_file: &Path| {
        let text = config(
            origin.addr(),
            &format!(r#", "Server": {{ "AffinityKeysFile": {keys:?} }}"#),
        );
        let tls = format!(
            r#""127.0.0.1:0", "Tls": {{ "Certificates": [{{ "CertificateFile": {:?}, "KeyFile": {key_file:?} }}],
                "ClientCertificateMode": "AllowCertificate", "ClientCaFile": {clients:?} }}"#,
            files.certificate(),
        );
        text.replacen(r#""127.0.0.1:0""#, &tls, 1)
    };
    let file = ConfigFile::new(&text(files.key()));
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let listed = async |places: &[&str]| {
        let problems = get(admin, "/api/v1/problems").await;
        let codes = [
            "unusable_certificate",
            "unusable_affinity_keys",
            "restart_needed",
        ];
        let found: Vec<_> = codes
            .into_iter()
            .filter(|code| problems.contains(code))
            .collect();
        found == places
    };
    assert!(listed(&[]).await);

    let certificate = std::fs::read(files.certificate()).unwrap();
    std::fs::write(files.certificate(), "no certificate").unwrap();
    let trusted = std::fs::read(&clients).unwrap();
    std::fs::write(&clients, &certificate).unwrap();
    std::fs::write(&keys, "short").unwrap();
    file.write(&text(Path::new("/no/key.pem")));
    eventually("all are listed", async || {
        let problems = get(admin, "/api/v1/problems").await;
        listed(&[
            "unusable_certificate",
            "unusable_affinity_keys",
            "restart_needed",
        ])
        .await
            && problems.contains("/Listeners/web/Tls/Certificates\"")
            && problems.contains("/Listeners/web/Tls/ClientCaFile\"")
            && problems.contains("/no/key.pem")
    })
    .await;
    std::fs::write(files.certificate(), &certificate).unwrap();
    std::fs::write(&clients, &trusted).unwrap();
    std::fs::write(&keys, key).unwrap();
    file.write(&text(files.key()));
    eventually("none is listed", async || listed(&[]).await).await;
}

#[tokio::test]
async fn a_wrong_configuration_ends_the_start_with_everything_that_is_wrong() {
    let file = ConfigFile::new(
        r#"{ "ReverseProxy": { "Routes": { "r": { "Match": {} } }, "Clusters": { "c": { "Destinations": { "d": { "Address": "" } } } } } }"#,
    );
    let ended = output(&["run", "--config", &file.argument()]).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("/ReverseProxy/Routes/r"),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stderr
            .contains("/ReverseProxy/Clusters/c/Destinations/d"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("proxy-gateway check"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn a_port_in_use_is_a_clear_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let blue = Origin::named("blue");
    for section in ["Listeners", "Admin"] {
        let text = config(blue.addr(), "");
        let text = match section {
            "Listeners" => text.replacen("127.0.0.1:0", &format!("127.0.0.1:{port}"), 1),
            _ => text.replace(
                r#""Admin": { "Address": "127.0.0.1:0" }"#,
                &format!(r#""Admin": {{ "Address": "127.0.0.1:{port}" }}"#),
            ),
        };
        let file = ConfigFile::new(&text);
        let ended = output(&["run", "--config", &file.argument()]).await;
        assert_eq!(ended.status.code(), Some(1), "{section}");
        let expected = format!("127.0.0.1:{port}: another program listens there");
        assert!(
            ended.stderr.contains(&expected),
            "{section}: {}",
            ended.stderr
        );
        let key = match section {
            "Listeners" => "`Listeners.web.Address`",
            _ => "`Admin.Address`",
        };
        assert!(ended.stderr.contains(key), "{section}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn sigterm_lets_requests_in_flight_end() {
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let released = std::sync::Arc::new(tokio::sync::Mutex::new(Some(released)));
    let slow = RawOrigin::script(move |mut connection| {
        let released = std::sync::Arc::clone(&released);
        async move {
            connection.read_request().await?;
            if let Some(released) = released.lock().await.take() {
                let _ = released.await;
            }
            connection
                .write_all("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
                .await
        }
    });
    let file = ConfigFile::new(&config(slow.addr(), ""));
    let (mut process, address) = run(&file).await;
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await
        .unwrap();
    slow.traffic().wait_for_requests(1).await;

    process.terminate();
    process.wait_for_output("stopping").await;
    eventually("the port is closed", async || {
        RawClient::connect(address).await.is_err()
    })
    .await;
    release.send(()).unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.text(), "done");
    assert!(process.wait().await.success());
    process
        .wait_for_output("every request in flight was answered")
        .await;
}

#[tokio::test]
async fn load_balancers_are_told_before_the_port_closes() {
    let blue = Origin::named("blue");
    let file = ConfigFile::new(&config(
        blue.addr(),
        r#", "Server": { "ReadinessDelay": "1h" }"#,
    ));
    let (mut process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    process.terminate();
    eventually("it is not ready", async || {
        get(admin, "/readyz").await.contains("stopping")
    })
    .await;
    assert_eq!(
        get(address, "/").await,
        "blue",
        "new connections are still taken"
    );
    process.terminate();
    process.wait().await;
}

#[tokio::test]
async fn a_hang_up_ends_nothing_and_reads_the_configuration_again() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (mut process, address) = run(&file).await;
    let filter = r#", "Telemetry": { "LogFilter": "info,proxy::request=debug" }"#;
    file.write(&config(green.addr(), filter));
    process.hang_up();
    process
        .wait_for_output("SIGHUP: the configuration is read again")
        .await;
    process.wait_for_output("the log filter has changed").await;
    eventually("the new destination serves", async || {
        get(address, "/").await == "green"
    })
    .await;
}

#[tokio::test]
async fn a_change_that_needs_a_restart_is_said() {
    let blue = Origin::named("blue");
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (mut process, address) = run(&file).await;
    file.write(&config(blue.addr(), r#", "Server": { "Workers": 1 }"#));
    process
        .wait_for_output("takes effect with the next start")
        .await;
    assert_eq!(get(address, "/").await, "blue");
}

#[tokio::test]
async fn the_drain_ends_at_its_deadline() {
    let silent = testkit::faults::never_answers();
    let file = ConfigFile::new(&config(
        silent.addr(),
        r#", "Server": { "DrainTimeout": "50ms" }"#,
    ));
    let (mut process, address) = run(&file).await;
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await
        .unwrap();
    silent.traffic().wait_for_connections(1).await;
    process.terminate();
    assert!(process.wait().await.success());
    process.wait_for_output("1 connections were cut").await;
}

#[tokio::test]
async fn a_second_ctrl_c_stops_at_once() {
    let silent = testkit::faults::never_answers();
    let file = ConfigFile::new(&config(
        silent.addr(),
        r#", "Server": { "DrainTimeout": "1h" }"#,
    ));
    let (mut process, address) = run(&file).await;
    let mut client = RawClient::connect(address).await.unwrap();
    client
        .write_all("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .await
        .unwrap();
    silent.traffic().wait_for_connections(1).await;
    process.interrupt();
    process.wait_for_output("stopping").await;
    process.interrupt();
    process.wait().await;
    process.wait_for_output("stopped at once").await;
}

#[tokio::test]
async fn tls_listeners_follow_their_certificate_files() {
    let blue = Origin::named("blue");
    let ca = CertificateAuthority::new("one");
    let pem = ca.issue(&["a.example"]).write_pem();
    let tls = format!(
        r#"{{ "Address": "127.0.0.1:0", "Tls": {{ "Certificates": [
            {{ "CertificateFile": {:?}, "KeyFile": {:?} }} ] }} }}"#,
        pem.certificate(),
        pem.key()
    );
    let text = config(blue.addr(), "").replacen(r#"{ "Address": "127.0.0.1:0" }"#, &tls, 1);
    let file = ConfigFile::new(&text);
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on https://");
    let by = async |ca: &CertificateAuthority| {
        Connection::tls(address, "a.example", ca.client_config(Alpn::Both)).await
    };
    let answer = by(&ca).await.unwrap().get("/").await.unwrap();
    assert_eq!(answer.text(), "blue");

    // Another authority issues the next certificate, so that the two can be distinguished.
    let other = CertificateAuthority::new("two");
    let renewed = other.issue(&["a.example"]);
    std::fs::write(pem.certificate(), renewed.certificate_pem()).unwrap();
    std::fs::write(pem.key(), renewed.key_pem()).unwrap();
    eventually("the new certificate is shown", async || {
        by(&other).await.is_ok()
    })
    .await;
    assert!(by(&ca).await.is_err());
}

#[tokio::test]
async fn the_access_log_has_a_line_per_request() {
    let blue = Origin::named("blue");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let more =
        format!(r#", "Telemetry": {{ "AccessLog": {{ "Format": "json", "File": {log:?} }} }}"#);
    let file = ConfigFile::new(&config(blue.addr(), &more));
    let (mut process, address) = run(&file).await;
    get(address, "/one?token=secret").await;
    process.terminate();
    process.wait().await;
    let text = std::fs::read_to_string(&log).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let line = line.to_string();
    assert!(line.contains("/one") && line.contains("200"), "{line}");
}

#[tokio::test]
async fn curl_is_served_over_http_1_and_2() {
    let Some(curl) = peers::find("curl") else {
        return;
    };
    let blue = Origin::named("blue");
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (_process, address) = run(&file).await;
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let mut command = curl.command();
        command.args([
            "-sS",
            "--fail",
            "-w",
            " %{http_version} %{http_code}",
            version,
        ]);
        command.arg(format!("http://{address}/"));
        let answer = peers::output(command).await.expect_success().stdout;
        let expected = if version == "--http1.1" {
            "blue 1.1 200"
        } else {
            "blue 2 200"
        };
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn h2load_loses_nothing_while_the_file_changes() {
    let Some(h2load) = peers::find("h2load") else {
        return;
    };
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let file = ConfigFile::new(&config(blue.addr(), ""));
    let (_process, address) = run(&file).await;
    let mut command = h2load.command();
    command
        .args(["-n", "3000", "-c", "4", "-m", "8"])
        .arg(format!("http://{address}/"));
    let load = tokio::spawn(peers::output_within(Duration::from_secs(250), command));
    for i in 0..10 {
        let destination = if i % 2 == 0 { &green } else { &blue };
        let before = destination.traffic().requests();
        file.write(&config(destination.addr(), ""));
        eventually(
            "the load goes to the new destination, or is over",
            async || destination.traffic().requests() > before || load.is_finished(),
        )
        .await;
    }
    let report = load.await.unwrap().expect_success().stdout;
    assert!(
        report.contains("3000 succeeded, 0 failed, 0 errored, 0 timeout"),
        "{report}"
    );
    assert!(report.contains("3000 2xx"), "{report}");
}
