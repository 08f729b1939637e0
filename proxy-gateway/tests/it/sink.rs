//! Logs that are not read, cannot be written, or are rotated: the program serves and ends all the same.

use std::io::{PipeReader, PipeWriter, Write};
use std::net::SocketAddr;
use std::path::Path;

use crate::common::{ConfigFile, address_after, command, start};
use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::peers::{self, PeerProcess};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::{eventually, guarded};

/// The last line that `run` prints at its start.
const READY: &str = "a second Ctrl-C stops at once";

/// The number of requests whose log exceeds every buffer on the way.
const ENOUGH: usize = 100;

fn long_path() -> String {
    format!("/{}", "a".repeat(4000))
}

fn config(destination: &str, port: u16, more: &Value) -> Value {
    let mut config = json!({
        "Listeners": { "web": { "Address": format!("127.0.0.1:{port}") } },
        "Admin": { "Enabled": false },
        "Server": { "Workers": 1, "ReadinessDelay": "0s" },
        "ReverseProxy": {
            "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
            "Clusters": { "c": { "Destinations": { "d": { "Address": destination } } } },
        },
    });
    let (all, more) = (
        config.as_object_mut().expect("it is an object"),
        more.as_object().expect("more is an object"),
    );
    all.extend(more.clone());
    config
}

/// Connects as soon as the program listens.
async fn client(port: u16) -> Connection {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    eventually("the program listens", async || {
        Connection::http1(address).await.is_ok()
    })
    .await;
    Connection::http1(address).await.expect("it listens")
}

/// Returns a pipe that is full, since it is not read.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (unread, writer) = std::io::pipe().expect("there are descriptors");
    let mut filler = writer.try_clone().expect("there are descriptors");
    // It ends when the reader is dropped.
    std::thread::spawn(move || while filler.write_all(&[b'.'; 4096]).is_ok() {});
    (unread, writer)
}

/// Starts the program with a standard error that is not read.
fn start_unread(file: &ConfigFile) -> (PeerProcess, PipeReader) {
    let (unread, stderr) = full_pipe();
    let mut command = command(&["run", "--config", &file.argument()]);
    command.stderr(stderr);
    (peers::spawn(command), unread)
}

async fn fill(client: &mut Connection) {
    for _ in 0..ENOUGH {
        assert_eq!(
            client.get(&long_path()).await.expect("it answers").status,
            200
        );
    }
}

#[tokio::test]
async fn requests_are_answered_and_the_program_ends_while_nobody_reads_the_log() {
    let origin = Origin::named("blue");
    let port = peers::free_port();
    let more = json!({ "Telemetry": { "LogFilter": "trace" } });
    let file = ConfigFile::new(&config(&origin.url(), port, &more).to_string());
    let (mut process, _unread) = start_unread(&file);
    fill(&mut client(port).await).await;
    // A connection is accepted, too.
    fill(&mut client(port).await).await;
    process.terminate();
    assert!(process.wait().await.success());
}

#[tokio::test]
async fn a_second_signal_ends_a_program_whose_log_nobody_reads() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        connection.count_request();
        connection.hold().await
    });
    let port = peers::free_port();
    let more = json!({
        "Telemetry": { "LogFilter": "trace" },
        "Server": { "Workers": 1, "ReadinessDelay": "0s", "DrainTimeout": "1h" },
    });
    let file = ConfigFile::new(&config(&origin.url(), port, &more).to_string());
    let (mut process, _unread) = start_unread(&file);
    drop(client(port).await);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut waiting = RawClient::connect(address).await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nHost: a.example\r\n\r\n", long_path());
    waiting.write_all(request).await.unwrap();
    eventually("the request is in flight", async || {
        origin.traffic().requests() > 0
    })
    .await;
    process.terminate();
    eventually("it accepts nothing any more", async || {
        Connection::http1(address).await.is_err()
    })
    .await;
    process.terminate();
    assert!(process.wait().await.success());
}

#[tokio::test]
async fn the_program_ends_although_nobody_reads_the_access_log() {
    let origin = Origin::named("blue");
    let port = peers::free_port();
    let more = json!({ "Telemetry": { "AccessLog": { "Format": "json" } } });
    let file = ConfigFile::new(&config(&origin.url(), port, &more).to_string());
    let (_unread, stdout) = full_pipe();
    let mut command = command(&["run", "--config", &file.argument()]);
    command.stdout(stdout);
    let mut process = peers::spawn(command);
    process.wait_for_output(READY).await;
    fill(&mut client(port).await).await;
    process.terminate();
    let (status, output) = process.wait_with_output().await;
    assert!(status.success());
    assert!(
        output.contains("the last lines of the access log could not be written in time"),
        "{output}"
    );
}

/// Returns the sum of the dropped lines that the program has reported.
fn reported(output: &str) -> u64 {
    let lines = output.lines().filter(|line| line.contains(MISSING));
    let counts = lines.filter_map(|line| line.split_once(" lines=")?.1.split_whitespace().next());
    counts.map(|count| count.parse::<u64>().expect(count)).sum()
}

/// The report of lines that were dropped.
const MISSING: &str = "lines of the access log are missing";

#[tokio::test]
async fn lines_that_the_access_log_drops_are_counted_and_reported() {
    let origin = Origin::named("blue");
    let more = json!({
        "Admin": { "Address": "127.0.0.1:0" },
        "Telemetry": { "AccessLog": { "Format": "json" } },
    });
    let file = ConfigFile::new(&config(&origin.url(), 0, &more).to_string());
    let (mut unread, stdout) = std::io::pipe().expect("there are descriptors");
    let mut command = command(&["run", "--config", &file.argument()]);
    command.stdout(stdout);
    let mut process = peers::spawn(command);
    process.wait_for_output(READY).await;
    let output = process.output();
    let admin = address_after(&output, "admin page on http://");
    let dropped = async || {
        let mut admin = Connection::http1(admin).await.ok()?;
        let metrics = admin.get("/metrics").await.ok()?.text();
        let name = r#"proxy_log_dropped_lines_total{log="access"} "#;
        let count = metrics.lines().find_map(|line| line.strip_prefix(name));
        count.expect("the metric is there").parse::<u64>().ok()
    };
    assert_eq!(dropped().await, Some(0));

    // More than the pipe and the queue hold.
    let address = address_after(&output, "listening on http://");
    let mut client = Connection::http1(address).await.expect("it listens");
    let filled = async {
        while dropped().await == Some(0) {
            fill(&mut client).await;
        }
    };
    guarded("lines to be dropped", filled).await;
    assert!(!process.output().contains(MISSING));
    // As soon as the pipe is read.
    std::thread::spawn(move || std::io::copy(&mut unread, &mut std::io::sink()));
    eventually("all of them are reported", async || {
        dropped().await == Some(reported(&process.output()))
    })
    .await;
    process.terminate();
    assert!(process.wait().await.success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_instance_that_was_replaced_ends_although_nobody_reads_its_logs() {
    let origin = Origin::named("blue");
    let port = peers::free_port();
    let folder = tempfile::tempdir().unwrap();
    let more = json!({
        "Telemetry": { "LogFilter": "trace", "AccessLog": {} },
        "Server": { "Workers": 1, "Handover": folder.path().join("handover.sock") },
    });
    let file = ConfigFile::new(&config(&origin.url(), port, &more).to_string());
    let (_unread, stdout) = full_pipe();
    let mut command = command(&["run", "--config", &file.argument()]);
    command.stderr(stdout.try_clone().unwrap()).stdout(stdout);
    let mut first = peers::spawn(command);
    fill(&mut client(port).await).await;
    let second = start(&["run", "--config", &file.argument()], READY).await;
    assert!(first.wait().await.success());
    fill(&mut client(port).await).await;
    drop(second);
}

/// Returns PING acknowledgements for pings that were never sent (RFC 9113 section 6.7).
fn acknowledgements(count: usize) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 6, 1, 0, 0, 0, 0];
    frame.extend([0; 8]);
    frame.repeat(count)
}

#[tokio::test]
async fn acknowledgements_of_no_ping_end_the_connection_and_are_not_logged() {
    let origin = Origin::named("blue");
    let file = ConfigFile::new(&config(&origin.url(), 0, &json!({})).to_string());
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on http://");
    let mut flood = RawClient::connect(address).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let begin = [preface, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    flood.write_all(begin).await.unwrap();
    // The connection may be reset while there is more to send.
    let _ = flood.write_all(acknowledgements(20_000)).await;
    guarded("the connection to end", flood.read_to_end())
        .await
        .ok();
    let mut other = Connection::http2(address).await.unwrap();
    assert_eq!(other.get("/").await.unwrap().status, 200);
    process.terminate();
    let (_, output) = process.wait_with_output().await;
    assert!(!output.contains("h2::"), "{output}");
}

/// `/dev/full` is a disk without room.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_one_line() {
    let origin = Origin::named("blue");
    let more = json!({ "Telemetry": { "AccessLog": { "File": "/dev/full" } } });
    let file = ConfigFile::new(&config(&origin.url(), 0, &more).to_string());
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on http://");
    fill(&mut Connection::http1(address).await.expect("it listens")).await;
    process.terminate();
    let (status, output) = process.wait_with_output().await;
    assert!(status.success());
    let lines = output.matches("the access log cannot be written").count();
    assert_eq!(lines, 1, "{output}");
}

/// A log line in the name of a destination.
const FORGED: &str = "2026-01-01T00:00:00Z ERROR proxy::server: forged";

fn hostile() -> Value {
    let name = format!("d\n{FORGED}\u{1b}]0;title\u{7}");
    // Nothing listens there.
    let address = format!("http://127.0.0.1:{}/", peers::free_port());
    json!({
        "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" } } },
        "Clusters": { "c": {
            "HealthCheck": { "Active": { "Enabled": true, "Interval": "00:00:01" } },
            "Destinations": { name: { "Address": address } },
        } },
    })
}

#[tokio::test]
async fn a_name_cannot_forge_a_line_of_the_log() {
    for format in ["text", "json"] {
        let more = json!({
            "ReverseProxy": hostile(),
            "Telemetry": { "LogFormat": format },
        });
        let file = ConfigFile::new(&config("", 0, &more).to_string());
        let mut process = start(&["run", "--config", &file.argument()], READY).await;
        process.wait_for_output("proxy::health").await;
        process.terminate();
        let (_, output) = process.wait_with_output().await;
        assert!(output.contains("forged"), "{output}");
        assert!(!output.contains('\u{1b}'), "{output}");
        for line in output.lines() {
            assert!(!line.starts_with(FORGED), "{output}");
            if format == "json" {
                let event: Value = serde_json::from_str(line).expect(line);
                assert!(event["timestamp"].is_string(), "{line}");
            }
        }
    }
}

/// A start that fails is JSON in every line as well: because of the configuration, or of an address that is taken.
#[tokio::test]
async fn a_failed_start_is_told_in_json() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let port = taken.local_addr().expect("it is bound").port();
    let json = json!({ "Telemetry": { "LogFormat": "json" } });
    let busy = config("http://127.0.0.1:1/", port, &json);
    let mut wrong = config("http://127.0.0.1:1/", 0, &json);
    wrong["ReverseProxy"]["Routes"]["all"]["Match"]["Path"] = "/{".into();
    for (text, reason) in [(busy, "cannot listen"), (wrong, "Routes/all/Match/Path")] {
        let file = ConfigFile::new(&text.to_string());
        let ended = crate::common::output(&["run", "--config", &file.argument()]).await;
        assert_eq!(ended.status.code(), Some(1));
        let mut is_told = false;
        for line in ended.stderr.lines().chain(ended.stdout.lines()) {
            let event: Value = serde_json::from_str(line).expect(line);
            assert!(event["timestamp"].is_string(), "{line}");
            is_told |= event["level"] == "ERROR" && line.contains(reason);
        }
        assert!(is_told, "{reason}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn a_name_does_not_reach_the_terminal_as_it_is() {
    let more = json!({ "ReverseProxy": hostile() });
    let file = ConfigFile::new(&config("", 0, &more).to_string());
    for format in ["text", "json"] {
        let arguments = ["discover", "--config", &file.argument(), "--format", format];
        let output = crate::common::output(&arguments).await.stdout;
        assert!(output.contains("forged"), "{output}");
        assert!(!output.contains(['\u{1b}', '\u{7}']), "{output}");
        assert!(
            !output.lines().any(|line| line.starts_with(FORGED)),
            "{output}"
        );
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[cfg(unix)]
#[tokio::test]
async fn signals_open_the_access_log_again_or_are_ignored() {
    let origin = Origin::named("blue");
    let folder = tempfile::tempdir().unwrap();
    let (log, rotated) = (folder.path().join("log"), folder.path().join("log.1"));
    let more = json!({ "Telemetry": { "AccessLog": { "File": log } } });
    let file = ConfigFile::new(&config(&origin.url(), 0, &more).to_string());
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "listening on http://");
    let mut client = Connection::http1(address).await.expect("it listens");
    client.get("/1").await.unwrap();
    eventually("the first line", async || lines(&log) == 1).await;

    std::fs::rename(&log, &rotated).unwrap();
    process.user_defined_1();
    process
        .wait_for_output("the file of the access log was opened again")
        .await;
    process.user_defined_2();
    process.wait_for_output("SIGUSR2: nothing to do").await;
    process.alarm();
    process.wait_for_output("SIGALRM: nothing to do").await;
    client.get("/2").await.unwrap();
    eventually("the second line", async || lines(&log) == 1).await;
    assert_eq!(lines(&rotated), 1);

    // Copied and truncated.
    std::fs::write(&log, "").unwrap();
    client.get("/3").await.unwrap();
    eventually("the third line", async || lines(&log) == 1).await;
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("/3") && !text.contains('\0'), "{text}");
    process.terminate();
    assert!(process.wait().await.success());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_limit_of_open_files_is_raised() {
    let origin = Origin::named("blue");
    let file = ConfigFile::new(&config(&origin.url(), 0, &json!({})).to_string());
    let program = command(&["run", "--config", &file.argument()]);
    let program = program.as_std();
    let mut command = tokio::process::Command::new("sh");
    command
        .args([
            "-c",
            r#"ulimit -S -n 300; ulimit -H -n 1000; exec "$0" "$@""#,
        ])
        .arg(program.get_program())
        .args(program.get_args())
        .env_remove("RUST_LOG")
        .stderr(std::process::Stdio::piped());
    let mut process = peers::spawn(command);
    process.wait_for_output(READY).await;
    let output = process.output();
    let raised = "the limit of open files is raised from=300 to=1000";
    assert!(output.contains(raised), "{output}");
    // Two fifths.
    assert!(output.contains("connections=400"), "{output}");
}

#[tokio::test]
async fn the_log_filter_follows_the_file_and_a_wrong_one_changes_nothing() {
    let origin = Origin::named("blue");
    let with = |filter: &str| {
        let more = json!({ "Telemetry": { "LogFilter": filter } });
        config(&origin.url(), 0, &more).to_string()
    };
    let file = ConfigFile::new(&with("off"));
    let mut gateway = start(&["run", "--config", &file.argument()], READY).await;
    file.write(&with("=x="));
    file.write(&with("info"));
    gateway.wait_for_output("the log filter has changed").await;
    file.write(&with("=x="));
    gateway
        .wait_for_output("`=x=` of the configuration is not a log filter")
        .await;
    let output = gateway.output();
    assert!(
        !output.contains("takes effect with the next start"),
        "{output}"
    );
}

#[tokio::test]
async fn the_access_log_has_the_lines_of_the_template_and_every_failure() {
    let origin = Origin::named("blue");
    let port = peers::free_port();
    let file = ConfigFile::new("{}");
    let lines = file.folder().join("access.log");
    let mut config = config(
        &origin.url(),
        port,
        &json!({
            "Telemetry": {
                "AccessLog": { "File": lines, "Template": "{method} {path} {status}", "Sample": 0 },
            },
        }),
    );
    config["ReverseProxy"]["Routes"]["dead"] =
        json!({ "ClusterId": "dead", "Match": { "Path": "/dead" } });
    config["ReverseProxy"]["Clusters"]["dead"] = json!({ "Destinations": {} });
    file.write(&config.to_string());
    let gateway = start(&["run", "--config", &file.argument()], READY).await;
    let mut client = client(port).await;
    for (path, status) in [("/fine", 200), ("/dead", 503), ("/fine", 200)] {
        let answer = client.get(path).await.expect("it answers");
        assert_eq!(answer.status, status, "{path}");
    }
    eventually("the failure is logged", async || {
        std::fs::read_to_string(&lines).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    drop(gateway);
    let text = std::fs::read_to_string(&lines).expect("the log is there");
    assert_eq!(text, "GET /dead 503\n");
}
