//! The identities of the program: that of the machine, and tokens of the environment.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use testkit::peers::{self, PeerOutput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::{ended, example, program};

/// A server that gives each request the same response, and keeps the heads of the requests.
struct Scripted {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn start(status: u16, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        let length = body.len();
        let response = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
                heads.lock().push(head);
                let _ = stream.write_all(response.as_bytes()).await;
            }
        });
        Self { url, heads: kept }
    }

    fn heads(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock())
    }
}

/// Returns the first query parameter of this name in the target of a request.
fn parameter(head: &str, name: &str) -> Option<String> {
    let target = head.split(' ').nth(1)?;
    let url = url::Url::parse(&format!("http://x{target}")).unwrap();
    let mut pairs = url.query_pairs();
    pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
}

/// Returns a plan with these additional keys in its configuration.
fn plan(directory: &tempfile::TempDir, keys: &str, endpoint: &str) -> Command {
    let good = std::fs::read_to_string(example("azure.json")).unwrap();
    let config = directory.path().join("azure.json");
    std::fs::write(&config, good.replacen('{', &format!("{{ {keys}"), 1)).unwrap();
    let mut plan = program();
    plan.arg("plan").arg("--config").arg(&config);
    plan.arg("--services").arg(example("services.json"));
    plan.arg("--nodes").arg(example("nodes.json"));
    plan.args(["--endpoint", endpoint]);
    plan
}

async fn run(command: Command) -> PeerOutput {
    let ended = tokio::time::timeout(Duration::from_secs(120), peers::output(command));
    ended.await.unwrap()
}

/// A response of a resource manager without any resource.
const NO_RESOURCE: &str = r#"{"value":[]}"#;

#[tokio::test]
async fn the_machine_of_an_azure_json_gets_its_token_from_the_metadata_service() {
    let directory = tempfile::tempdir().unwrap();
    let machine =
        r#""useManagedIdentityExtension": true, "aadClientId": "msi", "aadClientSecret": "msi","#;
    let assigned = format!(r#"{machine} "userAssignedIdentityID": " of-the-file ","#);
    for (keys, client_of_environment, expected) in [
        (machine, None, None),
        (&assigned, None, Some("of-the-file")),
        (
            &assigned,
            Some("of-the-environment"),
            Some("of-the-environment"),
        ),
    ] {
        let metadata = Scripted::start(
            200,
            r#"{"access_token":"of-the-machine","expires_in":"3600"}"#,
        )
        .await;
        let manager = Scripted::start(200, NO_RESOURCE).await;
        let mut plan = plan(&directory, keys, &manager.url);
        plan.args([
            "--credentials",
            "config",
            "--resource",
            "https://management.example",
        ]);
        plan.env("AZURE_POD_IDENTITY_AUTHORITY_HOST", &metadata.url);
        // The metadata service is never behind a proxy.
        plan.env("HTTP_PROXY", "http://127.0.0.1:1");
        if let Some(client) = client_of_environment {
            plan.env("AZURE_CLIENT_ID", client);
        }
        let planned = run(plan).await;
        let asked = metadata.heads();
        assert_eq!(asked.len(), 1, "{asked:?} {}", planned.stderr);
        let head = &asked[0];
        assert!(
            head.starts_with("get /metadata/identity/oauth2/token?"),
            "{head}"
        );
        assert!(head.contains("\r\nmetadata: true\r\n"), "{head}");
        assert_eq!(
            parameter(head, "resource").as_deref(),
            Some("https://management.example")
        );
        assert_eq!(parameter(head, "client_id").as_deref(), expected, "{head}");
        let called = manager.heads();
        assert!(!called.is_empty(), "{}", planned.stderr);
        for head in &called {
            assert!(
                head.contains("\r\nauthorization: bearer of-the-machine\r\n"),
                "{head}"
            );
        }
        assert!(!planned.stderr.contains("of-the-machine"));
    }
}

#[tokio::test]
async fn an_identity_that_cannot_be_had_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let refusing = Scripted::start(
        400,
        r#"{"error":"invalid_request","error_description":"Identity not found"}"#,
    )
    .await;
    let machine = r#""useManagedIdentityExtension": true,"#;
    let by_resource =
        r#""useManagedIdentityExtension": true, "userAssignedIdentityID": "/subscriptions/s/x","#;
    for (keys, expected) in [
        (machine, "Identity not found"),
        (
            by_resource,
            "userAssignedIdentityID is the id of a resource",
        ),
    ] {
        // TLS decides that a token is needed: it is the machine's.
        let mut plan = plan(&directory, keys, "https://127.0.0.1:1");
        plan.env("AZURE_POD_IDENTITY_AUTHORITY_HOST", &refusing.url);
        let planned = run(plan).await;
        ended(&planned, 1);
        assert!(planned.stderr.contains(expected), "{}", planned.stderr);
    }
}

#[tokio::test]
async fn a_token_of_the_environment_is_taken_in_each_form_of_the_command_line_of_azure() {
    let directory = tempfile::tempdir().unwrap();
    for text in [
        "the-token",
        "the-token\n",
        "  the-token\r\n",
        r#"{"accessToken":"the-token","expiresOn":"2030-01-01 00:00:00.000000","tokenType":"Bearer"}"#,
        "{\n  \"accessToken\": \"the-token\",\n  \"subscription\": \"s\"\n}\n",
        "{\"accessToken\": \"the-token\\n\"}",
        "\"the-token\"\n",
    ] {
        let manager = Scripted::start(200, NO_RESOURCE).await;
        let mut plan = plan(&directory, "", &manager.url);
        plan.env("AZURE_ACCESS_TOKEN", text);
        let planned = run(plan).await;
        let called = manager.heads();
        assert!(!called.is_empty(), "{text:?}: {}", planned.stderr);
        for head in &called {
            assert!(
                head.contains("\r\nauthorization: bearer the-token\r\n"),
                "{text:?}: {head}"
            );
        }
        assert!(!planned.stderr.contains("the-token"), "{}", planned.stderr);
    }
    // What is no token is an error that does not repeat it.
    for text in [
        "hush\nhush",
        r#"{"accessToken":"hush\u0000"}"#,
        r#"{"error":"hush"}"#,
        r#"{"accessToken":""}"#,
        "\n",
    ] {
        let manager = Scripted::start(200, NO_RESOURCE).await;
        let mut plan = plan(&directory, "", &manager.url);
        plan.env("AZURE_ACCESS_TOKEN", text);
        let planned = run(plan).await;
        ended(&planned, 1);
        assert_eq!(manager.heads(), Vec::<String>::new(), "{text:?}");
        assert!(
            planned.stderr.contains("AZURE_ACCESS_TOKEN has no token"),
            "{}",
            planned.stderr
        );
        assert!(!planned.stderr.contains("hush"), "{}", planned.stderr);
    }
}
