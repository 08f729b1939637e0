//! Secured clusters.

use discovery_servicefabric::client::{
    BearerToken, Client, ClientIdentity, ServerTrust, StaticToken,
};
use discovery_servicefabric::model::{HealthInformation, HealthState};
use discovery_servicefabric::{CallErrorKind, ClusterCalls, HealthEntity};
use servicefabric_emulator::gateway::{AadMetadata, Role, TlsOptions};
use testkit::certs::{CertificateAuthority, Identity};

use super::{builder, options, start};

fn report() -> (HealthEntity, HealthInformation) {
    let entity = HealthEntity::Service {
        service_id: "Shop~Web".to_owned(),
    };
    (entity, HealthInformation::new("YARP", "X", HealthState::Ok))
}

fn identity(identity: &Identity) -> ClientIdentity {
    ClientIdentity::from_pem(
        identity.certificate_pem().as_bytes(),
        identity.key_pem().as_bytes(),
    )
    .unwrap()
}

#[tokio::test]
async fn certificates_of_administrators_may_report_and_those_of_readers_may_read() {
    let servers = CertificateAuthority::new("servers");
    let (admins, readers) = (
        CertificateAuthority::new("admins"),
        CertificateAuthority::new("readers"),
    );
    let server = servers.issue(&["127.0.0.1"]);
    let tls = TlsOptions::new(server.certificate_pem(), server.key_pem())
        .admins(admins.certificate_pem())
        .readers(readers.certificate_pem());
    let emulator = start(builder().tls(tls)).await;
    let client = |shown: Option<&Identity>| {
        let trust = ServerTrust::authorities_pem(servers.certificate_pem().as_bytes()).unwrap();
        let builder = Client::builder(emulator.endpoint())
            .server_trust(trust)
            .options(options());
        match shown {
            Some(shown) => builder.client_certificate(identity(shown)),
            None => builder,
        }
        .build()
        .unwrap()
    };
    let (entity, health) = report();
    let admin = client(Some(&admins.issue_client("admin")));
    assert_eq!(admin.applications().await.unwrap().len(), 2);
    admin.report_health(&entity, &health, true).await.unwrap();

    let reader = client(Some(&readers.issue_client("reader")));
    assert_eq!(reader.applications().await.unwrap().len(), 2);
    let error = reader
        .report_health(&entity, &health, true)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Denied);
    assert!(error.to_string().contains("administrator"), "{error}");

    let stranger = CertificateAuthority::new("strangers").issue_client("stranger");
    for denied in [client(None), client(Some(&stranger))] {
        let error = denied.applications().await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Denied, "{}", error.chain());
        assert!(error.to_string().contains("client certificate"), "{error}");
    }
}

#[tokio::test]
async fn tokens_open_the_door_and_their_absence_is_explained() {
    let metadata = AadMetadata {
        authority: "https://login.example/tenant".to_owned(),
        cluster: "cluster-app".to_owned(),
        ..AadMetadata::default()
    };
    let emulator = start(
        builder()
            .bearer("good-token", Role::Admin)
            .aad_metadata(metadata),
    )
    .await;
    let with = |token: Option<&str>| {
        let builder = Client::builder(emulator.endpoint()).options(options());
        match token {
            Some(token) => builder.token_source(StaticToken::new(BearerToken::new(token).unwrap())),
            None => builder,
        }
        .build()
        .unwrap()
    };
    let client = with(Some("good-token"));
    assert_eq!(client.applications().await.unwrap().len(), 2);
    let (entity, health) = report();
    client.report_health(&entity, &health, true).await.unwrap();
    for token in [None, Some("wrong-token")] {
        let error = with(token).applications().await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::Denied);
        let message = error.to_string();
        assert!(
            message.contains("authority https://login.example/tenant, resource cluster-app"),
            "{message}"
        );
    }
    let metadata = with(None).aad_metadata().await.unwrap().unwrap();
    assert_eq!(metadata.cluster, "cluster-app");
}
