//! One authorization service behind nginx (`auth_request`), Caddy (`forward_auth`), Traefik (`forwardAuth`) and the
//! gateway: what clients get, what the service is asked, and what the destination is told.

use std::net::SocketAddr;

use serde_json::json;
use tempfile::TempDir;
use testkit::peers::{self, Peer, PeerProcess, address_after, free_port};
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

use crate::common::{ConfigFile, start};

/// The authorization service, which does as the client's header `X-Case` says.
fn service() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            let response = match head.header("x-case").unwrap_or_default() {
                "admit" => {
                    "HTTP/1.1 200 OK\r\nX-User: ann\r\nX-Other: 1\r\nContent-Length: 0\r\n\r\n"
                }
                "unknown" => {
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"staff\"\r\nContent-Length: 5\r\n\r\nwho\r\n"
                }
                "forbid" => "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno\r\n",
                "login" => {
                    "HTTP/1.1 302 Found\r\nLocation: https://login.example/\r\nContent-Length: 0\r\n\r\n"
                }
                "break" => "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
                // The connection closes without a response.
                _ => return Ok(()),
            };
            connection.write_all(response).await?;
        }
    })
}

/// The destination. It accepts upgrades to WebSocket, and sends back what it gets then.
fn destination() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        loop {
            let (head, _) = connection.read_whole_request().await?;
            if head.header("upgrade").is_some() {
                connection
                    .write_all(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello",
                    )
                    .await?;
                return Ok(());
            }
            connection
                .write_all("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .await?;
        }
    })
}

/// A program in front of the service and the destination.
struct Front {
    name: &'static str,
    address: SocketAddr,
    service: RawOrigin,
    destination: RawOrigin,
    _process: PeerProcess,
    _folder: Option<TempDir>,
    _file: Option<ConfigFile>,
}

/// A request, and the status of the response from each of [`FRONTS`].
struct Case {
    /// The word for the service.
    word: &'static str,
    line: &'static str,
    headers: &'static str,
    body: &'static str,
    statuses: [u16; 4],
}

const FRONTS: [&str; 4] = ["gateway", "nginx", "caddy", "traefik"];

const WEBSOCKET: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const CASES: [Case; 10] = [
    Case {
        word: "admit",
        line: "GET /a?b=c",
        headers: "",
        body: "",
        statuses: [200; 4],
    },
    Case {
        word: "admit",
        line: "POST /upload",
        headers: "Content-Length: 4\r\n",
        body: "body",
        statuses: [200; 4],
    },
    Case {
        word: "admit",
        line: "GET /spoofed",
        headers: "X-User: root\r\nX-Forwarded-Uri: /public\r\nX-Forwarded-Method: OPTIONS\r\n",
        body: "",
        statuses: [200; 4],
    },
    Case {
        word: "admit",
        line: "GET /socket",
        headers: WEBSOCKET,
        body: "",
        statuses: [101; 4],
    },
    Case {
        word: "unknown",
        line: "GET /socket",
        headers: WEBSOCKET,
        body: "",
        statuses: [401; 4],
    },
    Case {
        word: "unknown",
        line: "GET /closed",
        headers: "",
        body: "",
        statuses: [401; 4],
    },
    Case {
        word: "forbid",
        line: "POST /closed",
        headers: "Content-Length: 4\r\n",
        body: "body",
        statuses: [403; 4],
    },
    // nginx knows 2xx, 401 and 403 only, and takes all else for a failure of the service.
    Case {
        word: "login",
        line: "GET /closed",
        headers: "",
        body: "",
        statuses: [302, 500, 302, 302],
    },
    // A failure of the service is not one of the client: the gateway says that it passes.
    Case {
        word: "break",
        line: "GET /closed",
        headers: "",
        body: "",
        statuses: [503, 500, 500, 500],
    },
    Case {
        word: "vanish",
        line: "GET /closed",
        headers: "",
        body: "",
        statuses: [503, 500, 502, 500],
    },
];

async fn gateway() -> Front {
    let (service, destination) = (service(), destination());
    let config = json!({
        "Listeners": { "web": { "Address": "127.0.0.1:0" } },
        "Admin": { "Address": "127.0.0.1:0" },
        "Policies": { "Authorization": { "ask": { "ForwardAuth": {
            "Address": format!("http://{}/verify", service.addr()), "ResponseHeaders": ["X-User"]
        } } } },
        "ReverseProxy": {
            "Routes": { "all": { "ClusterId": "c", "Match": { "Path": "/{**rest}" }, "AuthorizationPolicy": "ask" } },
            "Clusters": { "c": { "Destinations": { "1": { "Address": destination.url() } } } }
        }
    });
    let file = ConfigFile::new(&config.to_string());
    let process = start(
        &["run", "--config", &file.argument()],
        "a second Ctrl-C stops at once",
    )
    .await;
    Front {
        name: FRONTS[0],
        address: address_after(&process.output(), "listening on http://"),
        service,
        destination,
        _process: process,
        _folder: None,
        _file: Some(file),
    }
}

/// Starts `peer` with a file that `config` writes from the addresses of itself, the service and the destination.
async fn front(
    name: &'static str,
    peer: &Peer,
    file: &str,
    config: impl Fn(SocketAddr, SocketAddr, SocketAddr) -> String,
    arguments: impl Fn(&str, SocketAddr) -> Vec<String>,
) -> Front {
    let (service, destination) = (service(), destination());
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join(file);
    std::fs::write(&path, config(address, service.addr(), destination.addr()))
        .expect("the folder is ours");
    let mut command = peer.command();
    command
        .args(arguments(&path.display().to_string(), address))
        .current_dir(folder.path())
        .env("HOME", folder.path());
    let process = peers::spawn(command);
    let front = Front {
        name,
        address,
        service,
        destination,
        _process: process,
        _folder: Some(folder),
        _file: None,
    };
    eventually(format!("{name} answers"), async || {
        front
            .send(&CASES[0], "start")
            .await
            .is_some_and(|(status, _)| status == 200)
    })
    .await;
    front
}

async fn nginx(peer: &Peer) -> Front {
    let config = |address: SocketAddr, service: SocketAddr, destination: SocketAddr| {
        format!(
            r#"daemon off; master_process off; pid nginx.pid; events {{}}
            http {{
                access_log off;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
                server {{
                    listen {address};
                    location / {{
                        auth_request /verify;
                        auth_request_set $user $upstream_http_x_user;
                        proxy_set_header X-User $user;
                        proxy_set_header Host $http_host;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection $connection_upgrade;
                        proxy_http_version 1.1;
                        proxy_pass http://{destination};
                    }}
                    location = /verify {{
                        internal;
                        proxy_pass http://{service}/verify;
                        proxy_pass_request_body off;
                        proxy_set_header Content-Length "";
                        proxy_set_header X-Forwarded-Method $request_method;
                        proxy_set_header X-Forwarded-Uri $request_uri;
                        proxy_set_header X-Forwarded-Host $http_host;
                        proxy_set_header X-Forwarded-Proto $scheme;
                        proxy_set_header X-Forwarded-For $remote_addr;
                    }}
                }}
            }}"#
        )
    };
    let arguments = |file: &str, _| {
        let directory = file.trim_end_matches("nginx.conf").to_owned();
        ["-e", "stderr", "-p", &directory, "-c", file]
            .map(str::to_owned)
            .to_vec()
    };
    front(FRONTS[1], peer, "nginx.conf", config, arguments).await
}

async fn caddy(peer: &Peer) -> Front {
    let config = |address: SocketAddr, service: SocketAddr, destination: SocketAddr| {
        format!(
            "{{\n admin off\n auto_https off\n}}\nhttp://:{} {{\n bind 127.0.0.1\n forward_auth {service} {{\n  uri /verify\n  \
             copy_headers X-User\n }}\n reverse_proxy {destination}\n}}\n",
            address.port()
        )
    };
    let arguments = |file: &str, _| {
        ["run", "--adapter", "caddyfile", "--config", file]
            .map(str::to_owned)
            .to_vec()
    };
    front(FRONTS[2], peer, "Caddyfile", config, arguments).await
}

async fn traefik(peer: &Peer) -> Front {
    let config = |_: SocketAddr, service: SocketAddr, destination: SocketAddr| {
        json!({ "http": {
            "routers": { "all": { "rule": "PathPrefix(`/`)", "service": "c", "middlewares": ["ask"] } },
            "middlewares": { "ask": { "forwardAuth": {
                "address": format!("http://{service}/verify"), "authResponseHeaders": ["X-User"]
            } } },
            "services": { "c": { "loadBalancer": { "servers": [{ "url": format!("http://{destination}") }] } } }
        } })
        .to_string()
    };
    let arguments = |file: &str, address: SocketAddr| {
        vec![
            format!("--entrypoints.web.address={address}"),
            format!("--providers.file.filename={file}"),
            "--global.checknewversion=false".to_owned(),
            "--global.sendanonymoususage=false".to_owned(),
        ]
    };
    // JSON is YAML.
    front(FRONTS[3], peer, "rules.yaml", config, arguments).await
}

impl Front {
    /// The status and the head of the response, in lower case. The request names itself by `mark`.
    async fn send(&self, case: &Case, mark: &str) -> Option<(u16, String)> {
        let Case {
            word,
            line,
            headers,
            body,
            ..
        } = case;
        let text = format!(
            "{line} HTTP/1.1\r\nHost: shop.example\r\nX-Case: {word}\r\nX-Mark: {mark}\r\n{headers}\r\n{body}"
        );
        let mut client = RawClient::connect(self.address).await.ok()?;
        client.write_all(text).await.ok()?;
        let head = client.read_response_head().await.ok()?;
        Some((
            head.status,
            String::from_utf8_lossy(&head.bytes).to_lowercase(),
        ))
    }

    /// The requests with this mark that a server got: head and body, in lower case.
    fn asked(server: &RawOrigin, mark: &str) -> Vec<String> {
        let wanted = format!("x-mark: {mark}\r\n");
        let recordings = server.recordings();
        let texts = recordings.iter().map(|one| one.text().to_lowercase());
        let requests = texts.flat_map(|text| {
            // Requests follow each other on a connection: each begins with its line.
            let mut starts: Vec<_> = ["get /", "post /"]
                .iter()
                .flat_map(|start| text.match_indices(start).map(|(at, _)| at))
                .filter(|at| {
                    *at == 0 || text[..*at].ends_with("\r\n\r\n") || text[..*at].ends_with("body")
                })
                .collect();
            starts.sort_unstable();
            starts.push(text.len());
            let parts = starts.windows(2);
            parts
                .map(|part| text[part[0]..part[1]].to_owned())
                .collect::<Vec<_>>()
        });
        requests
            .filter(|request| request.contains(&wanted))
            .collect()
    }

    /// Sends a case, and compares what everybody sees.
    async fn play(&self, number: usize, case: &Case, status: u16) {
        let mark = format!("case-{number}");
        let place = format!("{}: {} {}", self.name, case.word, case.line);
        let (found, head) = self
            .send(case, &mark)
            .await
            .unwrap_or_else(|| panic!("{place}: no response"));
        assert_eq!(found, status, "{place}: {head}");
        let asked = Self::asked(&self.service, &mark);
        let asked = asked
            .first()
            .unwrap_or_else(|| panic!("{place}: the service was not asked"));
        let (method, uri) = case.line.split_once(' ').expect("it is a request line");
        for field in [
            format!("x-forwarded-method: {}\r\n", method.to_lowercase()),
            format!("x-forwarded-uri: {uri}\r\n"),
            "x-forwarded-host: shop.example\r\n".to_owned(),
            "x-forwarded-proto: ".to_owned(),
            "x-forwarded-for: 127.0.0.1\r\n".to_owned(),
        ] {
            assert!(asked.contains(&field), "{place}: no {field:?} in {asked}");
        }
        // Caddy keeps the query.
        assert!(asked.starts_with("get /verify"), "{place}: {asked}");
        assert!(
            !asked.ends_with("body"),
            "{place}: the service got the body"
        );
        let told = Self::asked(&self.destination, &mark);
        if case.word != "admit" {
            assert_eq!(told, [""; 0], "{place}: the destination was asked");
        } else {
            let told = told
                .first()
                .unwrap_or_else(|| panic!("{place}: not forwarded"));
            assert!(told.contains("\r\nx-user: ann\r\n"), "{place}: {told}");
            assert!(!told.contains("root"), "{place}: {told}");
            assert!(told.ends_with(case.body), "{place}: {told}");
        }
        let from_service = match (case.word, self.name) {
            ("unknown", _) => "\r\nwww-authenticate: basic realm=\"staff\"\r\n",
            ("login", "gateway" | "caddy" | "traefik") => {
                "\r\nlocation: https://login.example/\r\n"
            }
            _ => "",
        };
        assert!(head.contains(from_service), "{place}: {head}");
    }
}

#[tokio::test]
async fn the_gateway_asks_as_others_do_and_closes_as_they_do() {
    let (Some(nginx_peer), Some(caddy_peer), Some(traefik_peer)) = (
        peers::find("nginx"),
        peers::find("caddy"),
        peers::find("traefik"),
    ) else {
        return;
    };
    let fronts = [
        gateway().await,
        nginx(&nginx_peer).await,
        caddy(&caddy_peer).await,
        traefik(&traefik_peer).await,
    ];
    for (number, case) in CASES.iter().enumerate() {
        for (front, status) in fronts.iter().zip(case.statuses) {
            front.play(number, case, status).await;
        }
    }
}
