//! The page "Policies": each of its examples, in front of a real origin, over the bytes of HTTP/1.1.

use crate::common::{ConfigFile, address_after, output, start};
use crate::docs::page;
use std::net::SocketAddr;
use testkit::origin::Origin;
use testkit::peers::PeerProcess;
use testkit::raw::{RawClient, RawOrigin};
use testkit::time::eventually;

const READY: &str = "a second Ctrl-C stops at once";

/// The example of the page that has this text.
pub(crate) fn example(text: &str) -> String {
    let page = page("policies.md");
    let mut blocks = page.blocks.iter();
    let found = blocks.find(|block| block.info == "json config" && block.text.contains(text));
    found.expect("the page has it").text.clone()
}

/// The layer on top of the examples: free ports, and a destination that exists.
fn overlay((listener, port): (&str, u16), destination: SocketAddr, more: &str) -> String {
    format!(
        r#"{{
            "Listeners": {{ "{listener}": {{ "Address": "127.0.0.1:{port}" }} }},
            "Admin": {{ "Address": "127.0.0.1:0" }},
            "ReverseProxy": {{ "Clusters": {{ "api": {{ "Destinations": {{ "1": {{ "Address": "http://{destination}/" }} }} }} }} }}
            {more}
        }}"#
    )
}

pub(crate) struct Gateway {
    _process: PeerProcess,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    file: ConfigFile,
    _top: ConfigFile,
}

impl Gateway {
    pub(crate) async fn start(example: &str, destination: SocketAddr) -> Self {
        Self::start_at(example, destination, 0).await
    }

    /// Starts one that listens at this port.
    async fn start_at(example: &str, destination: SocketAddr, port: u16) -> Self {
        let listener = if example.contains("\"tcp\"") {
            "tcp"
        } else {
            "web"
        };
        let (file, top) = (
            ConfigFile::new(example),
            ConfigFile::new(&overlay((listener, port), destination, "")),
        );
        let (below, above) = (file.argument(), top.argument());
        let process = start(&["run", "--config", &below, "--config", &above], READY).await;
        let address = address_after(&process.output(), "listening on http://");
        let admin = address_after(&process.output(), "admin page on http://");
        Self {
            _process: process,
            address,
            admin,
            file,
            _top: top,
        }
    }

    /// The metrics.
    pub(crate) async fn metrics(&self) -> String {
        send(self.admin, "GET /metrics", &[]).await.1
    }

    /// The response of the admin API.
    pub(crate) async fn told(&self, path: &str) -> String {
        send(self.admin, &format!("GET /api/v1/{path}"), &[])
            .await
            .1
    }

    /// The lines of the log with this text.
    pub(crate) fn logged(&self, text: &str) -> usize {
        let output = self._process.output();
        output.lines().filter(|line| line.contains(text)).count()
    }

    /// The status and the text of the response to a request with these lines.
    pub(crate) async fn send(&self, line: &str, headers: &[&str]) -> (u16, String) {
        send(self.address, line, headers).await
    }
}

async fn send(address: SocketAddr, line: &str, headers: &[&str]) -> (u16, String) {
    let mut text = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    let response = RawClient::exchange(address, text)
        .await
        .expect("it answers");
    let head = String::from_utf8_lossy(&response.head.bytes).into_owned();
    (response.status(), head + &response.text())
}

#[tokio::test]
async fn rate_limits_survive_a_reload_and_are_counted() {
    let origin = Origin::named("api");
    let few = example("SlidingWindow").replace(r#""PermitLimit": 100"#, r#""PermitLimit": 2"#);
    let gateway = Gateway::start(&few, origin.addr()).await;
    let (status, head) = gateway.send("GET /api/orders", &[]).await;
    assert_eq!(status, 200, "{head}");
    let lower = head.to_ascii_lowercase();
    assert!(
        lower.contains("\r\nratelimit-policy: \"api\";q=2;w=60\r\n"),
        "{head}"
    );
    assert!(lower.contains("\r\nratelimit: \"api\";r=1;t="), "{head}");
    assert_eq!(gateway.send("GET /api/orders", &[]).await.0, 200);
    let (status, head) = gateway.send("GET /api/orders", &[]).await;
    assert_eq!(status, 429, "{head}");
    assert!(
        head.to_ascii_lowercase().contains("\r\nretry-after: "),
        "{head}"
    );
    assert_eq!(origin.traffic().requests(), 2, "the third never came");

    // Another route, and the same policy.
    let more = few.replace(
        r#""Routes": {"#,
        r#""Routes": { "new": { "ClusterId": "api", "Match": { "Path": "/new" } },"#,
    );
    assert_ne!(more, few);
    gateway.file.write(&more);
    eventually("the new route is there", async || {
        gateway.send("GET /new", &[]).await.0 == 200
    })
    .await;
    assert_eq!(gateway.send("GET /api/orders", &[]).await.0, 429);

    // A mistake changes nothing.
    gateway
        .file
        .write(&more.replace(r#""PermitLimit": 2"#, r#""PermitLimit": 0"#));
    eventually("the mistake is told", async || {
        let (_, problems) = send(gateway.admin, "GET /api/v1/problems", &[]).await;
        problems.contains("/Policies/RateLimiter/api/PermitLimit")
    })
    .await;
    assert_eq!(gateway.send("GET /api/orders", &[]).await.0, 429);

    // Another limit takes effect without a restart.
    gateway
        .file
        .write(&more.replace(r#""PermitLimit": 2"#, r#""PermitLimit": 50"#));
    eventually("the limit is another one", async || {
        gateway.send("GET /api/orders", &[]).await.0 == 200
    })
    .await;
    let (_, metrics) = send(gateway.admin, "GET /metrics", &[]).await;
    let admitted =
        r#"proxy_policy_decisions_total{kind="RateLimiter",policy="api",outcome="admitted"}"#;
    assert!(metrics.contains(admitted), "{metrics}");
}

#[tokio::test]
async fn scripts_of_allowed_origins_may_read() {
    // The destination has an opinion of its own, which the policy replaces.
    let origin = RawOrigin::answering(
        "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nVary: Accept\r\nContent-Length: 0\r\n\r\n",
    );
    let gateway = Gateway::start(&example("\"Cors\""), origin.addr()).await;
    let preflight = [
        "Origin: https://a.example.org",
        "Access-Control-Request-Method: PUT",
    ];
    let (status, head) = gateway.send("OPTIONS /api/orders", &preflight).await;
    let lower = head.to_ascii_lowercase();
    assert_eq!(status, 204, "{head}");
    for line in [
        "access-control-allow-origin: https://a.example.org",
        "access-control-allow-credentials: true",
        "access-control-allow-methods: get,put",
        "access-control-allow-headers: content-type",
        "access-control-max-age: 600",
        "vary: origin",
    ] {
        assert!(
            lower.contains(&format!("\r\n{line}\r\n")),
            "{line} in {head}"
        );
    }
    let (status, head) = gateway.send("GET /api/orders", &preflight[..1]).await;
    let lower = head.to_ascii_lowercase();
    assert_eq!(status, 200, "{head}");
    let allowed = lower.matches("access-control-allow-origin: ").count();
    assert_eq!(allowed, 1, "{head}");
    assert!(
        lower.contains("access-control-allow-origin: https://a.example.org\r\n"),
        "{head}"
    );
    assert!(
        lower.contains("vary: accept\r\n") && lower.contains("vary: origin\r\n"),
        "{head}"
    );
    let (_, head) = gateway
        .send("GET /api/orders", &["Origin: https://evil.example"])
        .await;
    assert!(!head.to_ascii_lowercase().contains("evil"), "{head}");
}

#[tokio::test]
async fn routes_are_closed_to_those_who_may_not_come() {
    let (seen, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let origin = RawOrigin::script(move |mut connection| {
        let seen = seen.clone();
        async move {
            loop {
                let head = connection.read_request().await?;
                let _ = seen.send(String::from_utf8_lossy(&head.bytes).into_owned());
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                connection.write_all(answer).await?;
            }
        }
    });
    let gateway = Gateway::start(&example("\"Fallback\""), origin.addr()).await;
    assert_eq!(gateway.send("GET /api/x", &[]).await.0, 200);
    let (status, head) = gateway.send("GET /staff/x", &["X-User: root"]).await;
    assert_eq!(status, 401, "{head}");
    let challenge = "www-authenticate: basic realm=\"staff\", charset=\"utf-8\"";
    assert!(head.to_ascii_lowercase().contains(challenge), "{head}");
    // `ann:secret`, as the page has it, and a wrong one.
    let right = ["Authorization: Basic YW5uOnNlY3JldA==", "X-User: root"];
    assert_eq!(gateway.send("GET /staff/x", &right).await.0, 200);
    // A client cannot take away what the policy tells the destination.
    let named = [right[0], "X-User: root", "Connection: close, X-User"];
    assert_eq!(gateway.send("GET /staff/x", &named).await.0, 200);
    assert_eq!(
        gateway
            .send("GET /staff/x", &["Authorization: Basic YW5uOng="])
            .await
            .0,
        401
    );

    // Without this machine's network, only the open route is reachable.
    let elsewhere = example("\"Fallback\"").replace("\"127.0.0.0/8\", ", "");
    gateway.file.write(&elsewhere);
    eventually("the network is not allowed any more", async || {
        gateway.send("GET /api/x", &[]).await.0 == 403
    })
    .await;
    assert_eq!(gateway.send("GET /public/x", &[]).await.0, 200);

    let mut of_staff = Vec::new();
    while let Ok(head) = requests.try_recv() {
        if head.contains("/staff/") {
            of_staff.push(head.to_ascii_lowercase());
        }
    }
    assert_eq!(
        of_staff.len(),
        2,
        "only the right password came through: {of_staff:?}"
    );
    for head in &of_staff {
        assert!(head.contains("x-user: ann"), "{of_staff:?}");
        assert!(!head.contains("root"), "{of_staff:?}");
    }
}

#[tokio::test]
async fn slow_requests_end_with_the_time_of_their_policy() {
    let origin = RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.never_answer().await
    });
    let soon = example("\"Timeout\": \"2m\"").replace("2m", "200ms");
    let gateway = Gateway::start(&soon, origin.addr()).await;
    let (status, head) = gateway.send("GET /reports/x", &[]).await;
    assert_eq!(status, 504, "{head}");
}

#[tokio::test]
async fn check_and_explain_know_policies() {
    let good = ConfigFile::new(&example("SlidingWindow"));
    let url = "http://localhost/api/orders";
    let told = output(&["explain", "--config", &good.argument(), "--url", url]).await;
    assert!(
        told.stdout.contains("RateLimiterPolicy api"),
        "{}",
        told.stdout
    );

    let text = example("SlidingWindow").replace(
        r#""RateLimiterPolicy": "api""#,
        r#""RateLimiterPolicy": "apy""#,
    );
    let unknown = ConfigFile::new(&text);
    let told = output(&["check", "--config", &unknown.argument()]).await;
    let said = format!("{}{}", told.stdout, told.stderr);
    assert!(
        said.contains("/ReverseProxy/Routes/api/RateLimiterPolicy"),
        "{said}"
    );
    assert!(said.contains("did you mean `api`?"), "{said}");

    // A policy with a mistake is one problem, and not another one for each route.
    let wrong = ConfigFile::new(&example("SlidingWindow").replace("SlidingWindow", "Sliding"));
    let told = output(&["check", "--format", "json", "--config", &wrong.argument()]).await;
    let verdict: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let problems = verdict["problems"].as_array().unwrap();
    let places: Vec<_> = problems
        .iter()
        .map(|p| p["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(places, ["/Policies/RateLimiter/api/Kind"]);

    let text = example("\"Discovered\"").replace("[ \"few\" ]", "[ \"many\" ]");
    let unknown = ConfigFile::new(&text);
    let told = output(&["check", "--config", &unknown.argument()]).await;
    let said = format!("{}{}", told.stdout, told.stderr);
    assert!(
        said.contains("/Policies/Discovered/ConsulDiscovery/RateLimiter"),
        "{said}"
    );
}

#[tokio::test]
async fn another_service_decides_about_requests_and_handshakes() {
    let origin = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let service = RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            let text = String::from_utf8_lossy(&head.bytes).to_lowercase();
            let answer = match text.contains("cookie: session=ann") {
                true => "HTTP/1.1 204 No Content\r\nX-User: ann\r\n\r\n",
                false => {
                    "HTTP/1.1 302 Found\r\nLocation: https://login.example/\r\nContent-Length: 2\r\n\r\ngo"
                }
            };
            connection.write_all(answer).await?;
        }
    });
    let text = example("ForwardAuth").replace("127.0.0.1:9000", &service.addr().to_string());
    let gateway = Gateway::start(&text, origin.addr()).await;
    // The service judges the headers that the destination gets, and a client takes none of them away.
    let known = [
        "Cookie: session=ann",
        "X-User: root",
        "Connection: close, Cookie, X-User",
    ];
    assert_eq!(gateway.send("GET /shop/x?y", &known).await.0, 200);
    let told = origin.recordings()[0].text().to_lowercase();
    assert!(
        told.contains("\r\nx-user: ann\r\n")
            && told.contains("\r\ncookie: session=ann\r\n")
            && !told.contains("root"),
        "{told}"
    );
    let asked = service.recordings()[0].text().to_lowercase();
    assert!(asked.starts_with("get /verify http/1.1\r\n"), "{asked}");
    assert!(
        asked.contains("\r\nx-forwarded-uri: /shop/x?y\r\n"),
        "{asked}"
    );
    let handshake = [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    for headers in [&[][..], &handshake] {
        let (status, text) = gateway.send("GET /shop/x", headers).await;
        assert_eq!(status, 302, "{text}");
        assert!(
            text.contains("https://login.example/") && text.ends_with("go"),
            "{text}"
        );
    }
    service.stop().await;
    assert_eq!(gateway.send("GET /shop/x", &known).await.0, 503);
    assert_eq!(origin.recordings().len(), 1, "nothing else came through");
}

#[tokio::test]
async fn tokens_need_keys() {
    let origin = Origin::named("api");
    let issuer = RawOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"keys\":[]}");
    let uri = format!("http://{}/keys", issuer.addr());
    let text = example("\"Jwt\"").replace("https://login.example.com/.well-known/jwks.json", &uri);
    let gateway = Gateway::start(&text, origin.addr()).await;
    let (status, head) = gateway.send("GET /orders/1", &[]).await;
    assert_eq!(status, 401, "{head}");
    assert!(
        head.to_ascii_lowercase()
            .contains("www-authenticate: bearer realm=\"proxy\"\r\n"),
        "{head}"
    );
    let token = ["Authorization: Bearer eyJhbGciOiJFUzI1NiJ9.e30.AAAA"];
    let (status, head) = gateway.send("GET /orders/1", &token).await;
    assert_eq!(status, 401, "{head}");
    assert!(head.contains("its key is not known"), "{head}");
    assert_eq!(issuer.recordings().len(), 1);
    assert_eq!(origin.traffic().requests(), 0);
}

/// A dead authorization service is the operator's concern, and not the client's fault: status, metric, verdict, problem
/// and log name it.
#[tokio::test]
async fn a_dead_authorization_service_is_named_to_operators() {
    let origin = Origin::named("api");
    let dead = testkit::faults::RefusingPort::new();
    let config = format!(
        r#"{{ "Policies": {{ "Authorization": {{ "staff": {{ "ForwardAuth": {{ "Address": "http://{}/verify?key=hush" }} }} }} }},
            "ReverseProxy": {{
                "Routes": {{ "api": {{ "ClusterId": "api", "AuthorizationPolicy": "staff", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "api": {{}} }} }} }}"#,
        dead.addr()
    );
    let gateway = Gateway::start(&config, origin.addr()).await;
    assert_eq!(gateway.send("GET /a", &[]).await.0, 503);
    assert_eq!(gateway.send("GET /a", &[]).await.0, 503);
    let service = format!("authorization service http://{}/verify", dead.addr());
    // A request counts when its response has ended.
    let shows = async |path: &str, part: &str| {
        eventually(part, async || {
            send(gateway.admin, path, &[]).await.1.contains(part)
        })
        .await;
    };
    for part in [
        &format!("Unable to authorize: staff ({service}") as &str,
        r#""kind":"policy","id":"staff","state":"failing","cause":"authorization_unavailable","side":"proxy""#,
    ] {
        shows("GET /api/v1/overview", part).await;
    }
    let series = r#"cause="authorization_unavailable",side="proxy"} 2"#;
    shows("GET /metrics", series).await;
    let (_, overview) = send(gateway.admin, "GET /api/v1/overview", &[]).await;
    let (_, problems) = send(gateway.admin, "GET /api/v1/problems", &[]).await;
    assert!(
        problems.contains("/Policies/Authorization/staff"),
        "{problems}"
    );
    let process = &gateway._process;
    let lines: Vec<_> = process
        .output()
        .lines()
        .filter(|line| line.contains("the service of a policy fails"))
        .map(str::to_owned)
        .collect();
    assert_eq!(lines.len(), 1, "one line for the outage: {lines:?}");
    assert!(
        lines[0].contains("staff") && lines[0].contains("refused"),
        "{lines:?}"
    );
    for text in [&overview, &problems, &lines[0]] {
        assert!(!text.contains("hush"), "{text}");
    }
}

/// The address is that of the route with the policy, and that of a route whose destination is the first one.
#[tokio::test]
async fn a_service_that_leads_back_to_its_policy_is_asked_once() {
    let origin = Origin::named("api");
    let port = testkit::peers::free_port();
    for (path, loops) in [("/a", 1), ("/around/a", 1)] {
        let config = format!(
            r#"{{ "Policies": {{ "Authorization": {{ "staff": {{ "ForwardAuth": {{ "Address": "http://127.0.0.1:{port}{path}" }} }} }} }},
                "ReverseProxy": {{
                    "Routes": {{
                        "api": {{ "ClusterId": "api", "AuthorizationPolicy": "staff", "Match": {{ "Path": "/{{**rest}}" }} }},
                        "around": {{ "ClusterId": "self", "Match": {{ "Path": "/around/{{**rest}}" }} }} }},
                    "Clusters": {{ "api": {{}}, "self": {{ "Destinations": {{ "1": {{ "Address": "http://127.0.0.1:{port}/" }} }} }} }} }} }}"#
        );
        let gateway = Gateway::start_at(&config, origin.addr(), port).await;
        let (status, text) = gateway.send("GET /a", &[]).await;
        assert_eq!(status, 503, "{path}: {text}");
        // A request counts when its response has ended.
        for series in [
            r#"cause="authorization_unavailable",side="proxy"} 1"#.to_owned(),
            format!(r#"cause="loop_detected",side="proxy"}} {loops}"#),
        ] {
            eventually(format!("{path}: {series}"), async || {
                let (_, metrics) = send(gateway.admin, "GET /metrics", &[]).await;
                metrics.contains(&series)
            })
            .await;
        }
        let (_, problems) = send(gateway.admin, "GET /api/v1/problems", &[]).await;
        for part in ["/Policies/Authorization/staff", "lead back"] {
            assert!(problems.contains(part), "{path}: {part}: {problems}");
        }
    }
    assert_eq!(origin.traffic().requests(), 0);
}
