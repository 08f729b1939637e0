//! The emulator behind a socket.

use azure_loadbalancer::arm::{
    ArmClient, ArmErrorKind, ArmOptions, Precondition, RetryPolicy, TowerTransport,
};
use azure_loadbalancer::emulator::{Emulator, EmulatorServer, Fault, FaultAction};
use azure_loadbalancer::resources::{ArmId, PublicIpAddress};

use crate::emulator::world::*;

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn the_client_reaches_it_over_http() {
    use azure_loadbalancer::arm::ReqwestTransport;

    let emulator = Emulator::from(world(Default::default()));
    let server = EmulatorServer::start("127.0.0.1:0", emulator.clone())
        .await
        .unwrap();
    let mut options = ArmOptions::default();
    options.retry = RetryPolicy::never();
    let client = ArmClient::builder(ReqwestTransport::new().unwrap())
        .endpoint(server.endpoint())
        .options(options)
        .build()
        .unwrap();
    let id = ArmId::new(network("publicIPAddresses", "a"));
    let _: PublicIpAddress = client
        .put(&id, &public_ip("Standard"), Precondition::IsNew)
        .await
        .unwrap();
    let found: PublicIpAddress = client.get(&id).await.unwrap().unwrap();
    assert_eq!(found.properties.ip_address.as_deref(), Some("20.0.0.1"));

    emulator.with(|machine| machine.inject(Fault::new(FaultAction::LoseAnswer)));
    let lost = client.get::<PublicIpAddress>(&id).await.unwrap_err();
    assert_eq!(lost.kind(), ArmErrorKind::Unreachable);
    assert_eq!(
        client
            .list::<PublicIpAddress>(&format!("{NETWORK}/publicIPAddresses"))
            .await
            .unwrap()
            .len(),
        1
    );
    server.shutdown().await;
    assert!(client.get::<PublicIpAddress>(&id).await.is_err());
}

#[tokio::test]
async fn the_same_emulator_serves_in_process() {
    let emulator = Emulator::from(world(Default::default()));
    let client = ArmClient::builder(TowerTransport::new(emulator.clone()))
        .build()
        .unwrap();
    let id = ArmId::new(network("publicIPAddresses", "a"));
    assert!(client.get::<PublicIpAddress>(&id).await.unwrap().is_none());
    client.delete(&id, Precondition::None).await.unwrap();
    assert_eq!(emulator.with(|machine| machine.counts().writes), 1);
}
