//! Client certificates on both sides of the program, with curl as the client.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use testkit::certs::{Alpn, CertificateAuthority};
use testkit::origin::{Echo, Origin};
use testkit::peers::{self, Peer};
use testkit::time::eventually;

use crate::common::{ConfigFile, address_after, output, start};

const READY: &str = "a second Ctrl-C stops at once";

struct Curl {
    peer: Peer,
    address: SocketAddr,
    /// The authorities of servers.
    servers: String,
}

impl Curl {
    /// The status and body of a request for `host` over a connection for `name`. `None`: there is no response.
    async fn get(
        &self,
        name: &str,
        host: &str,
        identity: Option<(&Path, &Path)>,
    ) -> Option<(u16, String)> {
        let port = self.address.port();
        let mut command = self.peer.command();
        command.args(["-sS", "--cacert", &self.servers, "-w", "\n%{http_code}"]);
        command.args(["--resolve", &format!("{name}:{port}:127.0.0.1")]);
        command.args([
            "-H",
            &format!("Host: {host}"),
            "-H",
            "X-Client-Cert: forged",
        ]);
        if let Some((certificate, key)) = identity {
            command.arg("--cert").arg(certificate).arg("--key").arg(key);
        }
        command.arg(format!("https://{name}:{port}/"));
        let answer = peers::output(command).await;
        let (body, status) = answer.stdout.rsplit_once('\n')?;
        let status = status.parse().ok().filter(|status| *status != 0)?;
        Some((status, body.to_owned()))
    }
}

fn config(origin: &str, listener: &Value, client: &Value) -> String {
    json!({
        "Listeners": { "secure": { "Address": "127.0.0.1:0", "Tls": listener } },
        "Admin": { "Address": "127.0.0.1:0" },
        "ReverseProxy": {
            "Routes": { "all": {
                "ClusterId": "c",
                "Match": { "Path": "/{**rest}" },
                "Transforms": [{ "ClientCert": "X-Client-Cert" }],
            } },
            "Clusters": { "c": {
                "HttpClient": client,
                "Destinations": { "d": { "Address": origin } },
            } },
        },
    })
    .to_string()
}

#[tokio::test]
async fn certificates_are_required_told_and_presented() {
    let Some(peer) = peers::find("curl") else {
        return;
    };
    let [servers, clients, strangers, inner] =
        ["servers", "clients", "strangers", "inner"].map(CertificateAuthority::new);
    let server = servers
        .issue(&["public.example", "admin.example"])
        .write_pem();
    let one = clients.issue_client("one");
    let (known, stranger) = (one.write_pem(), strangers.issue_client("two").write_pem());
    let known_authority = known.add_authority(&clients);
    // The destination has an authority of its own, a name of its own, and asks for a certificate.
    let gateway = inner.issue_client("gateway").write_pem();
    let inner_authority = gateway.add_authority(&inner);
    let identity = inner.issue(&["orders.internal"]);
    let origin = Origin::builder()
        .tls(identity.server_config_requiring(&inner, Alpn::Both))
        .start_echo();
    let listener = json!({
        "Certificates": [{ "CertificateFile": server.certificate(), "KeyFile": server.key() }],
        "ClientCaFile": known_authority,
        "Sni": { "admin.example": { "ClientCertificateMode": "RequireCertificate" } },
    });
    let client = json!({
        "ClientCertificate": { "Path": gateway.certificate(), "KeyPath": gateway.key() },
        "CaFile": inner_authority,
        "ServerName": "orders.internal",
    });
    let destination = format!("https://{}/", origin.addr());
    let file = ConfigFile::new(&config(&destination, &listener, &client));
    let checked = output(&["check", "--config", &file.argument()]).await;
    let verdict = checked.expect_success().stdout;
    assert!(!verdict.contains("certificate"), "{verdict}");
    let mut process = start(&["run", "--config", &file.argument()], READY).await;
    let curl = Curl {
        peer,
        address: address_after(&process.output(), "listening on https://"),
        servers: server.add_authority(&servers).display().to_string(),
    };
    let known_files = Some((known.certificate(), known.key()));
    let stranger_files = Some((stranger.certificate(), stranger.key()));

    let (status, body) = curl
        .get("public.example", "public.example", None)
        .await
        .unwrap();
    assert_eq!(status, 200);
    let echo: Echo = serde_json::from_str(&body).unwrap();
    assert!(
        echo.header("x-client-cert").is_empty(),
        "a client cannot say who it is"
    );
    assert_eq!(echo.server_name.as_deref(), Some("orders.internal"));

    let (status, body) = curl
        .get("admin.example", "admin.example", known_files)
        .await
        .unwrap();
    assert_eq!(status, 200);
    let echo: Echo = serde_json::from_str(&body).unwrap();
    let pem: String = one
        .certificate_pem()
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    assert_eq!(echo.header("x-client-cert"), [pem.trim()]);

    for rejected in [None, stranger_files] {
        assert_eq!(
            curl.get("admin.example", "admin.example", rejected).await,
            None
        );
    }
    let evading = curl
        .get("public.example", "admin.example", known_files)
        .await
        .unwrap();
    assert_eq!(evading.0, 421);

    // The authority of the file is replaced.
    std::fs::write(&known_authority, strangers.certificate_pem()).unwrap();
    process
        .wait_for_output("the authorities for clients were replaced")
        .await;
    assert_eq!(
        curl.get("admin.example", "admin.example", known_files)
            .await,
        None
    );
    let served = curl
        .get("admin.example", "admin.example", stranger_files)
        .await
        .unwrap();
    assert_eq!(served.0, 200);

    // So is the certificate of the program: by one that the destination does not know.
    let other = strangers.issue_client("gateway");
    std::fs::write(gateway.certificate(), other.certificate_pem()).unwrap();
    std::fs::write(gateway.key(), other.key_pem()).unwrap();
    process
        .wait_for_output("certificates for destinations were replaced")
        .await;
    eventually("connections of before are not used", async || {
        curl.get("public.example", "public.example", None)
            .await
            .unwrap()
            .0
            == 502
    })
    .await;
}

#[tokio::test]
async fn check_names_certificates_that_cannot_be_used_here() {
    let listener = json!({
        "Certificates": [],
        "ClientCertificateMode": "RequireCertificate",
        "ClientCaFile": "/no/such-ca.pem",
    });
    let client = json!({ "ClientCertificate": { "Path": "/no/such-client.pem" } });
    let text = config("https://d.example/", &listener, &client);
    let file = ConfigFile::new(&text);
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    let verdict: Value = serde_json::from_str(&checked.stdout).unwrap();
    let problems = verdict["problems"].as_array().unwrap().iter();
    let mut found: Vec<_> = problems
        .filter(|problem| problem["code"] == "unusable_certificate")
        .map(|problem| {
            (
                problem["pointer"].as_str().unwrap(),
                problem["message"].as_str().unwrap(),
            )
        })
        .collect();
    found.sort_unstable();
    let pointers: Vec<_> = found.iter().map(|(pointer, _)| *pointer).collect();
    assert_eq!(
        pointers,
        [
            "/Listeners/secure/Tls/ClientCaFile",
            "/ReverseProxy/Clusters/c/HttpClient"
        ]
    );
    assert!(found[0].1.contains("/no/such-ca.pem") && found[1].1.contains("/no/such-client.pem"));

    // Requests for the cluster would get 502: an error on the machine that the file is for.
    let text = config("https://d.example/", &json!(null), &client);
    let text = text.replacen(r#","Tls":null"#, "", 1);
    let file = ConfigFile::new(&text);
    for (option, expected) in [(None, "warning"), (Some("--here"), "error")] {
        let file = file.argument();
        let mut arguments = vec!["check", "--config", &file, "--format", "json"];
        arguments.extend(option);
        let checked = output(&arguments).await;
        let verdict: Value = serde_json::from_str(&checked.stdout).unwrap();
        let problems = verdict["problems"].as_array().unwrap();
        let place = "/ReverseProxy/Clusters/c/HttpClient";
        let found = problems.iter().find(|problem| problem["pointer"] == place);
        assert_eq!(found.unwrap()["severity"], expected);
        assert_eq!(verdict["valid"], expected == "warning");
    }
}

/// A document whose routes are behind policies for client certificates.
fn guarded_config(origin: &str, listener: &Value, machines: &Value) -> String {
    let route = |path: &str, policy: &str| {
        json!({
            "ClusterId": "c",
            "Match": { "Path": path },
            "AuthorizationPolicy": policy,
        })
    };
    json!({
        "Listeners": {
            "secure": { "Address": "127.0.0.1:0", "Tls": listener },
            "clear": { "Address": "127.0.0.1:0" },
        },
        "Admin": { "Address": "127.0.0.1:0" },
        "Policies": { "Authorization": {
            "machines": {
                "ClientCertificate": machines,
                "ClaimHeaders": { "X-Subject": "subject", "X-Fingerprint": "fingerprint" },
            },
            "verified": { "ClientCertificate": {} },
        } },
        "ReverseProxy": {
            "Routes": {
                "machines": route("/machines", "machines"),
                "verified": route("/verified", "verified"),
                "open": route("/open", "Anonymous"),
            },
            "Clusters": { "c": { "Destinations": { "d": { "Address": origin } } } },
        },
    })
    .to_string()
}

/// Client certificates are optional for the listener, and required by the policies of some routes.
#[tokio::test]
async fn policies_admit_certificates_that_the_listener_has_verified() {
    let Some(peer) = peers::find("curl") else {
        return;
    };
    let [servers, clients, strangers] =
        ["servers", "clients", "strangers"].map(CertificateAuthority::new);
    let server = servers.issue(&["a.example"]).write_pem();
    let [orders, payments] = ["orders", "payments"].map(|name| clients.issue_client(name));
    let (orders, payments) = (orders.write_pem(), payments.write_pem());
    // The right name, of the wrong authority.
    let stranger = strangers.issue_client("orders").write_pem();
    let authority = server.add_authority(&clients);
    let origin = Origin::builder().start_echo();
    let listener = json!({
        "Certificates": [{ "CertificateFile": server.certificate(), "KeyFile": server.key() }],
        "ClientCertificateMode": "AllowCertificate",
        "ClientCaFile": authority,
    });
    let machines = json!({ "Subjects": ["CN=orders"] });
    let file = ConfigFile::new(&guarded_config(&origin.url(), &listener, &machines));
    let process = start(&["run", "--config", &file.argument()], READY).await;
    let secure = address_after(&process.output(), "listening on https://");
    let clear = address_after(&process.output(), "listening on http://");
    let servers = server.add_authority(&servers).display().to_string();
    let ask = async |protocol: &str, path: &str, identity: Option<(&Path, &Path)>| {
        let mut command = peer.command();
        let port = secure.port();
        command.args([
            "-sS",
            protocol,
            "--cacert",
            &servers,
            "-w",
            "\n%{http_code}",
        ]);
        command.args(["--resolve", &format!("a.example:{port}:127.0.0.1")]);
        // What a client says of itself counts for nothing.
        command.args([
            "-H",
            "X-Subject: CN=orders",
            "-H",
            "X-Forwarded-Client-Cert: Subject=\"CN=orders\"",
        ]);
        if let Some((certificate, key)) = identity {
            command.arg("--cert").arg(certificate).arg("--key").arg(key);
        }
        command.arg(format!("https://a.example:{port}{path}"));
        let answer = peers::output(command).await;
        let (body, status) = answer.stdout.rsplit_once('\n').unwrap();
        (status.parse::<u16>().unwrap(), body.to_owned())
    };
    let files = |identity: &'static str| match identity {
        "orders" => Some((orders.certificate(), orders.key())),
        "payments" => Some((payments.certificate(), payments.key())),
        _ => None,
    };
    for protocol in ["--http1.1", "--http2"] {
        for (path, identity, expected) in [
            ("/machines", "orders", 200),
            ("/machines", "payments", 403),
            ("/machines", "", 403),
            ("/verified", "payments", 200),
            ("/verified", "", 403),
            ("/open", "", 200),
            ("/open", "payments", 200),
        ] {
            let (status, body) = ask(protocol, path, files(identity)).await;
            assert_eq!(status, expected, "{protocol} {path} {identity}: {body}");
            if (path, status) == ("/machines", 200) {
                let echo: Echo = serde_json::from_str(&body).unwrap();
                assert_eq!(echo.header("x-subject"), ["CN=orders"]);
                assert_eq!(echo.header("x-fingerprint")[0].len(), 64);
                assert!(echo.header("x-forwarded-client-cert").is_empty());
            }
        }
    }
    // The listener itself rejects a certificate of another authority.
    let rejected = ask(
        "--http1.1",
        "/open",
        Some((stranger.certificate(), stranger.key())),
    )
    .await;
    assert_eq!(rejected.0, 0);
    let mut command = peer.command();
    command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}"]);
    command.arg(format!("http://{clear}/machines"));
    let plain = peers::output(command).await;
    assert_eq!(plain.stdout, "403", "there is no certificate without TLS");

    // Another rule takes effect without a restart.
    let machines = json!({ "Subjects": ["CN=payments"] });
    file.write(&guarded_config(&origin.url(), &listener, &machines));
    eventually("the rule is another one", async || {
        ask("--http1.1", "/machines", files("payments")).await.0 == 200
    })
    .await;
    assert_eq!(ask("--http2", "/machines", files("orders")).await.0, 403);
}

#[tokio::test]
async fn check_tells_of_policies_for_certificates_that_nobody_can_present() {
    let text = guarded_config(
        "http://127.0.0.1:9/",
        &json!(null),
        &json!({ "Names": ["a.example"] }),
    );
    let text = text.replacen(r#","Tls":null"#, "", 1);
    let file = ConfigFile::new(&text);
    let checked = output(&["check", "--config", &file.argument(), "--format", "json"]).await;
    let verdict: Value = serde_json::from_str(&checked.stdout).unwrap();
    let problems = verdict["problems"].as_array().unwrap().iter();
    let told: Vec<_> = problems
        .filter(|problem| problem["code"] == "no_client_certificates")
        .map(|problem| problem["pointer"].as_str().unwrap())
        .collect();
    let place = |name: &str| format!("/Policies/Authorization/{name}/ClientCertificate");
    assert_eq!(told, [place("machines"), place("verified")]);
}
