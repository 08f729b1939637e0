//! Tokens and TLS of the admin page and API, with curl and a browser as clients.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::certs::{CertificateAuthority, PemFiles};
use testkit::peers::{self, Peer};
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, output, start};

const READY: &str = "a second Ctrl-C stops at once";

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The page, one of its files, the API and the metrics.
const CLOSED: [&str; 4] = ["/", "/assets/app.js", "/api/v1/config", "/metrics"];

const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// The time limit of a browser, which is slow.
const BROWSER: Duration = Duration::from_secs(300);

fn config(admin: &Value) -> String {
    json!({
        "Listeners": { "web": { "Address": "127.0.0.1:0" } },
        "Admin": admin,
        "ReverseProxy": {
            "Clusters": { "c": { "Destinations": { "d": { "Address": "http://127.0.0.1:1/" } } } },
        },
    })
    .to_string()
}

struct Curl {
    peer: Peer,
    /// `http://127.0.0.1:1234`
    base: String,
    arguments: Vec<String>,
}

impl Curl {
    /// The status of a request; 0 if there is no response.
    async fn status(&self, path: &str, arguments: &[&str]) -> u16 {
        let mut command = self.peer.command();
        command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}"]);
        command.args(&self.arguments).args(arguments);
        command.arg(format!("{}{path}", self.base));
        let answer = peers::output(command).await;
        answer.stdout.trim().parse().expect("a status")
    }
}

#[tokio::test]
async fn a_token_of_a_file_opens_the_page_and_is_rotated() {
    let Some(peer) = peers::find("curl") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("{TOKEN}\n")).unwrap();
    let admin = json!({ "Address": "127.0.0.1:0", "TokenFile": tokens });
    let file = ConfigFile::new(&config(&admin));
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "admin page on http://");
    let curl = Curl {
        peer,
        base: format!("http://{address}"),
        arguments: Vec::new(),
    };
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let password = format!("anyone:{TOKEN}");
    for path in CLOSED {
        for (arguments, expected) in [
            (&[][..], 401),
            (
                &["-H", "Authorization: Bearer wrong-token-of-some-length"],
                401,
            ),
            (&["-u", "admin:admin"], 401),
            (&["-H", &bearer], 200),
            (&["-u", &password], 200),
            // A page of another host that makes a browser send the request.
            (&["-H", &bearer, "-H", "Host: rebound.example"], 421),
        ] {
            assert_eq!(
                curl.status(path, arguments).await,
                expected,
                "{path} {arguments:?}"
            );
        }
    }
    for path in HEALTH {
        assert_eq!(curl.status(path, &[]).await, 200, "{path}");
    }
    let health = output(&["health", "--url", &format!("http://{address}/readyz")]).await;
    health.expect_success();

    // The old and the new one count while clients change.
    const NEXT: &str = "another-token-another-token";
    let next = format!("Authorization: Bearer {NEXT}");
    for (text, old, new) in [
        (format!("{NEXT}\n{TOKEN}\n"), 200, 200),
        (format!("{NEXT}\n"), 401, 200),
    ] {
        std::fs::write(&tokens, &text).unwrap();
        eventually("the tokens were replaced", async || {
            let of_old = curl.status("/metrics", &["-H", &bearer]).await;
            let of_new = curl.status("/metrics", &["-H", &next]).await;
            (of_old, of_new) == (old, new)
        })
        .await;
    }
    // A file without a token does not open the page.
    std::fs::write(&tokens, "short\n").unwrap();
    process
        .wait_for_output("cannot be used, the old ones stay")
        .await;
    assert_eq!(curl.status("/metrics", &[]).await, 401);
    assert_eq!(curl.status("/metrics", &["-H", &next]).await, 200);
    let log = process.output();
    let attempts = log.matches("has no valid token").count();
    assert!(
        (1..10).contains(&attempts),
        "not one line for each of them: {log}"
    );
    for secret in [TOKEN, NEXT] {
        assert!(!log.contains(secret), "{log}");
    }
}

/// An admin page with TLS, and who may open it.
struct Secured {
    authority: CertificateAuthority,
    server: PemFiles,
    client: PemFiles,
    stranger: PemFiles,
}

impl Secured {
    fn new() -> Self {
        let authority = CertificateAuthority::new("authority");
        let strangers = CertificateAuthority::new("strangers");
        Self {
            server: authority.issue(&["proxy.internal"]).write_pem(),
            client: authority.issue_client("operator").write_pem(),
            stranger: strangers.issue_client("operator").write_pem(),
            authority,
        }
    }

    fn section(&self, mode: &str, token: Option<&str>) -> Value {
        let mut section = json!({
            "Address": "127.0.0.1:0",
            "Hosts": ["proxy.internal"],
            "Tls": {
                "Certificates": [{
                    "CertificateFile": self.server.certificate(), "KeyFile": self.server.key(),
                }],
                "ClientCertificateMode": mode,
            },
        });
        if mode != "NoCertificate" {
            section["Tls"]["ClientCaFile"] = json!(self.authorities());
        }
        if let Some(token) = token {
            section["Token"] = json!(token);
        }
        section
    }

    fn authorities(&self) -> PathBuf {
        self.server.add_authority(&self.authority)
    }

    fn curl(&self, peer: Peer, address: SocketAddr) -> Curl {
        let port = address.port();
        let arguments = [
            "--cacert".to_owned(),
            self.authorities().display().to_string(),
            "--resolve".to_owned(),
            format!("proxy.internal:{port}:127.0.0.1"),
        ];
        Curl {
            peer,
            base: format!("https://proxy.internal:{port}"),
            arguments: arguments.to_vec(),
        }
    }
}

/// The arguments of curl for a certificate.
fn identity(files: &PemFiles) -> [String; 4] {
    let text = |path: &Path| path.display().to_string();
    [
        "--cert".to_owned(),
        text(files.certificate()),
        "--key".to_owned(),
        text(files.key()),
    ]
}

#[tokio::test]
async fn certificates_and_tokens_open_the_page_by_the_mode() {
    let secured = Secured::new();
    let (client, stranger) = (identity(&secured.client), identity(&secured.stranger));
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let with_token = ["-H".to_owned(), bearer];
    let both = [&client[..], &with_token].concat();
    let clients = [&[][..], &with_token, &client, &both, &stranger];
    // The status for each of the clients above, and for the health checks of the first.
    for (mode, token, closed, health) in [
        ("NoCertificate", None, [200, 200, 200, 200, 200], 200),
        ("NoCertificate", Some(TOKEN), [401, 200, 401, 200, 401], 200),
        ("AllowCertificate", None, [403, 403, 200, 200, 0], 200),
        (
            "AllowCertificate",
            Some(TOKEN),
            [401, 200, 200, 200, 0],
            200,
        ),
        ("RequireCertificate", None, [0, 0, 200, 200, 0], 0),
        ("RequireCertificate", Some(TOKEN), [0, 0, 401, 200, 0], 0),
    ] {
        let Some(peer) = peers::find("curl") else {
            return;
        };
        let file = ConfigFile::new(&config(&secured.section(mode, token)));
        let process = start(&["run", "--config", &file.argument()], READY).await;
        let address = address_after(&process.output(), "admin page on https://");
        let curl = secured.curl(peer, address);
        for path in CLOSED {
            for (arguments, expected) in clients.iter().zip(closed) {
                let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
                let status = curl.status(path, &arguments).await;
                assert_eq!(status, expected, "{mode} {token:?} {path} {arguments:?}");
            }
        }
        for path in HEALTH {
            assert_eq!(
                curl.status(path, &[]).await,
                health,
                "{mode} {token:?} {path}"
            );
        }
        // A browser that offers HTTP/2 is served by HTTP/1.1.
        let mut arguments: Vec<_> = both.iter().map(String::as_str).collect();
        arguments.push("--http2");
        assert_eq!(curl.status("/", &arguments).await, 200, "{mode} {token:?}");
    }
}

#[tokio::test]
async fn certificates_of_the_page_are_replaced() {
    let Some(peer) = peers::find("curl") else {
        return;
    };
    let secured = Secured::new();
    let file = ConfigFile::new(&config(&secured.section("AllowCertificate", None)));
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "admin page on https://");
    let curl = secured.curl(peer, address);
    let client = identity(&secured.client);
    let client: Vec<_> = client.iter().map(String::as_str).collect();
    assert_eq!(curl.status("/metrics", &client).await, 200);
    let others = CertificateAuthority::new("others").issue(&["proxy.internal"]);
    std::fs::write(secured.server.key(), others.key_pem()).unwrap();
    std::fs::write(secured.server.certificate(), others.certificate_pem()).unwrap();
    process
        .wait_for_output("the certificates were replaced")
        .await;
    assert_eq!(
        curl.status("/metrics", &client).await,
        0,
        "of another authority"
    );
}

#[tokio::test]
async fn what_keeps_the_page_open_or_shut_is_told() {
    let secured = Secured::new();
    let open = json!({ "Address": "0.0.0.0:0" });
    let mut no_file = open.clone();
    no_file["TokenFile"] = json!("/no/such-token");
    let mut certified = secured.section("RequireCertificate", None);
    certified["Address"] = open["Address"].clone();
    certified["Tls"]["ClientCaFile"] = json!("/no/such-ca.pem");
    for (admin, code, pointer, is_valid) in [
        (&open, "open_admin", "/Admin/Address", true),
        (&no_file, "unusable_token", "/Admin/TokenFile", false),
        (
            &certified,
            "unusable_certificate",
            "/Admin/Tls/ClientCaFile",
            false,
        ),
    ] {
        let file = ConfigFile::new(&config(admin));
        let argument = file.argument();
        let arguments = ["check", "--here", "--config", &argument, "--format", "json"];
        let verdict: Value = serde_json::from_str(&output(&arguments).await.stdout).unwrap();
        let mut found = String::new();
        for problem in verdict["problems"].as_array().unwrap() {
            let (code, pointer) = (&problem["code"], &problem["pointer"]);
            let _ = writeln!(
                found,
                "{} {}",
                code.as_str().unwrap(),
                pointer.as_str().unwrap()
            );
        }
        assert_eq!(found, format!("{code} {pointer}\n"), "{verdict}");
        assert_eq!(verdict["valid"], is_valid, "{verdict}");
        if is_valid {
            let mut process = start(&["run", "--config", &argument], READY).await;
            process.wait_for_output("can read the configuration").await;
        } else {
            let run = output(&["run", "--config", &argument]).await;
            assert!(
                !run.status.success() && run.stderr.contains("/no/such-"),
                "{run:?}"
            );
        }
    }
    // A token that is written in the configuration is not shown.
    let written = json!({ "Address": "127.0.0.1:0", "Token": TOKEN });
    let file = ConfigFile::new(&config(&written));
    let shown = output(&["check", "--config", &file.argument(), "--origins"]).await;
    let shown = shown.expect_success().stdout;
    assert!(
        shown.contains("/Admin/Token = ") && !shown.contains(TOKEN),
        "{shown}"
    );
}

/// The filter that applies, and true if it ends by itself.
async fn log_filter(curl: &Curl, arguments: &[&str]) -> (String, bool) {
    let mut command = curl.peer.command();
    command.args(["-sS", "-H", &format!("Authorization: Bearer {TOKEN}")]);
    command.args(arguments);
    let answer = peers::output(command).await.expect_success().stdout;
    let view: Value = serde_json::from_str(&answer).expect("it is JSON");
    let filter = view["filter"].as_str().unwrap_or_default();
    (filter.to_owned(), view["expires_in"].is_u64())
}

#[tokio::test]
async fn the_filter_of_the_log_is_another_one_for_a_while() {
    let Some(peer) = peers::find("curl") else {
        return;
    };
    let admin = json!({ "Address": "127.0.0.1:0", "Token": TOKEN });
    let file = ConfigFile::new(&config(&admin));
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "admin page on http://");
    let proxy = address_after(&process.output(), "listening on http://");
    let curl = Curl {
        peer,
        base: format!("http://{address}"),
        arguments: Vec::new(),
    };
    let log = format!("http://{address}/api/v1/log");
    let configured = ("info".to_owned(), false);
    assert_eq!(log_filter(&curl, &[&log]).await, configured);
    assert_eq!(
        curl.status("/api/v1/log?filter=debug", &["-X", "PUT"])
            .await,
        401
    );

    // Lines that the configured filter leaves out.
    const LINE: &str = "proxy::request";
    let visit = async || {
        let mut command = curl.peer.command();
        command.args(["-sS", &format!("http://{proxy}/nothing")]);
        peers::output(command).await.expect_success();
    };
    visit().await;
    assert!(!process.output().contains(LINE));
    let wanted = "info,proxy::request=debug";
    let put = format!("{log}?filter={wanted}&seconds=3600");
    let changed = (wanted.to_owned(), true);
    assert_eq!(log_filter(&curl, &["-X", "PUT", &put]).await, changed);
    let told = "the admin API changes the log filter for a while";
    process.wait_for_output(told).await;
    visit().await;
    process.wait_for_output(LINE).await;
    let bad = format!("{log}?filter=loud");
    assert_eq!(log_filter(&curl, &["-X", "PUT", &bad]).await.0, "");
    assert_eq!(log_filter(&curl, &[&log]).await, changed);

    // A change of the file waits for the end of it.
    let other = config(&admin).replacen('{', r#"{"Telemetry":{"LogFilter":"warn"},"#, 1);
    file.write(&other);
    process.hang_up();
    process.wait_for_output("SIGHUP").await;
    assert_eq!(log_filter(&curl, &[&log]).await, changed);
    let soon = format!("{log}?filter={wanted}&seconds=1");
    log_filter(&curl, &["-X", "PUT", &soon]).await;
    eventually("the filter of the file applies", async || {
        log_filter(&curl, &[&log]).await == ("warn".to_owned(), false)
    })
    .await;
    // A filter that hides all lines does not hide that it was set.
    let silent = format!("{log}?filter=off");
    log_filter(&curl, &["-X", "PUT", &silent]).await;
    process.wait_for_output(r#"filter="off""#).await;
    let deleted = log_filter(&curl, &["-X", "DELETE", &log]).await;
    assert_eq!(deleted, ("warn".to_owned(), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_asks_for_the_token_and_shows_the_page() {
    let (Some(chromium), Some(node)) = (peers::find("chromium"), peers::find("node")) else {
        return;
    };
    let Some(modules) = peers::node_module("playwright-core") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let admin = json!({ "Address": "127.0.0.1:0", "Token": TOKEN });
    let file = ConfigFile::new(&config(&admin));
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let address = address_after(&process.output(), "admin page on http://");
    let script = folder.path().join("browse.mjs");
    std::fs::write(&script, include_str!("admin_page/token.mjs")).unwrap();
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let mut browse = node.command();
    browse
        .arg(&script)
        .env("ADMIN", format!("http://{address}/"))
        .env("CHROMIUM", chromium.path())
        .env("TOKEN", TOKEN);
    peers::output_within(BROWSER, browse).await.expect_success();
}
