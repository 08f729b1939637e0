//! Certificates of clients: by server name, told to destinations, and replaced.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use proxy_runtime::Proxy;
use proxy_runtime::proxy_model::config::ProxyConfig;
use proxy_runtime::proxy_model::{CompileOptions, Snapshot};
use proxy_runtime::server::{
    Certificate, CertificateStore, ClientAuth, Listener, Server, ServerHandle, TlsPolicy,
    TlsServerConfig,
};
use rustls::{ClientConfig, version};
use serde_json::{Value, json};
use testkit::body;
use testkit::certs::{Alpn, CertificateAuthority, Identity, provider};
use testkit::client::{Answer, ClientError, Connection};
use testkit::origin::{Echo, Origin};

use crate::changed;
use crate::server::support::loopback;

struct World {
    servers: CertificateAuthority,
    clients: CertificateAuthority,
    strangers: CertificateAuthority,
}

impl World {
    fn new() -> Self {
        Self {
            servers: CertificateAuthority::new("servers"),
            clients: CertificateAuthority::new("clients"),
            strangers: CertificateAuthority::new("strangers"),
        }
    }

    fn store(&self) -> CertificateStore {
        let identity = self.servers.issue(&[
            "public.example",
            "admin.example",
            "maybe.example",
            "strict.example",
            "a.admin.example",
        ]);
        let certificate =
            Certificate::from_der(vec![identity.certificate()], identity.key(), &provider());
        CertificateStore::new([certificate.unwrap()]).unwrap()
    }

    fn config(&self, default: TlsPolicy, by_name: &[(&str, TlsPolicy)]) -> TlsServerConfig {
        let by_name = named(by_name);
        TlsServerConfig::with_policies(provider(), self.store(), default, by_name).unwrap()
    }

    fn required(&self) -> TlsPolicy {
        policy(ClientAuth::Required(vec![self.clients.certificate()]))
    }

    fn optional(&self) -> TlsPolicy {
        policy(ClientAuth::Optional(vec![self.clients.certificate()]))
    }

    /// A client with or without a certificate.
    fn client(&self, identity: Option<&Identity>, alpn: Alpn) -> Arc<ClientConfig> {
        Arc::new(match identity {
            Some(identity) => self.servers.client_config_with(identity, alpn),
            None => self.servers.client_config(alpn),
        })
    }
}

fn policy(client_auth: ClientAuth) -> TlsPolicy {
    changed(|policy: &mut TlsPolicy| policy.client_auth = client_auth)
}

fn named(by_name: &[(&str, TlsPolicy)]) -> Vec<(String, TlsPolicy)> {
    let by_name = by_name.iter();
    by_name
        .map(|(name, policy)| ((*name).to_owned(), policy.clone()))
        .collect()
}

/// A proxy to `url` behind TLS, which tells of certificates.
fn serve(url: &str, tls: TlsServerConfig, route: &Value) -> (ServerHandle, SocketAddr) {
    let config = json!({
        "Routes": { "r": {
            "ClusterId": "c", "Match": { "Path": "/{**rest}" }, "Transforms": route,
        } },
        "Clusters": { "c": { "Destinations": { "d": { "Address": url } } } },
    });
    let config = ProxyConfig::from_json(&config.to_string()).unwrap();
    let (snapshot, _) = Snapshot::compile(config, &CompileOptions::default()).unwrap();
    let builder = Proxy::builder().snapshot(Arc::new(snapshot));
    let (proxy, driver) = builder.build().unwrap();
    assert!(proxy.unsupported().is_empty());
    tokio::spawn(driver);
    let server = Server::for_proxy(&proxy)
        .with_workers(NonZeroUsize::MIN)
        .with_listener(Listener::https(loopback(), tls));
    let server = server.bind().unwrap().start().unwrap();
    let address = server.local_addrs()[0];
    (server, address)
}

async fn get_for(client: &mut Connection, host: &str) -> Result<Answer, ClientError> {
    let request = client.request_for(host, "GET", "/");
    client.send(request.body(body::empty()).unwrap()).await
}

/// The status of a request for `host`, over a connection for `name`. `None`: the handshake failed.
async fn status(
    address: SocketAddr,
    (name, host): (&str, &str),
    config: &Arc<ClientConfig>,
) -> Option<StatusCode> {
    let mut client = Connection::tls(address, name, Arc::clone(config))
        .await
        .ok()?;
    let answer = get_for(&mut client, host).await;
    answer.ok().map(|answer| answer.status)
}

#[tokio::test]
async fn destinations_learn_the_certificate_and_nothing_that_clients_write() {
    let world = World::new();
    let identity = world.clients.issue_client("one");
    let origin = Origin::echo();
    let tells = json!([{ "ClientCert": "X-Client-Cert" }]);
    // With a change that needs `http` types, and without.
    let rewrites = json!([{ "PathPrefix": "/below" }, { "ClientCert": "X-Client-Cert" }]);
    for route in [tells, rewrites] {
        let tls = world.config(world.optional(), &[]);
        let (_server, address) = serve(&origin.url(), tls, &route);
        for alpn in [Alpn::Http1, Alpn::Http2] {
            for presented in [Some(&identity), None] {
                let config = world.client(presented, alpn);
                let mut client = Connection::tls(address, "public.example", config)
                    .await
                    .unwrap();
                let request = client
                    .request("GET", "/")
                    .header("X-Client-Cert", "forged")
                    .header("X-Forwarded-Client-Cert", "forged");
                let answer = client
                    .send(request.body(body::empty()).unwrap())
                    .await
                    .unwrap();
                let echo: Echo = answer.json();
                let expected = presented.map(|identity| STANDARD.encode(identity.certificate()));
                let expected: Vec<_> = expected.iter().map(String::as_str).collect();
                assert_eq!(echo.header("x-client-cert"), expected, "{alpn:?} {route}");
                assert!(echo.header("x-forwarded-client-cert").is_empty());
            }
        }
    }
}

#[tokio::test]
async fn what_is_required_depends_on_the_name() {
    let world = World::new();
    let origin = Origin::echo();
    let tls = world.config(
        TlsPolicy::default(),
        &[
            ("admin.example", world.required()),
            ("*.admin.example", world.required()),
            ("maybe.example", world.optional()),
        ],
    );
    let (_server, address) = serve(&origin.url(), tls, &json!([]));
    let (known, stranger) = (
        world.clients.issue_client("one"),
        world.strangers.issue_client("one"),
    );
    const OK: Option<u16> = Some(200);
    const MISDIRECTED: Option<u16> = Some(421);
    for (name, host, presents_known, presents_stranger, presents_none) in [
        ("public.example", "public.example", OK, OK, OK),
        ("public.example", "other.example:8443", OK, OK, OK),
        ("admin.example", "admin.example", OK, None, None),
        ("admin.example", "ADMIN.example.", OK, None, None),
        ("a.admin.example", "a.admin.example", OK, None, None),
        ("admin.example", "b.a.admin.example", OK, None, None),
        ("maybe.example", "maybe.example", OK, None, OK),
        // The host requires another certificate than the name of the connection.
        (
            "public.example",
            "admin.example",
            MISDIRECTED,
            MISDIRECTED,
            MISDIRECTED,
        ),
        (
            "public.example",
            "Admin.Example:443",
            MISDIRECTED,
            MISDIRECTED,
            MISDIRECTED,
        ),
        (
            "public.example",
            "x.admin.example",
            MISDIRECTED,
            MISDIRECTED,
            MISDIRECTED,
        ),
        (
            "maybe.example",
            "admin.example",
            MISDIRECTED,
            None,
            MISDIRECTED,
        ),
        ("admin.example", "public.example", MISDIRECTED, None, None),
    ] {
        for alpn in [Alpn::Http1, Alpn::Http2] {
            for (identity, expected) in [
                (Some(&known), presents_known),
                (Some(&stranger), presents_stranger),
                (None, presents_none),
            ] {
                let config = world.client(identity, alpn);
                let status = status(address, (name, host), &config).await;
                let status = status.map(|status| status.as_u16());
                assert_eq!(
                    status,
                    expected,
                    "{name} {host} {alpn:?} {}",
                    identity.is_some()
                );
            }
        }
    }
    assert_eq!(
        origin.traffic().requests() % 2,
        0,
        "both versions of HTTP agree"
    );
}

/// A client without a server name has the policy of all other names.
#[tokio::test]
async fn a_client_that_sends_no_name_evades_nothing() {
    let world = World::new();
    let origin = Origin::echo();
    let tls = world.config(TlsPolicy::default(), &[("admin.example", world.required())]);
    let (_server, address) = serve(&origin.url(), tls, &json!([]));
    let identity = world.clients.issue_client("one");
    let mut config = world.servers.client_config_with(&identity, Alpn::Http1);
    config.enable_sni = false;
    let config = Arc::new(config);
    for (host, expected) in [("public.example", 200), ("admin.example", 421)] {
        let status = status(address, ("public.example", host), &config).await;
        assert_eq!(status.unwrap(), expected, "{host}");
    }
}

#[tokio::test]
async fn old_versions_of_tls_can_be_rejected_by_name() {
    let world = World::new();
    let origin = Origin::echo();
    let strict = changed(|policy: &mut TlsPolicy| policy.requires_tls13 = true);
    let tls = world.config(TlsPolicy::default(), &[("strict.example", strict)]);
    let (_server, address) = serve(&origin.url(), tls, &json!([]));
    let config = |versions| {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(world.servers.roots());
        Arc::new(builder.with_no_client_auth())
    };
    let (old, new) = (config(&[&version::TLS12]), config(&[&version::TLS13]));
    for (name, config, is_served) in [
        ("public.example", &old, true),
        ("public.example", &new, true),
        ("strict.example", &old, false),
        ("strict.example", &new, true),
    ] {
        let served = status(address, (name, name), config).await;
        assert_eq!(served.is_some(), is_served, "{name}");
    }
    // A connection that began under laxer rules serves no stricter name, but one under stricter rules serves both.
    for (names, config, expected) in [
        (("public.example", "strict.example"), &old, 421),
        (("public.example", "strict.example"), &new, 421),
        (("strict.example", "public.example"), &new, 200),
    ] {
        let crossed = status(address, names, config).await;
        assert_eq!(crossed.unwrap(), expected, "{names:?}");
    }
}

/// Sessions are not verified again when they are resumed.
#[tokio::test]
async fn clients_of_an_authority_that_is_not_trusted_any_more_are_rejected() {
    let world = World::new();
    let origin = Origin::echo();
    for by_name in [vec![], vec![("other.example", TlsPolicy::default())]] {
        let tls = world.config(world.required(), &by_name);
        let (_server, address) = serve(&origin.url(), tls.clone(), &json!([]));
        let (old, new) = (
            world.clients.issue_client("one"),
            world.strangers.issue_client("one"),
        );
        // Each keeps its sessions.
        let (old, new) = (
            world.client(Some(&old), Alpn::Http1),
            world.client(Some(&new), Alpn::Http1),
        );
        let name = ("public.example", "public.example");
        for _ in 0..2 {
            assert!(status(address, name, &old).await.is_some());
            assert!(status(address, name, &new).await.is_none());
        }
        let trusted = ClientAuth::Required(vec![world.strangers.certificate()]);
        tls.replace_policies(policy(trusted), named(&by_name))
            .unwrap();
        for _ in 0..2 {
            assert!(status(address, name, &old).await.is_none());
            assert!(status(address, name, &new).await.is_some());
        }
        let empty = policy(ClientAuth::Required(Vec::new()));
        assert!(tls.replace_policies(empty, Vec::new()).is_err());
        assert!(
            status(address, name, &new).await.is_some(),
            "what was there stays"
        );
    }
}

/// A ticket of a server that asks for nothing is no certificate.
#[tokio::test]
async fn tickets_do_not_stand_for_certificates() {
    let world = World::new();
    let origin = Origin::echo();
    let ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
    let server = |policy: TlsPolicy| {
        let tls = world.config(policy, &[]).with_ticketer(ticketer.clone());
        serve(&origin.url(), tls, &json!([]))
    };
    let (_open, open) = server(TlsPolicy::default());
    let (_closed, closed) = server(world.required());
    let nobody = world.client(None, Alpn::Http1);
    let name = ("public.example", "public.example");
    for _ in 0..3 {
        assert_eq!(status(open, name, &nobody).await.unwrap(), 200);
        assert!(status(closed, name, &nobody).await.is_none());
    }
}
