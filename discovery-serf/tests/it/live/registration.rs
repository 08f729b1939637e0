//! Services that announce themselves at real agents.

use discovery_serf::Tags;
use discovery_serf::registration::{Registration, RegistrationError, encoded_len};
use testkit::serf::{Serf, SerfAgent};
use testkit::time::{eventually, guarded};

use crate::live::support::{Published, client_of, connection_to, options, url};

fn orders() -> Registration {
    let orders = Registration::new("orders", 5000);
    orders.host("orders.example").instance("orders-1")
}

async fn tags_of(agent: &SerfAgent) -> Tags {
    let client = client_of(agent).await;
    let members = client.members().await.unwrap();
    let own = members.into_iter().find(|m| *m.name == *agent.name());
    own.unwrap().tags
}

#[tokio::test]
async fn a_service_comes_changes_and_goes() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let node = serf
        .agent("node")
        .join(&gateway)
        .tag("rack", "r7")
        .start()
        .await;
    gateway.wait_for("node", "alive").await;
    let published = Published::start(options(&[&gateway]));
    let address = url(&node, 5000);

    let registered = orders().register(&connection_to(&node)).await.unwrap();
    assert_eq!(registered.node(), "node");
    assert!(registered.state().is_announced());
    published
        .service("orders", Some(&[("orders-1", &address)]))
        .await;

    registered.drain().await.unwrap();
    published
        .when("weight 0", |state| {
            let clusters = state
                .config
                .iter()
                .flat_map(|config| config.clusters.values());
            let mut destinations = clusters.flat_map(|cluster| cluster.destinations.values());
            destinations.any(|destination| destination.weight == Some(0))
        })
        .await;

    // Another form, which has not all that the first has.
    let plain = Registration::new("orders", 5000);
    registered.update(plain.clone()).await.unwrap();
    let mut expected = plain.tags().clone();
    expected.insert("rack", "r7");
    assert_eq!(tags_of(&node).await, expected);
    let unnamed = format!("{}:5000", node.gossip_addr().ip());
    published
        .service("orders", Some(&[(unnamed.as_str(), &address)]))
        .await;

    registered.withdraw().await.unwrap();
    published.service("orders", None).await;
    assert_eq!(tags_of(&node).await, Tags::from([("rack", "r7")]));
}

#[tokio::test]
async fn a_service_leaves_with_its_agent() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let mut node = serf.agent("node").join(&gateway).start().await;
    gateway.wait_for("node", "alive").await;
    let published = Published::start(options(&[&gateway]));
    let registered = orders().register(&connection_to(&node)).await.unwrap();
    let address = url(&node, 5000);
    published
        .service("orders", Some(&[("orders-1", &address)]))
        .await;

    registered.leave().await.unwrap();
    published.service("orders", None).await;
    assert!(node.ended().await.success());
    gateway.wait_for("node", "left").await;
}

#[tokio::test]
async fn an_agent_that_was_started_again_is_told_again() {
    let Some(serf) = Serf::find() else { return };
    for keeps_tags in [false, true] {
        let node = serf.agent("node");
        let node = if keeps_tags { node.keep_tags() } else { node };
        let mut node = node.start().await;
        let registered = orders().register(&connection_to(&node)).await.unwrap();
        let mut states = registered.states();

        node.kill().await;
        let away = states.wait_for(|state| !state.is_announced());
        guarded("it is away", away).await.unwrap();
        // Tags that cannot be sent now are sent later.
        let error = registered.set_weight(7).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        node.restart().await;
        let back = states.wait_for(|state| state.is_announced());
        guarded("it is back", back).await.unwrap();
        assert_eq!(tags_of(&node).await, *orders().weight(7).tags());
    }
}

/// The agent distributes new tags to the whole cluster: it joins, and contradicts that it had failed, just
/// when it gets them. On SIGHUP the agent has only the tags with which it was started, and no connection
/// ends.
#[tokio::test]
async fn an_agent_that_reads_its_configuration_again_is_told_again() {
    let Some(serf) = Serf::find() else { return };
    let node = serf.agent("node").tag("rack", "r7").start().await;
    let registered = orders().register(&connection_to(&node)).await.unwrap();
    let is_announced = async || tags_of(&node).await.text("service").is_some();
    assert!(is_announced().await);
    node.reload();
    eventually("the agent has forgotten the service", async || {
        !is_announced().await
    })
    .await;
    eventually("the agent is told again", is_announced).await;
    assert_eq!(tags_of(&node).await.text("rack").as_deref(), Some("r7"));
    assert!(registered.state().is_announced());
}

#[tokio::test]
async fn a_service_is_found_again_after_a_crash_of_its_agent() {
    let Some(serf) = Serf::find() else { return };
    let gateway = serf.agent("gateway").start().await;
    let mut node = serf.agent("node").join(&gateway).start().await;
    gateway.wait_for("node", "alive").await;
    let published = Published::start(options(&[&gateway]));
    let _registered = orders().register(&connection_to(&node)).await.unwrap();
    let address = url(&node, 5000);
    let there = [("orders-1", address.as_str())];
    published.service("orders", Some(&there)).await;

    node.kill().await;
    published.service("orders", None).await;
    node.restart().await;
    published.service("orders", Some(&there)).await;
}

#[tokio::test]
async fn who_is_gone_without_a_word_stays_announced() {
    let Some(serf) = Serf::find() else { return };
    let node = serf.agent("node").start().await;
    let registered = orders().register(&connection_to(&node)).await.unwrap();
    drop(registered);
    assert_eq!(tags_of(&node).await, *orders().tags());

    // It is the same service when it comes back, in any form.
    let again = orders().weight(2).register(&connection_to(&node)).await;
    again.unwrap().withdraw().await.unwrap();
    assert_eq!(tags_of(&node).await, Tags::new());
}

#[tokio::test]
async fn a_node_of_another_service_is_left_alone() {
    let Some(serf) = Serf::find() else { return };
    let node = serf.agent("node").tag("service", "payments").start().await;
    let error = orders().register(&connection_to(&node)).await.unwrap_err();
    assert!(
        matches!(error, RegistrationError::Occupied { .. }),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "the node `node` announces the service `payments`: give this service an agent of its own, or let it take over"
    );
    assert_eq!(tags_of(&node).await, Tags::from([("service", "payments")]));

    let registered = orders()
        .take_over(true)
        .register(&connection_to(&node))
        .await;
    let registered = registered.unwrap();
    assert_eq!(tags_of(&node).await, *orders().tags());

    // Another program replaces the tag: nothing is left to withdraw.
    node.set_tag("service", "payments").await;
    registered.withdraw().await.unwrap();
    assert_eq!(tags_of(&node).await.text("service").unwrap(), "payments");
}

/// The limit is the agent's: what is counted here is what fits there, to the byte.
#[tokio::test]
async fn the_room_for_tags_is_that_of_the_agent() {
    let Some(serf) = Serf::find() else { return };
    let agent = serf.agent("tagged").start().await;
    let client = client_of(&agent).await;
    let filled = |filler: &[(String, String)]| {
        let mut tags: Tags = filler.iter().cloned().collect();
        tags.insert("k", "");
        let room = 512 - encoded_len(&tags);
        // A string of 32 bytes or more has two bytes more around it.
        assert!(room > 34, "{room}");
        tags.insert("k", "v".repeat(room - 2));
        tags
    };
    let many = |count: usize| {
        let numbers = 0..count;
        numbers
            .map(|n| (format!("key-{n}"), "x".repeat(n)))
            .collect::<Vec<_>>()
    };
    for filler in [
        vec![],
        vec![("a".repeat(31), "b".repeat(32))],
        many(14),
        many(15),
        many(20),
    ] {
        let fits = filled(&filler);
        assert_eq!(encoded_len(&fits), 512);
        let delete: Vec<_> = tags_of(&agent)
            .await
            .iter()
            .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
            .collect();
        let delete: Vec<_> = delete.iter().map(String::as_str).collect();
        client.set_tags(&fits, &delete).await.unwrap();
        assert_eq!(tags_of(&agent).await, fits);

        let mut over = fits.clone();
        let mut value = over.remove("k").unwrap();
        value.push(b'v');
        over.insert("k", value);
        let error = client.set_tags(&over, &[]).await.unwrap_err();
        assert!(error.to_string().contains("512"), "{error}");
    }
    // Beside a key of one character.
    let most = Tags::from([("k", "v".repeat(505))]);
    assert_eq!(encoded_len(&most), 512);
}

#[tokio::test]
async fn a_registration_that_is_too_long_changes_nothing() {
    let Some(serf) = Serf::find() else { return };
    let inventory = "x".repeat(450);
    let node = serf
        .agent("node")
        .tag("inventory", &inventory)
        .start()
        .await;
    let before = tags_of(&node).await;
    let error = orders().register(&connection_to(&node)).await.unwrap_err();
    let RegistrationError::TagsTooLong(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.tags[0].tag, "inventory");
    assert_eq!(tags_of(&node).await, before);

    let small = Registration::new("o", 1)
        .register(&connection_to(&node))
        .await;
    let small = small.unwrap();
    // One that does not fit leaves the one that does.
    let error = small.update(orders()).await.unwrap_err();
    assert!(
        matches!(error, RegistrationError::TagsTooLong(_)),
        "{error}"
    );
    assert!(small.state().is_announced());
    assert_eq!(tags_of(&node).await.text("service").unwrap(), "o");
}

#[tokio::test]
async fn an_agent_that_is_not_there_or_wants_a_key_is_an_error() {
    let Some(serf) = Serf::find() else { return };
    let mut node = serf.agent("node").auth_key("sekrit").start().await;
    let without = orders().register(&connection_to(&node)).await.unwrap_err();
    assert!(!without.is_transient(), "{without}");
    let with = connection_to(&node).with_auth_key("sekrit");
    let registered = orders().register(&with).await.unwrap();
    node.kill().await;
    let absent = orders().register(&with).await.unwrap_err();
    assert!(absent.is_transient(), "{absent}");
    // There is no agent to withdraw it from, which is an error.
    registered.withdraw().await.unwrap_err();
}
