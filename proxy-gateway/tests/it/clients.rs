//! The page "Policies", section "Who the client is": its examples, with curl and HAProxy as load balancers.

use std::net::SocketAddr;
use std::time::Duration;

use testkit::peers;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

use crate::common::{ConfigFile, output};
use crate::policies::{Gateway, example};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The value of the last `X-Forwarded-For` that the destination got.
fn told(origin: &RawOrigin) -> String {
    let recordings = origin.recordings();
    let text = recordings.last().map(|recording| recording.text());
    let text = text.unwrap_or_default();
    let mut lines = text.lines().rev();
    let line = lines.find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("x-forwarded-for: ")
            .map(str::to_owned)
    });
    line.unwrap_or_default()
}

#[tokio::test]
async fn a_trusted_proxy_says_who_the_client_is() {
    let origin = RawOrigin::answering(OK);
    let text = example("TrustedProxies");
    let gateway = Gateway::start(&text, origin.addr()).await;
    let reported = ["X-Forwarded-For: 6.6.6.6, 192.0.2.1, 10.0.0.9"];
    assert_eq!(gateway.send("GET /x", &reported).await.0, 200);
    assert_eq!(told(&origin), "192.0.2.1");

    // The same, explained.
    let file = ConfigFile::new(&text);
    let url = "http://localhost/x";
    for (sender, client) in [("10.0.0.1:1", "192.0.2.1"), ("192.0.2.66:1", "192.0.2.66")] {
        let explained = output(&[
            "explain",
            "--config",
            &file.argument(),
            "--url",
            url,
            "--header",
            reported[0],
            "--remote-addr",
            sender,
        ])
        .await;
        let expected = format!("x-forwarded-for: {client}\n");
        assert!(
            explained.stdout.to_lowercase().contains(&expected),
            "{}",
            explained.stdout
        );
    }
}

#[tokio::test]
async fn mistakes_in_who_is_trusted_are_named() {
    for (listener, pointer) in [
        (r#""TrustedProxies": {}"#, "/Listeners/a/TrustedProxies"),
        (
            r#""TrustedProxies": { "Networks": [] }"#,
            "/Listeners/a/TrustedProxies",
        ),
        (
            r#""TrustedProxies": { "Networks": ["10.0.0.1/8"] }"#,
            "/Listeners/a/TrustedProxies/Networks/0",
        ),
        (
            r#""TrustedProxies": { "Networks": ["10.0.0.0/8"], "Header": "X-Real-IP" }"#,
            "/Listeners/a/TrustedProxies/Header",
        ),
        (
            r#""TrustedSenders": true, "TrustedProxies": { "Networks": ["10.0.0.0/8"] }"#,
            "/Listeners/a/TrustedSenders",
        ),
        (r#""ProxyProtocol": true"#, "/Listeners/a/ProxyProtocol"),
        (r#""ProxyProtocol": {}"#, "/Listeners/a/ProxyProtocol"),
        (
            r#""ProxyProtocol": { "From": ["10.0.0.0/8"], "Timeout": "0s" }"#,
            "/Listeners/a/ProxyProtocol/Timeout",
        ),
    ] {
        let text =
            format!(r#"{{ "Listeners": {{ "a": {{ "Address": "127.0.0.1:0", {listener} }} }} }}"#);
        let file = ConfigFile::new(&text);
        let told = output(&["check", "--format", "json", "--config", &file.argument()]).await;
        let verdict: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        let problems = verdict["problems"].as_array().unwrap();
        let places: Vec<_> = problems
            .iter()
            .map(|p| p["pointer"].as_str().unwrap())
            .filter(|pointer| pointer.starts_with("/Listeners"))
            .collect();
        assert_eq!(places, [pointer], "{listener}");
    }
}

/// Sends `GET /x` with curl and these arguments. Returns the status.
async fn curl(address: SocketAddr, arguments: &[&str]) -> Option<String> {
    let mut command = peers::find("curl")?.command();
    command.args([
        "--silent",
        "--show-error",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code}",
    ]);
    command.args(arguments).arg(format!("http://{address}/x"));
    Some(peers::output(command).await.stdout)
}

#[tokio::test]
async fn curl_begins_with_the_header() {
    let origin = RawOrigin::answering(OK);
    let gateway = Gateway::start(&example("ProxyProtocol"), origin.addr()).await;
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let arguments = ["--haproxy-protocol", version];
        let Some(status) = curl(gateway.address, &arguments).await else {
            return;
        };
        assert_eq!(status, "200", "{version}");
        assert_eq!(told(&origin), "127.0.0.1");
        assert_eq!(curl(gateway.address, &[version]).await.unwrap(), "000");
    }
}

#[tokio::test]
async fn haproxy_speaks_for_its_clients() {
    let Some(haproxy) = peers::find("haproxy") else {
        return;
    };
    let origin = RawOrigin::answering(OK);
    let gateway = Gateway::start(&example("ProxyProtocol"), origin.addr()).await;
    for option in ["send-proxy", "send-proxy-v2"] {
        let front = SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
        // A client of its own address: HAProxy listens with the protocol as well, which names one.
        let file = ConfigFile::new(&format!(
            "defaults\n  mode tcp\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
             frontend f\n  bind {front} accept-proxy\n  default_backend b\n\
             backend b\n  server s {} {option}\n",
            gateway.address
        ));
        let mut command = haproxy.command();
        command.args(["-db", "-f", &file.argument()]);
        let _process = peers::spawn(command);
        let request =
            "PROXY TCP4 192.0.2.9 192.0.2.1 4711 80\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n";
        eventually("HAProxy listens", async || {
            let answer = RawClient::exchange(front, request);
            let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
            answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status() == 200))
        })
        .await;
        assert_eq!(told(&origin), "192.0.2.9", "{option}");
    }
}

/// HAProxy as a destination: it says who the client is by the header that it reads.
#[tokio::test]
async fn haproxy_reads_the_header_of_the_gateway() {
    let Some(haproxy) = peers::find("haproxy") else {
        return;
    };
    let destination = SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
    let file = ConfigFile::new(&format!(
        "defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
         frontend f\n  bind {destination} accept-proxy\n  \
         http-request return status 200 content-type text/plain lf-string \"%[src]:%[src_port] to %[dst]:%[dst_port]\"\n"
    ));
    let mut command = haproxy.command();
    command.args(["-db", "-f", &file.argument()]);
    let _process = peers::spawn(command);
    let gateway = Gateway::start(&example("SendProxyProtocol"), destination).await;
    eventually("HAProxy listens", async || {
        gateway.send("GET /x", &[]).await.0 == 200
    })
    .await;
    for _ in 0..2 {
        let mut client = RawClient::connect(gateway.address).await.unwrap();
        let expected = format!("{} to {}", client.local_addr(), gateway.address);
        // The connection of the client stays, and those to the destination do not.
        for _ in 0..3 {
            client
                .write_all("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                .await
                .unwrap();
            let response = client.read_response().await.unwrap();
            assert_eq!(
                (response.status(), response.text()),
                (200, expected.clone())
            );
        }
    }
}

/// nginx as a destination, the same way.
#[tokio::test]
async fn nginx_reads_the_header_of_the_gateway() {
    let Some(nginx) = peers::find("nginx") else {
        return;
    };
    let destination = SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("nginx.conf");
    let text = format!(
        r#"daemon off; master_process off; pid nginx.pid; events {{}}
        http {{
            access_log off;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            server {{
                listen {destination} proxy_protocol;
                return 200 "$proxy_protocol_addr:$proxy_protocol_port to $proxy_protocol_server_addr:$proxy_protocol_server_port";
            }}
        }}"#
    );
    std::fs::write(&file, text).expect("the folder is ours");
    let mut command = nginx.command();
    command.args(["-e", "stderr", "-p"]).arg(folder.path());
    command.arg("-c").arg(&file);
    let _process = peers::spawn(command);
    let gateway = Gateway::start(&example("SendProxyProtocol"), destination).await;
    eventually("nginx listens", async || {
        gateway.send("GET /x", &[]).await.0 == 200
    })
    .await;
    let mut client = RawClient::connect(gateway.address).await.unwrap();
    let expected = format!("{} to {}", client.local_addr(), gateway.address);
    for _ in 0..2 {
        let request = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
        client.write_all(request).await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(
            (response.status(), response.text()),
            (200, expected.clone())
        );
    }
}
