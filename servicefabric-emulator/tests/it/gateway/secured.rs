//! Access over TLS and with tokens.

use serde_json::json;
use servicefabric_emulator::gateway::{AadMetadata, Role, TlsOptions};
use testkit::body;
use testkit::certs::{Alpn, CertificateAuthority, Identity};
use testkit::client::{Answer, ClientError, Connection};

use super::{Gateway, builder};

const NODES: &str = "/Nodes?api-version=6.0";
const REPORT: &str = "/Services/Shop~Web/$/ReportHealth?api-version=6.0";

fn report() -> String {
    json!({"SourceId": "a", "Property": "b", "HealthState": "Ok"}).to_string()
}

struct Authorities {
    servers: CertificateAuthority,
    admins: CertificateAuthority,
    readers: CertificateAuthority,
}

impl Authorities {
    fn new() -> Self {
        Self {
            servers: CertificateAuthority::new("servers"),
            admins: CertificateAuthority::new("admins"),
            readers: CertificateAuthority::new("readers"),
        }
    }

    fn options(&self) -> TlsOptions {
        let server = self.servers.issue(&["localhost"]);
        TlsOptions::new(server.certificate_pem(), server.key_pem())
    }

    async fn call(
        &self,
        gateway: &Gateway,
        identity: Option<&Identity>,
        method: &str,
        path: &str,
    ) -> Result<Answer, ClientError> {
        let config = match identity {
            None => self.servers.client_config(Alpn::Http1),
            Some(identity) => self.servers.client_config_with(identity, Alpn::Http1),
        };
        let address = gateway.emulator.address();
        let mut connection = Connection::tls(address, "localhost", config).await?;
        let request = connection
            .request(method, path)
            .body(body::full(report()))
            .expect("a test sends what can be sent");
        connection.send(request).await
    }
}

#[tokio::test]
async fn tls_alone_lets_everybody_in() {
    let authorities = Authorities::new();
    let gateway = Gateway::of(builder().tls(authorities.options())).await;
    assert!(gateway.emulator.endpoint().starts_with("https://"));
    let answer = authorities
        .call(&gateway, None, "POST", REPORT)
        .await
        .unwrap();
    assert_eq!(answer.status, 200);
    // Plain HTTP on a TLS port gets no response, as on a real cluster.
    assert!(gateway.connect().await.get(NODES).await.is_err());
}

#[tokio::test]
async fn certificates_of_clients_say_what_they_may_do() {
    let authorities = Authorities::new();
    let tls = authorities
        .options()
        .admins(authorities.admins.certificate_pem())
        .readers(authorities.readers.certificate_pem());
    let gateway = Gateway::of(builder().tls(tls)).await;
    let admin = authorities.admins.issue_client("admin");
    let reader = authorities.readers.issue_client("reader");
    let stranger = CertificateAuthority::new("strangers").issue_client("stranger");
    let expired = authorities
        .admins
        .issue_leaf(&testkit::certs::Leaf::client("late").expired());
    let read_only_query = "/Services/Shop~Web/$/GetHealth?api-version=6.0";
    for (identity, method, path, status) in [
        (None, "GET", NODES, 403),
        (None, "GET", "/", 403),
        (None, "GET", "/nothing", 403),
        (None, "GET", "/emulator", 403),
        (None, "GET", "/$/GetAadMetadata?api-version=6.0", 200),
        (Some(&admin), "GET", NODES, 200),
        (Some(&admin), "POST", REPORT, 200),
        (Some(&reader), "GET", NODES, 200),
        (Some(&reader), "POST", read_only_query, 200),
        (Some(&reader), "POST", REPORT, 403),
        (Some(&reader), "DELETE", "/emulator/faults", 403),
        (Some(&stranger), "GET", NODES, 403),
        (Some(&expired), "GET", NODES, 403),
    ] {
        let answer = authorities
            .call(&gateway, identity, method, path)
            .await
            .unwrap();
        assert_eq!(answer.status.as_u16(), status, "{method} {path}");
        if status == 403 {
            assert!(answer.body.is_empty());
        }
    }
}

fn metadata() -> AadMetadata {
    AadMetadata {
        authority: "https://login.example/tenant".to_owned(),
        cluster: "cluster-app".to_owned(),
        ..AadMetadata::default()
    }
}

async fn call(gateway: &Gateway, token: Option<&str>, method: &str, path: &str) -> Answer {
    let mut connection = gateway.connect().await;
    let mut request = connection.request(method, path);
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let request = request
        .body(body::full(report()))
        .expect("a test sends what can be sent");
    connection.send(request).await.expect("there is an answer")
}

#[tokio::test]
async fn tokens_say_what_their_bearers_may_do() {
    let builder = builder()
        .bearer("admin-token", Role::Admin)
        .bearer("reader-token", Role::Reader)
        .aad_metadata(metadata());
    let gateway = Gateway::of(builder).await;
    for (token, method, path, status) in [
        (None, "GET", NODES, 401),
        (Some("Bearer wrong"), "GET", NODES, 401),
        (Some("bearer admin-token"), "GET", NODES, 401),
        (Some("Bearer admin-token"), "GET", NODES, 200),
        (Some("Bearer admin-token"), "POST", REPORT, 200),
        (Some("Bearer reader-token"), "GET", NODES, 200),
        (Some("Bearer reader-token"), "POST", REPORT, 403),
        (None, "GET", "/$/GetAadMetadata?api-version=6.0", 200),
    ] {
        let answer = call(&gateway, token, method, path).await;
        assert_eq!(answer.status.as_u16(), status, "{token:?} {method} {path}");
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge.is_some(), status == 401, "{challenge:?}");
    }
    let anonymous = call(&gateway, None, "GET", "/$/GetAadMetadata?api-version=6.0").await;
    let told: serde_json::Value = anonymous.json();
    assert_eq!(told["metadata"]["cluster"], "cluster-app");
}

#[tokio::test]
async fn either_a_certificate_or_a_token_will_do() {
    let authorities = Authorities::new();
    let tls = authorities
        .options()
        .admins(authorities.admins.certificate_pem());
    let gateway = Gateway::of(builder().tls(tls).bearer("t", Role::Admin)).await;
    let admin = authorities.admins.issue_client("admin");
    let with = authorities.call(&gateway, Some(&admin), "GET", NODES).await;
    assert_eq!(with.unwrap().status, 200);
    let without = authorities.call(&gateway, None, "GET", NODES).await;
    assert_eq!(without.unwrap().status, 401);
}
