//! The export of traces by the program, with the variables of OpenTelemetry.

use http::Response;
use testkit::body;
use testkit::client::Connection;
use testkit::origin::{Echo, Origin};
use testkit::peers;
use tokio::sync::mpsc;

use crate::common::{ConfigFile, address_after, command};

fn config(origin: &Origin) -> String {
    format!(
        r#"{{
            "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{
                "Routes": {{ "r": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "{}" }} }} }} }}
            }}
        }}"#,
        origin.url()
    )
}

/// The last spans are sent at the end, although the delay of the batch is an hour.
#[tokio::test]
async fn the_program_exports_traces_and_sends_the_last_at_its_end() {
    let (sender, mut batches) = mpsc::unbounded_channel();
    let collector = Origin::start(move |request: http::Request<_>| {
        let sender = sender.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = http_body_util::BodyExt::collect(body)
                .await
                .unwrap()
                .to_bytes();
            let _ = sender.send((head.uri.path().to_owned(), body));
            Response::new(body::empty())
        }
    });
    let origin = Origin::echo();
    let file = ConfigFile::new(&config(&origin));
    let mut command = command(&["run", "--config", &file.argument()]);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .env("OTEL_SERVICE_NAME", "edge-7")
        .env("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    let mut program = peers::spawn(command);
    program
        .wait_for_output("a second Ctrl-C stops at once")
        .await;
    let web = address_after(&program.output(), "listening on http://");
    let mut client = Connection::http1(web).await.unwrap();
    let echo: Echo = client.get("/").await.unwrap().json();
    let told = echo.header("traceparent")[0].to_owned();
    drop(client);
    program.terminate();
    assert!(program.wait().await.success());
    let (path, batch) = batches.recv().await.unwrap();
    assert_eq!(path, "/v1/traces");
    let has = |bytes: &[u8]| batch.windows(bytes.len()).any(|part| part == bytes);
    assert!(has(b"edge-7"));
    let span = u64::from_str_radix(&told[36..52], 16)
        .unwrap()
        .to_be_bytes();
    assert!(has(&span), "the destination knows a span that was exported");
}

#[tokio::test]
async fn a_variable_that_cannot_be_used_is_named_by_check_and_run() {
    let origin = Origin::echo();
    let file = ConfigFile::new(&config(&origin));
    for what in ["check", "run"] {
        let mut command = command(&[what, "--config", &file.argument()]);
        command
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", origin.url())
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let output = peers::output(command).await;
        assert_eq!(output.status.code(), Some(1), "{what}");
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(
            text.contains("`http/json` is not `http/protobuf` or `grpc`"),
            "{what}: {text}"
        );
    }
}

/// The metrics of the admin page are sent at the end, although the interval is a minute.
#[tokio::test]
async fn the_program_exports_metrics_and_sends_the_last_at_its_end() {
    let (sender, mut messages) = mpsc::unbounded_channel();
    let collector = Origin::start(move |request: http::Request<_>| {
        let sender = sender.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = http_body_util::BodyExt::collect(body).await.unwrap();
            let _ = sender.send((head.uri.path().to_owned(), body.to_bytes()));
            Response::new(body::empty())
        }
    });
    let origin = Origin::echo();
    let file = ConfigFile::new(&config(&origin));
    let mut command = command(&["run", "--config", &file.argument()]);
    command.env(
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        format!("{}v1/metrics", collector.url()),
    );
    let mut program = peers::spawn(command);
    program
        .wait_for_output("a second Ctrl-C stops at once")
        .await;
    let web = address_after(&program.output(), "listening on http://");
    let mut client = Connection::http1(web).await.unwrap();
    assert_eq!(client.get("/").await.unwrap().status, 200);
    drop(client);
    program.terminate();
    assert!(program.wait().await.success());
    let (path, message) = messages.recv().await.unwrap();
    assert_eq!(path, "/v1/metrics");
    let has = |text: &str| {
        message
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    for name in [
        "http.server.request.duration",
        "proxy_server_requests",
        "proxy_added_duration",
    ] {
        assert!(has(name), "{name}");
    }
}
