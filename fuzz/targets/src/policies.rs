//! Policies as requests meet them: `Authorization` with passwords and with tokens, and `Origin`.

use std::cell::RefCell;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use discovery_http::{Transport, TransportError};
use http::{HeaderValue, Request, Response};
use http_body_util::Empty;
use proxy_model::json::parse_document;
use proxy_model::{Problems, Snapshot};
use proxy_policies::Policies;
use proxy_runtime::{Proxy, ProxyBody, ProxyService};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use crate::input::MAX_BYTES;

/// The hash is one of `secret`, as cheap as can be. A request that passes gets 204.
const DOCUMENT: &str = r#"{
    "Policies": {
        "Authorization": {
            "staff": { "Basic": { "Users": { "ann": "$2b$04$qkrbn6vpAWkcZyG9mTSkouxvnWckGj9p9zipKfj.gJxT2RkWITV7q" } } },
            "token": { "Jwt": { "Issuer": "https://login.example/", "Audiences": ["orders"], "JwksUri": "https://login.example/keys" } }
        },
        "Cors": { "web": {
            "Origins": ["https://a.example", "https://*.b.example:8443"], "AllowWildcardSubdomains": true, "AllowCredentials": true
        } }
    },
    "ReverseProxy": { "Routes": {
        "basic": { "Match": { "Path": "/basic" }, "AuthorizationPolicy": "staff", "Respond": { "Status": 204 } },
        "token": { "Match": { "Path": "/token" }, "AuthorizationPolicy": "token", "Respond": { "Status": 204 } },
        "web": { "Match": { "Path": "/web" }, "CorsPolicy": "web", "Respond": { "Status": 204 } }
    } }
}"#;

/// The keys of the issuer: Ed25519 and P-256.
const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"Bxa7bIH7Wm8rntz3nVKh2AJeqhySQ3VDBA-1ajPl5YU","kid":"ed","alg":"EdDSA","use":"sig"},{"kty":"EC","crv":"P-256","x":"4RO_TcCd3O1RBLKitjig8Pk2sfBPzcdSrVPeLmjg2bY","y":"2V_xjc3_3GBS_ySXNQBXA68sbNC4ETOUbSKEFq5jNJQ","kid":"ec","alg":"ES256","use":"sig"}]}"#;

/// The signed parts of the tokens that the issuer has given out.
const SIGNED: [&str; 3] = [
    "eyJhbGciOiJFZERTQSIsImtpZCI6ImVkIn0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUvIiwiYXVkIjoib3JkZXJzIiwic3ViIjoiYW5uIiwiZXhwIjo0MTAyNDQ0ODAwfQ",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImVjIn0.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUvIiwiYXVkIjoib3JkZXJzIiwic3ViIjoiYW5uIiwiZXhwIjo0MTAyNDQ0ODAwfQ",
    // One with a key of its own in its header, which counts for nothing.
    "eyJhbGciOiJFZERTQSIsImp3ayI6eyJrdHkiOiJPS1AiLCJjcnYiOiJFZDI1NTE5IiwieCI6IkJ4YTdiSUg3V204cm50ejNuVktoMkFKZXFoeVNRM1ZEQkEtMWFqUGw1WVUiLCJraWQiOiJlZCIsImFsZyI6IkVkRFNBIiwidXNlIjoic2lnIn19.eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUvIiwiYXVkIjoib3JkZXJzIiwic3ViIjoiYW5uIiwiZXhwIjo0MTAyNDQ0ODAwfQ",
];

struct Issuer;

#[async_trait]
impl Transport for Issuer {
    async fn send(&self, _: Request<Bytes>, _: usize) -> Result<Response<Bytes>, TransportError> {
        Ok(Response::new(Bytes::from_static(KEYS.as_bytes())))
    }
}

/// A proxy with policies, and the runtime that it is called in.
struct Guarded {
    runtime: Runtime,
    service: ProxyService,
}

thread_local! {
    static GUARDED: RefCell<Guarded> = RefCell::new(Guarded::new());
}

impl Guarded {
    fn new() -> Self {
        let document = parse_document(DOCUMENT).expect("it is written above");
        let mut problems = Problems::new();
        let policies = proxy_policies::read(&document, &mut problems);
        assert!(!problems.has_errors(), "{problems}");
        let source = Policies::new().with_transport(Arc::new(Issuer));
        let builder = Proxy::builder().policies(Arc::new(source));
        let options = builder.compile_options().with_policies(policies);
        let section = document.get("ReverseProxy").expect("it is written above");
        let (snapshot, _) =
            Snapshot::read(section, "/ReverseProxy", &options).expect("it is written above");
        let (proxy, _driver) = builder
            .snapshot(Arc::new(snapshot))
            .build()
            .expect("the policies are those that were read");
        Self {
            runtime: Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime of one thread can be had"),
            service: proxy.service(),
        }
    }
}

/// Sends a request with these lines of a header.
fn send(method: &str, path: &str, name: &str, lines: &[&[u8]]) -> Option<Response<ProxyBody>> {
    let mut request = Request::builder().method(method).uri(path);
    for line in lines {
        // A parser of HTTP rejects the others.
        request = request.header(name, HeaderValue::from_bytes(line).ok()?);
    }
    if method == "OPTIONS" {
        request = request.header("access-control-request-method", "GET");
    }
    let request = request.body(Empty::<Bytes>::new()).ok()?;
    GUARDED.with_borrow_mut(|guarded| {
        let Guarded { runtime, service } = guarded;
        let answered = runtime.block_on(async { service.call(request).await });
        answered.ok()
    })
}

fn lines(data: &[u8]) -> Vec<&[u8]> {
    let data = &data[..data.len().min(MAX_BYTES)];
    data.split(|byte| *byte == b'\n').collect()
}

/// Fuzzes `Authorization` with names and passwords (RFC 7617): lines of the header.
///
/// * One line with the right name and password passes, in whatever case the scheme is, and nothing else does.
/// * All others are told one scheme.
pub fn authorization(data: &[u8]) {
    let lines = lines(data);
    let Some(response) = send("GET", "/basic", "authorization", &lines) else {
        return;
    };
    let is_right = match &*lines {
        [line] => naively(line).is_some_and(|credentials| credentials == b"ann:secret"),
        _ => false,
    };
    let expected = if is_right { 204 } else { 401 };
    assert_eq!(response.status(), expected);
    let challenges = response
        .headers()
        .get_all("www-authenticate")
        .iter()
        .count();
    assert_eq!(challenges, usize::from(!is_right));
}

/// The bytes behind `Basic` and one space, white space around it aside.
fn naively(line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let is_basic = scheme.to_lowercase() == "basic" && line.len() <= 4096;
    is_basic.then(|| STANDARD.decode(rest.trim_ascii()).ok())?
}

/// Fuzzes JSON Web Tokens (RFC 7519): the value behind `Bearer`.
///
/// * A token passes only if the issuer has signed what it says, whatever algorithm it names.
/// * What does not pass has a reason.
pub fn jwt(data: &[u8]) {
    let token = &data[..data.len().min(MAX_BYTES)];
    let line = [b"Bearer ", token].concat();
    let Some(response) = send("GET", "/token", "authorization", &[&line]) else {
        return;
    };
    if response.status() == 204 {
        let token = String::from_utf8_lossy(token);
        let (signed, _) = token.trim().rsplit_once('.').unwrap_or_default();
        assert!(SIGNED.contains(&signed), "the issuer has not signed it");
        return;
    }
    assert_eq!(response.status(), 401);
    assert!(response.headers().contains_key("www-authenticate"));
}

/// Fuzzes `Origin` (RFC 6454): lines of the header.
///
/// * An origin that may read is sent back as it came, and a URL of it leads to a host that the policy names.
/// * Preflight requests and others agree, and several lines are none.
pub fn origin(data: &[u8]) {
    let lines = lines(data);
    let mut said = Vec::new();
    for method in ["GET", "OPTIONS"] {
        let Some(response) = send(method, "/web", "origin", &lines) else {
            return;
        };
        assert_eq!(response.status(), 204);
        let allowed = response.headers().get("access-control-allow-origin");
        let credentials = response.headers().get("access-control-allow-credentials");
        assert_eq!(allowed.is_some(), credentials.is_some());
        said.push(allowed.cloned());
    }
    assert_eq!(said[0], said[1], "a preflight request and another");
    let Some(allowed) = &said[0] else {
        return;
    };
    let [line] = &*lines else {
        panic!("several origins are none");
    };
    assert_eq!(allowed.as_bytes(), *line);
    if let Ok(url) = url::Url::parse(&String::from_utf8_lossy(line)) {
        let host = url.host_str().unwrap_or_default();
        assert_eq!(url.scheme(), "https");
        let is_named = match url.port() {
            None => host == "a.example",
            Some(port) => port == 8443 && host.ends_with(".b.example"),
        };
        assert!(is_named, "{host}");
    }
}
