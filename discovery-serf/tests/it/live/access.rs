//! Keys, and addresses of the newer kind.

use discovery_core::SourceState;
use discovery_serf::client::{ClientErrorKind, SerfClient};
use testkit::serf::Serf;

use crate::live::support::{Published, announcing, connection_to, options, url};

#[tokio::test]
async fn an_agent_with_a_key_is_asked_with_it() {
    let Some(serf) = Serf::find() else { return };
    let gateway = announcing(serf.agent("gateway"), "orders", 5001);
    let gateway = gateway.auth_key("sekrit").start().await;
    let published = Published::start(options(&[&gateway]).with_auth_key("sekrit"));
    let address = url(&gateway, 5001);
    published
        .service("orders", Some(&[("orders-5001", &address)]))
        .await;

    gateway.set_tag("http-port", "5002").await;
    let moved = url(&gateway, 5002);
    published
        .service("orders", Some(&[("orders-5001", &moved)]))
        .await;
}

#[tokio::test]
async fn a_wrong_or_missing_key_is_said_to_be_that() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").auth_key("sekrit").start().await;
    for key in [None, Some("wrong-key")] {
        let with_key = |connection: discovery_serf::client::ConnectOptions| match key {
            Some(key) => connection.with_auth_key(key),
            None => connection,
        };
        let error = match SerfClient::connect(&with_key(connection_to(&gateway))).await {
            Ok(client) => client.members().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ClientErrorKind::Denied, "{key:?}: {error}");
        assert!(!error.is_transient());
        assert!(!format!("{error:?}").contains("wrong-key"), "{error:?}");

        let options = options(&[&gateway]);
        let published = Published::start(match key {
            Some(key) => options.with_auth_key(key),
            None => options,
        });
        let failing = published.when_in(SourceState::Failing).await;
        let failure = format!("{:?}", failing.status.last_error.as_ref().unwrap());
        assert!(!failure.contains("wrong-key"), "{failure}");
        assert!(failing.config.is_none());
    }
}

#[tokio::test]
async fn services_are_found_on_ipv6() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").ipv6().start().await;
    let published = Published::start(options(&[&gateway]));
    published.when_in(SourceState::Live).await;

    // Without a name of its own, so that its key is its address.
    let orders = serf.agent("orders-1").ipv6().join(&gateway);
    let orders = orders.tag("service", "orders").tag("http-port", "5001");
    let _orders = orders.start().await;
    let address = "http://[::1]:5001".to_owned();
    published
        .service("orders", Some(&[("[::1]:5001", &address)]))
        .await;
}
