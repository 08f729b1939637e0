use super::{Serf, SerfAgent};
use crate::time::eventually;

#[tokio::test]
async fn agents_join_speak_and_leave() {
    let Some(serf) = Serf::find() else { return };
    let first = serf.agent("first").tag("role", "lead").start().await;
    let mut second = serf.agent("second").join(&first).start().await;
    first.wait_for("second", "alive").await;

    let members = first.members().await;
    let names: Vec<_> = members.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(members[0].tags["role"], "lead");
    assert_eq!(members[0].addr, first.gossip_addr());

    second.set_tag("weight", "5").await;
    assert_eq!(second.own_tags().await["weight"], "5");
    second.delete_tag("weight").await;
    assert!(second.own_tags().await.is_empty());

    second.leave().await;
    first.wait_for("second", "left").await;
}

#[tokio::test]
async fn a_restarted_agent_is_where_it_was_and_keeps_what_it_was_told_to_keep() {
    let Some(serf) = Serf::find() else { return };
    let other = serf.agent("other").start().await;
    let mut forgets = serf.agent("forgets").join(&other).start().await;
    let mut keeps = serf.agent("keeps").join(&other).keep_tags().start().await;
    let places = (forgets.rpc_addr(), keeps.rpc_addr());
    for agent in [&forgets, &keeps] {
        agent.set_tag("service", "orders").await;
    }
    forgets.restart().await;
    keeps.restart().await;
    assert_eq!((forgets.rpc_addr(), keeps.rpc_addr()), places);
    assert!(forgets.own_tags().await.is_empty());
    assert_eq!(keeps.own_tags().await["service"], "orders");
    for name in ["forgets", "keeps"] {
        other.wait_for(name, "alive").await;
    }
}

#[tokio::test]
async fn an_agent_can_come_back_as_somebody_else() {
    let Some(serf) = Serf::find() else { return };
    let mut agent = serf.agent("moved").tag("http-port", "1").start().await;
    agent.start_with_tag("http-port", "2");
    assert_eq!(agent.own_tags().await["http-port"], "1");
    agent.restart().await;
    assert_eq!(agent.own_tags().await["http-port"], "2");
}

#[tokio::test]
async fn a_key_is_demanded() {
    let Some(serf) = Serf::find() else { return };
    let agent = serf.agent("guarded").auth_key("sekrit").start().await;
    assert_eq!(agent.members().await.len(), 1);
    let without = agent.run("members", &["-rpc-auth=wrong"]).await;
    assert!(!without.status.success(), "{}", without.stdout);
}

#[tokio::test]
async fn an_agent_can_be_on_ipv6() {
    let Some(serf) = Serf::find() else { return };
    let first = serf.agent("first").ipv6().start().await;
    let second = serf.agent("second").ipv6().join(&first).start().await;
    first.wait_for("second", "alive").await;
    assert_eq!(first.members().await[1].addr, second.gossip_addr());
}

#[tokio::test]
async fn a_killed_agent_is_gone() {
    let Some(serf) = Serf::find() else { return };
    let mut agent = serf.agent("short-lived").start().await;
    let address = agent.rpc_addr();
    agent.kill().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());

    let dropped = serf.agent("dropped").start().await;
    let address = dropped.rpc_addr();
    drop(dropped);
    eventually("nobody listens there", || async {
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn an_agent_that_does_not_start_is_quoted() {
    let Some(serf) = Serf::find() else { return };
    let recipe = serf.agent("bad").tag("", "no key").recipe();
    let failed = SerfAgent::start(recipe).await.unwrap_err();
    assert!(failed.to_string().contains("Invalid tag"), "{failed}");
}

#[tokio::test]
async fn a_port_that_was_taken_meanwhile_is_told_from_other_failures() {
    let Some(serf) = Serf::find() else { return };
    let recipe = serf.agent("late").recipe();
    let _taken = std::net::TcpListener::bind(recipe.place.rpc).unwrap();
    let failed = SerfAgent::start(recipe).await.unwrap_err();
    assert!(failed.is_for_a_taken_port(), "{failed}");
}
