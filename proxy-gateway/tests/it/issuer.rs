//! Tokens of an issuer that others wrote: `oauth2-mock-server`, which signs with `jose`.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;
use testkit::client::Connection;
use testkit::origin::Origin;
use testkit::peers::{self, PeerProcess, address_after};
use testkit::time::eventually;

use crate::policies::{Gateway, example};

struct Issuer {
    _process: PeerProcess,
    control: SocketAddr,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Issuer {
    async fn start(node: &peers::Peer, modules: PathBuf) -> Self {
        // Modules are looked up from where the script lies.
        let folder = tempfile::tempdir().expect("a directory can be made");
        let script = folder.path().join("issuer.mjs");
        std::fs::write(&script, include_str!("issuer/issuer.mjs")).expect("it can be written");
        std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).expect("a link");
        let mut command = node.command();
        command.arg(&script);
        let mut process = peers::spawn(command);
        process.wait_for_output("issuer on http://").await;
        let output = process.output();
        Self {
            control: address_after(&output, "control on http://"),
            address: address_after(&output, "issuer on http://"),
            _process: process,
            _folder: folder,
        }
    }

    /// The header with a token that is signed with the key of this name.
    async fn token(&self, kid: &str, more: &str) -> String {
        let token = get(self.control, &format!("/token?kid={kid}{more}")).await;
        format!("Authorization: Bearer {token}")
    }

    async fn replace(&self, alg: &str, kid: &str) {
        let done = get(self.control, &format!("/replace?alg={alg}&kid={kid}")).await;
        assert_eq!(done, "replaced");
    }
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut client = Connection::http1(address).await.expect("it listens");
    let answer = client.get(path).await.expect("it answers");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

#[tokio::test]
async fn tokens_of_a_foreign_issuer_let_pass_until_its_keys_are_others() {
    let Some(modules) = peers::node_module("oauth2-mock-server") else {
        return;
    };
    let Some(node) = peers::find("node") else {
        return;
    };
    let issuer = Issuer::start(&node, modules).await;
    let origin = Origin::named("api");
    let metadata = get(issuer.address, "/.well-known/openid-configuration").await;
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let text = example("\"Jwt\"")
        .replace(
            "https://login.example.com/.well-known/jwks.json",
            metadata["jwks_uri"].as_str().unwrap(),
        )
        .replace(
            "https://login.example.com/",
            metadata["issuer"].as_str().unwrap(),
        );
    let gateway = Gateway::start(&text, origin.addr()).await;
    let status = async |token: &str| gateway.send("GET /orders/1", &[token]).await.0;

    let good = issuer.token("RS256", "").await;
    assert_eq!(status(&good).await, 200);
    for algorithm in ["PS384", "ES256", "EdDSA"] {
        let token = issuer.token(algorithm, "").await;
        assert_eq!(status(&token).await, 200, "{algorithm}");
    }
    for (kid, more, expected) in [
        ("RS256", "&aud=carts", 401),
        ("RS256", "&iss=https://other.example/", 401),
        // Beyond the tolerated difference of clocks.
        ("RS256", "&expires=-60", 401),
        ("RS256", "&forged=1", 401),
        ("ES256", "&forged=1", 401),
        ("RS256", "&scope=orders.list", 403),
    ] {
        let token = issuer.token(kid, more).await;
        assert_eq!(status(&token).await, expected, "{kid} {more}");
    }

    // A new key is fetched with the first token that names it, at most once in 10 s.
    issuer.replace("ES256", "next").await;
    let next = issuer.token("next", "").await;
    eventually("the new key is known", async || status(&next).await == 200).await;
    assert_eq!(status(&good).await, 200, "the old key is still there");

    // A key that is gone is no longer trusted, although its tokens were cached.
    issuer.replace("RS256", "RS256").await;
    issuer.replace("ES256", "last").await;
    let last = issuer.token("last", "").await;
    eventually("the last key is known", async || status(&last).await == 200).await;
    assert_eq!(status(&good).await, 401);
    let good = issuer.token("RS256", "").await;
    assert_eq!(status(&good).await, 200);
}
