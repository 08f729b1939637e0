//! Tokens of the emulator's identity endpoints.

use azure_loadbalancer::arm::token::{
    ClientCredentials, ManagedIdentity, StaticToken, TokenSource,
};
use azure_loadbalancer::arm::{ArmClient, ArmErrorKind, TowerTransport};
use azure_loadbalancer::emulator::{Emulator, EmulatorOptions};
use serde_json::Value;

use crate::arm::script::{Script, answer, lb};

const AUTHORITY: &str = "http://localhost:1";

fn emulator() -> (Emulator, TowerTransport<Emulator>) {
    let emulator = Emulator::new(EmulatorOptions::default().token("the-token"));
    emulator.with(|machine| machine.add_group("s", "rg", "westus"));
    (emulator.clone(), TowerTransport::new(emulator))
}

async fn works(source: impl TokenSource + 'static) -> bool {
    let (_, transport) = emulator();
    let client = ArmClient::builder(transport)
        .tokens(source)
        .build()
        .unwrap();
    client.get::<Value>(&lb()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn each_source_has_a_token() {
    let (_, transport) = emulator();
    assert!(works(StaticToken::new("the-token")).await);
    assert!(!works(StaticToken::new("another")).await);
    assert!(works(ManagedIdentity::new(transport.clone()).client_id("c")).await);
    assert!(
        works(
            ClientCredentials::with_secret(transport.clone(), "tenant", "app", "secret")
                .authority(AUTHORITY)
        )
        .await
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "platform-token\n").unwrap();
    assert!(
        works(
            ClientCredentials::with_token_file(transport, "tenant", "app", file)
                .authority(AUTHORITY)
        )
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn errors_say_why_there_is_no_token_and_nothing_secret() {
    let (_, transport) = emulator();
    let wrong = ClientCredentials::with_secret(transport.clone(), "tenant", "app", "wrong")
        .authority(AUTHORITY);
    let error = wrong.token().await.unwrap_err().to_string();
    assert!(
        error.contains("AADSTS7000215") && error.contains("application app"),
        "{error}"
    );
    assert!(!format!("{wrong:?}").contains("wrong"));

    let plain = ClientCredentials::with_secret(transport.clone(), "tenant", "app", "x")
        .authority("http://login.test");
    let error = plain.token().await.unwrap_err().to_string();
    assert!(error.contains("https"), "{error}");

    let missing = ClientCredentials::with_token_file(transport, "tenant", "app", "/nowhere/token");
    let error = missing.token().await.unwrap_err().to_string();
    assert!(error.contains("/nowhere/token"), "{error}");

    let script = Script::new(vec![answer(
        200,
        &[],
        r#"{"access_token":"leaked","expires_in":"soon"}"#,
    )]);
    let odd = ManagedIdentity::new(TowerTransport::new(script));
    let error = format!("{:?}", odd.token().await.unwrap_err());
    assert!(
        error.contains("not a token") && !error.contains("leaked"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rejected_token_is_renewed_once() {
    let script = Script::new(vec![
        answer(401, &[], ""),
        answer(200, &[], "{}"),
        answer(401, &[], ""),
        answer(401, &[], ""),
    ]);
    let client = script
        .builder()
        .tokens(StaticToken::new("t"))
        .build()
        .unwrap();
    client.get::<Value>(&lb()).await.unwrap();
    let error = client.get::<Value>(&lb()).await.unwrap_err();
    assert_eq!(error.kind(), ArmErrorKind::Unauthenticated);
    let asked = script.asked();
    assert_eq!(asked.len(), 4);
    assert!(
        asked
            .iter()
            .all(|asked| asked.header("authorization") == Some("Bearer t"))
    );
    assert!(
        !format!("{:?}", asked[0].request).contains("Bearer t"),
        "the header is marked as sensitive"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_late_is_asked_for_again() {
    let token = r#"{"access_token":"late","expires_in":"3600"}"#;
    // A metadata service that starts (404), changes (410), is overloaded (429), and does not respond.
    for first in [
        answer(404, &[], ""),
        answer(410, &[], ""),
        answer(429, &[], ""),
        answer(500, &[], ""),
        None,
    ] {
        let identities = Script::new(vec![first, answer(200, &[], token)]);
        let script = Script::new(vec![answer(200, &[], "{}")]);
        let source = ManagedIdentity::new(TowerTransport::new(identities.clone()));
        let client = script.builder().tokens(source).build().unwrap();
        client.get::<Value>(&lb()).await.unwrap();
        assert_eq!(identities.asked().len(), 2);
        let asked = script.asked();
        assert_eq!(asked[0].header("authorization"), Some("Bearer late"));
    }
    // A rejection is final, and 404 from another authority is not transient.
    let denied = answer(400, &[], r#"{"error":"invalid_client"}"#);
    let identities = Script::new(vec![denied]);
    let source = ManagedIdentity::new(TowerTransport::new(identities.clone()));
    let client = Script::new(Vec::new())
        .builder()
        .tokens(source)
        .build()
        .unwrap();
    let error = client.get::<Value>(&lb()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.is_retriable()),
        (ArmErrorKind::Token, false)
    );
    let nowhere = Script::new(vec![answer(404, &[], "")]);
    let source =
        ClientCredentials::with_secret(TowerTransport::new(nowhere.clone()), "t", "a", "s")
            .authority(AUTHORITY);
    assert!(!source.token().await.unwrap_err().is_transient());
}

/// A metadata service writes `invalid_request` also for requests that are wrong in another way.
#[tokio::test(start_paused = true)]
async fn a_machine_without_the_identity_is_rejected() {
    for (said, is_rejected) in [
        ("Identity not found", true),
        ("Required metadata header not specified", false),
    ] {
        let body = format!(r#"{{"error":"invalid_request","error_description":"{said}"}}"#);
        let script = Script::new(vec![answer(400, &[], &body)]);
        let source = ManagedIdentity::new(TowerTransport::new(script)).client_id("c");
        let error = source.token().await.unwrap_err();
        assert_eq!(error.is_rejected(), is_rejected, "{error}");
        assert!(!error.is_transient(), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}
