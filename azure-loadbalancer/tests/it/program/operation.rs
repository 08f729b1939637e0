//! The operation of the program: proxies, credentials, progress, and output for programs.

use std::time::Duration;

use serde_json::Value;
use testkit::peers;
use testkit::time::eventually;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{about, ended, example, program, state};

/// Starts a listener, and returns the first line that a client sends to it.
async fn listener() -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.unwrap();
        line
    });
    (address, heard)
}

fn plan(endpoint: &str) -> tokio::process::Command {
    let mut plan = program();
    plan.arg("plan").arg("--config").arg(example("azure.json"));
    plan.arg("--services").arg(example("services.json"));
    plan.arg("--nodes").arg(example("nodes.json"));
    plan.args(["--endpoint", endpoint]);
    plan
}

#[tokio::test]
async fn azure_is_reached_through_the_proxy_of_the_environment() {
    let (proxy, heard) = listener().await;
    let mut through = plan("https://arm.example");
    through.env("HTTPS_PROXY", format!("http://{proxy}"));
    through.env("AZURE_ACCESS_TOKEN", "secret-token");
    let _running = peers::spawn(through);
    let heard = tokio::time::timeout(Duration::from_secs(60), heard)
        .await
        .unwrap()
        .unwrap();
    assert!(heard.starts_with("CONNECT arm.example:443 "), "{heard}");
    // Addresses of this machine bypass the proxy, and so do the named exceptions.
    let (endpoint, heard) = listener().await;
    let mut directly = plan(&format!("http://{endpoint}"));
    directly.env("HTTP_PROXY", "http://127.0.0.1:1");
    directly.env("HTTPS_PROXY", "http://127.0.0.1:1");
    let _running = peers::spawn(directly);
    let heard = tokio::time::timeout(Duration::from_secs(60), heard)
        .await
        .unwrap()
        .unwrap();
    assert!(heard.starts_with("GET /subscriptions/"), "{heard}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    let mut rejected = peers::spawn(plan("http://127.0.0.1:1"));
    rejected.wait_for_output("a call is retried").await;
}

/// Waits for the line that there is no answer yet. Returns the call, and the seconds that the program had waited.
async fn silence(mut program: peers::PeerProcess) -> (String, f64) {
    program.wait_for_output("no answer yet").await;
    let line = async || {
        let output = program.output();
        let line = output
            .lines()
            .find(|line| line.contains("no answer yet"))?
            .to_owned();
        let (_, call) = line.split_once("call=\"")?;
        let (call, rest) = call.split_once('"')?;
        let (_, waited) = rest.split_once("waited=")?;
        let waited = waited.split_once('s')?.0.parse().ok()?;
        Some((call.to_owned(), waited))
    };
    eventually("the line is whole", async || line().await.is_some()).await;
    line().await.unwrap()
}

/// Servers that accept and stay silent, one for each kind of server that the program waits for. The seconds are those
/// of the program, so that a busy machine does not matter.
#[tokio::test]
async fn nobody_waits_in_silence() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", listener.local_addr().unwrap());
    let (_kept, state) = state();
    let manager = plan(&silent);
    let mut authority = plan("https://127.0.0.1:1");
    authority.env("AZURE_TENANT_ID", "tenant");
    authority.env("AZURE_CLIENT_ID", "client");
    authority.env("AZURE_CLIENT_SECRET", "hush");
    authority.env("AZURE_AUTHORITY_HOST", &silent);
    let mut metadata = plan("https://127.0.0.1:1");
    metadata.env("AZURE_POD_IDENTITY_AUTHORITY_HOST", &silent);
    let mut kubernetes = program();
    kubernetes
        .arg("plan")
        .arg("--config")
        .arg(example("azure.json"));
    kubernetes.args(["--kubernetes", &silent]);
    kubernetes.arg("--state").arg(&state);
    let mut cases = vec![
        (manager, "GET "),
        (authority, "token"),
        (metadata, "token"),
        (kubernetes, "GET /api/v1/services"),
    ];
    #[cfg(feature = "consul")]
    {
        let source = state.with_file_name("nodes.yaml");
        let text = format!("ConsulDiscovery: {{Address: '{silent}'}}\n");
        std::fs::write(&source, text).unwrap();
        let mut nodes = program();
        nodes.arg("plan").arg("--config").arg(example("azure.json"));
        nodes.arg("--services").arg(example("services.json"));
        nodes.arg("--nodes-from").arg(source);
        nodes.args(["--nodes-cluster", "proxy"]);
        nodes.arg("--state").arg(&state);
        cases.push((nodes, "--nodes-from"));
    }
    let waits = cases.into_iter().map(async |(command, expected)| {
        let (call, waited) = silence(peers::spawn(command)).await;
        assert!(call.starts_with(expected), "{call}: {expected}");
        assert!((5.0..7.0).contains(&waited), "{call}: after {waited} s");
    });
    futures_util::future::join_all(waits).await;
}

#[tokio::test]
async fn the_credentials_of_an_azure_json_are_used() {
    let (kept, _) = state();
    let good = std::fs::read_to_string(example("azure.json")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = format!("http://{}", listener.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = vec![0; 4096];
        let mut length = 0;
        while !String::from_utf8_lossy(&text[..length]).contains("client_secret=") {
            length += stream.read(&mut text[length..]).await.unwrap();
        }
        String::from_utf8_lossy(&text[..length]).into_owned()
    });
    let with = r#"{ "tenantId": "tenant", "aadClientId": "client", "aadClientSecret": "hush","#;
    let config = kept.path().join("azure.json");
    std::fs::write(&config, good.replacen('{', with, 1)).unwrap();
    let mut planned = program();
    planned.arg("plan").arg("--config").arg(&config);
    planned.arg("--services").arg(example("services.json"));
    planned.arg("--nodes").arg(example("nodes.json"));
    planned.args(["--endpoint", "https://127.0.0.1:1"]);
    planned.env("AZURE_AUTHORITY_HOST", &authority);
    let running = peers::spawn(planned);
    let heard = tokio::time::timeout(Duration::from_secs(60), heard)
        .await
        .unwrap()
        .unwrap();
    assert!(heard.starts_with("POST /tenant/"), "{heard}");
    for part in ["client_id=client", "client_secret=hush"] {
        assert!(heard.contains(part), "{heard}");
    }
    assert!(!running.output().contains("hush"));
    // Unsupported credentials are named.
    let certificate = r#"{ "tenantId": "t", "aadClientId": "c", "aadClientCertPath": "/x","#;
    std::fs::write(&config, good.replacen('{', certificate, 1)).unwrap();
    let mut planned = program();
    planned.arg("plan").arg("--config").arg(&config);
    planned.arg("--services").arg(example("services.json"));
    planned.arg("--nodes").arg(example("nodes.json"));
    planned.args(["--endpoint", "https://127.0.0.1:1"]);
    let planned = peers::output(planned).await;
    ended(&planned, 1);
    assert!(
        planned.stderr.contains("certificates are not supported"),
        "{}",
        planned.stderr
    );
}

#[tokio::test]
async fn keys_that_look_like_another_are_told() {
    let (kept, state) = state();
    let good = std::fs::read_to_string(example("azure.json")).unwrap();
    let config = kept.path().join("azure.json");
    let misspelt = good.replace("securityGroupName", "securtyGroupName");
    // A byte order mark is no mistake.
    std::fs::write(&config, format!("\u{feff}{misspelt}")).unwrap();
    let mut planned = program();
    planned.arg("plan").arg("--config").arg(&config);
    planned.arg("--services").arg(example("services.json"));
    planned.arg("--nodes").arg(example("nodes.json"));
    planned.arg("--state").arg(&state);
    let planned = peers::output(planned).await;
    ended(&planned, 0);
    assert!(
        planned.stderr.contains("securtyGroupName"),
        "{}",
        planned.stderr
    );
    assert!(
        planned.stderr.contains("is \"securityGroupName\" meant?"),
        "{}",
        planned.stderr
    );
    assert!(
        planned.stdout.contains("no securityGroupName"),
        "{}",
        planned.stdout
    );
    assert!(
        !peers::output(about("plan", &state))
            .await
            .stderr
            .contains("meant?")
    );
}

#[tokio::test]
async fn what_was_applied_is_told_as_json_as_well() {
    let (_kept, state) = state();
    let mut apply = about("apply", &state);
    apply.args(["--format", "json"]);
    let applied = peers::output(apply).await;
    ended(&applied, 0);
    let report: Value = serde_json::from_str(&applied.stdout).unwrap();
    assert_eq!(report["done"], true);
    assert_eq!(
        report["services"]["shop/web"]["ingress"][0]["ip"],
        "20.0.0.1"
    );
    assert_eq!(report["services"]["shop/web"]["error"], Value::Null);
    assert!(
        report["written"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["do"] == "put loadBalancer")
    );
}

pub(super) async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_program_that_follows_tells_how_it_is_and_takes_a_new_configuration() {
    let (kept, state) = state();
    let config = kept.path().join("azure.json");
    let good = std::fs::read_to_string(example("azure.json")).unwrap();
    std::fs::write(&config, &good).unwrap();
    let mut watching = program();
    watching.arg("apply").arg("--config").arg(&config);
    watching.arg("--services").arg(example("services.json"));
    watching.arg("--nodes").arg(example("nodes.json"));
    watching.arg("--state").arg(&state);
    watching.args(["--watch", "--status-listen", "127.0.0.1:0"]);
    let mut watching = peers::spawn(watching);
    watching.wait_for_output("shop/web: 20.0.0.1").await;
    let output = watching.output();
    let address = output.split("address=").nth(1).unwrap();
    let address: String = address
        .chars()
        .take_while(|c| c.is_ascii_digit() || ".:".contains(*c))
        .collect();
    for path in ["/healthz", "/readyz"] {
        assert!(
            get(&address, path).await.starts_with("HTTP/1.1 200"),
            "{path}"
        );
    }
    for line in ["services 2", "last_reconciliation_done 1"] {
        eventually(line, async || {
            let metrics = get(&address, "/metrics").await;
            metrics.contains(&format!("\nazure_loadbalancer_{line}\n"))
        })
        .await;
    }
    assert!(get(&address, "/x").await.starts_with("HTTP/1.1 404"));

    // An invalid configuration changes nothing. A valid one takes effect, and existing resources stay.
    std::fs::write(&config, "{").unwrap();
    watching
        .wait_for_output("the last one stays in force")
        .await;
    let fewer = good.replacen('{', r#"{ "disableOutboundSNAT": true,"#, 1);
    std::fs::write(&config, fewer).unwrap();
    watching
        .wait_for_output("the configuration has changed and is in force")
        .await;
    let changed = async {
        while !std::fs::read_to_string(&state)
            .unwrap()
            .contains("\"disableOutboundSnat\": true")
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), changed)
        .await
        .unwrap();
    watching.terminate();
    assert_eq!(watching.wait().await.code(), Some(0));
    assert!(
        std::fs::read_to_string(&state)
            .unwrap()
            .contains("\"20.0.0.1\"")
    );
}

/// Returns true if a text is a time in UTC, such as `2026-01-02T03:04:05.678Z`.
fn is_time(text: &str) -> bool {
    let form = text.replace(|c: char| c.is_ascii_digit(), "0");
    form == "0000-00-00T00:00:00.000Z"
}

/// The configuration stays as it is, so that only `--resync` can be the cause of a second line.
#[tokio::test]
async fn a_program_that_follows_checks_again_and_says_when() {
    let (_kept, state) = state();
    let watch = |format: &str| {
        let mut watch = about("apply", &state);
        watch.args(["--watch", "--resync", "10", "--format", format]);
        peers::spawn(watch)
    };
    let mut text = watch("text");
    text.wait_for_output("shop/web: 20.0.0.1").await;
    text.terminate();
    text.wait().await;
    let output = text.output();
    // Those of the log have their own.
    let printed = output.lines().filter(|line| !line.contains("WARN"));
    let lines: Vec<_> = printed.collect();
    assert!(lines.len() > 2, "{output}");
    for line in lines {
        let (time, _) = line.split_once(' ').unwrap();
        assert!(is_time(time), "{line}");
    }

    let json = watch("json");
    let documents = || -> Vec<Value> {
        let output = json.output();
        let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    eventually("it has checked twice", async || documents().len() >= 2).await;
    let documents = documents();
    let times: Vec<_> = documents
        .iter()
        .map(|document| document["time"].as_str().unwrap())
        .collect();
    assert!(times.iter().all(|time| is_time(time)), "{times:?}");
    assert!(times[0] < times[1], "{times:?}");
}

#[tokio::test]
async fn the_log_is_json_if_asked_for() {
    for (format, is_json) in [(Some("json"), true), (Some("text"), false), (None, false)] {
        let mut planned = plan("http://127.0.0.1:1");
        if let Some(format) = format {
            planned.args(["--log-format", format]);
        }
        let mut rejected = peers::spawn(planned);
        rejected.wait_for_output("a call is retried").await;
        let output = rejected.output();
        let line = output
            .lines()
            .find(|line| line.contains("a call is retried"))
            .unwrap();
        let event: Option<Value> = serde_json::from_str(line).ok();
        assert_eq!(event.is_some(), is_json, "{line}");
        if let Some(event) = event {
            assert_eq!(event["level"], "WARN", "{line}");
            assert_eq!(event["fields"]["message"], "a call is retried", "{line}");
        }
    }
}
