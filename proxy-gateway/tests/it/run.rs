//! `run`: requests, reload, drain, and errors at the start.

use crate::common::{ConfigFile, address_after, output, start};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use testkit::agent::Agent;
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::client::{Connection, Load};
use testkit::origin::Origin;
use testkit::peers::{self, PeerProcess};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

fn config(destination: SocketAddr, more: &str) -> String {
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

async fn run(file: &ConfigFile) -> (PeerProcess, SocketAddr) {
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on http://");
    (process, address)
}

async fn get(address: SocketAddr, path: &str) -> String {
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

/// The words of agents decide in the program, which shows them.
#[tokio::test]
async fn agents_of_a_file_are_asked() {
    let (blue, green) = (Origin::named("blue"), Origin::named("green"));
    let (of_blue, of_green) = (Agent::saying("ready up\n"), Agent::saying("ready up\n"));
    let text = |interval: &str| {
        let destination = |origin: &Origin, agent: &Agent| {
            format!(
                r#"{{ "Address": "{}", "Metadata": {{ "AgentCheck.Port": "{}" }} }}"#,
                origin.url(),
                agent.port()
            )
        };
        format!(
            r#"{{
                "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
                "Admin": {{ "Address": "127.0.0.1:0" }},
                "ReverseProxy": {{
                    "Routes": {{ "all": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                    "Clusters": {{ "c": {{
                        "LoadBalancingPolicy": "RoundRobin",
                        "HealthCheck": {{ "Agent": {{ "Enabled": true, "Interval": "{interval}", "Timeout": "5s" }} }},
                        "Destinations": {{ "blue": {}, "green": {} }}
                    }} }}
                }}
            }}"#,
            destination(&blue, &of_blue),
            destination(&green, &of_green),
        )
    };
    let file = ConfigFile::new(&text("00:00:00.02"));
    let (process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let shown = async |id: &str| {
        let cluster = get(admin, "/api/v1/clusters/c").await;
        let cluster: serde_json::Value = serde_json::from_str(&cluster).unwrap();
        let destinations = cluster["destinations"].as_array().unwrap().clone();
        let mut each = destinations.into_iter();
        each.find(|destination| destination["id"] == id).unwrap()
    };
    let hears = async |id: &str, agent: &Agent, line: &str| {
        agent.say(format!("{line}\n"));
        eventually(format!("{id} is heard to say {line}"), async || {
            shown(id).await["agent"]["last"] == line
        })
        .await;
    };
    hears("green", &of_green, "ready up 100%").await;
    hears("blue", &of_blue, "down 50% maxconn:7 #disk full").await;
    let served = async || {
        let mut served = String::new();
        for _ in 0..4 {
            served += get(address, "/").await.trim();
        }
        served
    };
    assert_eq!(served().await, "green".repeat(4));
    let blue_now = shown("blue").await;
    assert_eq!(blue_now["why"], "down by its agent", "{blue_now}");
    let agent = &blue_now["agent"];
    for (key, value) in [
        ("health", "down"),
        ("reason", "disk full"),
        ("mode", "ready"),
        ("weight", "50%"),
    ] {
        assert_eq!(agent[key], value, "{agent}");
    }
    assert_eq!(agent["max_connections"], 7, "{agent}");
    let metrics = get(admin, "/metrics").await;
    for (id, health) in [("blue", -1), ("green", 1)] {
        let line =
            format!("proxy_destination_health{{cluster=\"c\",destination=\"{id}\"}} {health}\n");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }

    // The words outlive a change of the file.
    let reloads = async || {
        let metrics = get(admin, "/metrics").await;
        let mut lines = metrics.lines();
        let line =
            lines.find(|line| line.starts_with("proxy_config_reload_total{result=\"success"));
        line.unwrap().to_owned()
    };
    let before = reloads().await;
    file.write(&text("00:00:00.03"));
    eventually("the file is read", async || reloads().await != before).await;
    assert_eq!(shown("blue").await["why"], "down by its agent");
    hears("blue", &of_blue, "up 100%").await;
    hears("green", &of_green, "maint").await;
    assert_eq!(served().await, "blue".repeat(4));
    let why = shown("green").await["why"].clone();
    assert_eq!(why, "in maintenance by its agent");

    // A port is missing.
    let without = text("00:00:00.03").replace("AgentCheck.Port", "Other");
    let checked = output(&["check", "--config", &ConfigFile::new(&without).argument()]).await;
    let told = format!("{}{}", checked.stdout, checked.stderr);
    assert!(told.contains("HealthCheck/Agent"), "{told}");
}

#[tokio::test]
async fn pages_of_errors_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("404.html");
    std::fs::write(&page, "<h1>Not here</h1>").unwrap();
    let text = |pages: &str| {
        let server = format!(r#", "Server": {{ "ErrorPages": {{ {pages} }} }}"#);
        let text = config(([127, 0, 0, 1], 9).into(), &server);
        text.replace("/{**rest}", "/known")
    };
    let not_found = format!(r#""gone": {{ "Statuses": ["404"], "File": {page:?} }}"#);
    let file = ConfigFile::new(&text(&not_found));
    let (process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let mut client = Connection::http1(address).await.unwrap();
    let answer = client.get("/unknown").await.unwrap();
    assert_eq!(answer.status, 404);
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(answer.text(), "<h1>Not here</h1>");
    let explained = get(admin, "/api/v1/explain?url=http://h/unknown").await;
    assert!(explained.contains(r#""error_page":"gone""#), "{explained}");
    let url = format!("http://{address}/unknown");
    let explained = output(&["explain", "--config", &file.argument(), "--url", &url]).await;
    let told = "No route takes it: 404.\n  error page gone\n";
    assert!(explained.stdout.contains(told), "{}", explained.stdout);

    std::fs::write(&page, "<h1>Gone</h1>").unwrap();
    eventually("the changed file is read", async || {
        get(address, "/unknown").await == "<h1>Gone</h1>"
    })
    .await;
    let both = format!(r#"{not_found}, "bad": {{ "Statuses": ["5xx"], "Body": "down" }}"#);
    file.write(&text(&both));
    eventually("the new page is there", async || {
        get(address, "/known").await == "down"
    })
    .await;
    // A file that cannot be read leaves the pages as they are.
    std::fs::remove_file(&page).unwrap();
    eventually("the missing file is named", async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("/Server/ErrorPages/gone/File") && problems.contains("404.html")
    })
    .await;
    assert_eq!(get(address, "/unknown").await, "<h1>Gone</h1>");
    let problems = get(admin, "/api/v1/problems").await;
    assert!(!problems.contains("restart_needed"), "{problems}");

    let checked = output(&["check", "--config", &file.argument()]).await;
    let told = format!("{}{}", checked.stdout, checked.stderr);
    assert!(told.contains("404.html` cannot be read"), "{told}");
    let started = output(&["run", "--config", &file.argument()]).await;
    assert!(!started.status.success());
    assert!(
        started.stderr.contains("/Server/ErrorPages/gone/File"),
        "{}",
        started.stderr
    );
}

/// A reload with a page that cannot be read keeps all pages, those that could be read, too. So does a configuration that is
/// rejected.
#[tokio::test]
async fn pages_of_a_rejected_reload_are_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.html", "second.html"].map(|name| folder.path().join(name));
    std::fs::write(&first, "first").unwrap();
    let text = |page: &Path, down: &str, path: &str| {
        let server = format!(
            r#", "Server": {{ "ErrorPages": {{
                "gone": {{ "Statuses": ["404"], "File": {page:?} }},
                "down": {{ "Statuses": ["5xx"], "Body": "{down}" }}
            }} }}"#
        );
        let text = config(([127, 0, 0, 1], 9).into(), &server);
        text.replace("/{**rest}", path)
    };
    let file = ConfigFile::new(&text(&first, "down 1", "/known"));
    let (process, address) = run(&file).await;
    let admin = address_after(&process.output(), "admin page on http://");
    let served = async || [get(address, "/unknown").await, get(address, "/known").await];
    let problem_of_page = async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("/Server/ErrorPages/gone/File")
    };
    assert_eq!(served().await, ["first", "down 1"]);

    file.write(&text(&second, "down 2", "/known"));
    eventually("the missing file is named", problem_of_page).await;
    assert_eq!(served().await, ["first", "down 1"]);
    std::fs::write(&second, "second").unwrap();
    eventually("the file is there", async || {
        served().await == ["second", "down 2"]
    })
    .await;
    eventually("no file is named", async || !problem_of_page().await).await;

    std::fs::write(&second, "x".repeat(65 * 1024)).unwrap();
    eventually("the long file is named", problem_of_page).await;
    assert_eq!(served().await, ["second", "down 2"]);

    // The pages that count are still followed, which tells that the rejected ones were seen.
    file.write(&text(&first, "down 3", "/{bad"));
    eventually("the path is named", async || {
        let problems = get(admin, "/api/v1/problems").await;
        problems.contains("Match/Path")
    })
    .await;
    std::fs::write(&second, "third").unwrap();
    eventually("the changed file is read", async || {
        served().await == ["third", "down 2"]
    })
    .await;
    file.write(&text(&first, "down 3", "/known"));
    eventually("the mistake is corrected", async || {
        served().await == ["first", "down 3"]
    })
    .await;
}
