//! Tests of each command of the client with real agents.

use discovery_serf::client::{
    ClientErrorKind, Event, EventFilter, EventStream, MemberEventKind, MemberFilter, SerfClient,
};
use discovery_serf::{MemberStatus, Tags};
use testkit::serf::Serf;
use testkit::time::guarded;

use crate::live::support::{client_of, connection_to};

#[tokio::test]
async fn members_are_listed_as_the_command_line_lists_them() {
    let Some(serf) = Serf::find() else { return };
    let first = serf.agent("first").start().await;
    let second = serf.agent("second").tag("service", "orders").join(&first);
    let second = second.start().await;
    first.wait_for("second", "alive").await;
    let client = client_of(&first).await;

    let mut members = client.members().await.unwrap();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let listed = first.members().await;
    assert_eq!(members.len(), listed.len());
    for (member, listed) in members.iter().zip(&listed) {
        assert_eq!(*member.name, *listed.name);
        assert_eq!(member.address, Some(listed.addr.ip()));
        assert_eq!(member.port, listed.addr.port());
        assert_eq!(member.status.as_str(), listed.status);
        assert_eq!(member.tags, listed.tags.clone().into_iter().collect());
    }
    assert_eq!(members[1].address, Some(second.gossip_addr().ip()));

    // A pattern is for the whole name, also one with alternatives.
    let either = MemberFilter::default().with_name("sec|second");
    let found = client.members_filtered(&either).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(&*found[0].name, "second");
    let with_service = MemberFilter::default()
        .with_status("alive")
        .with_tag("service", ".+");
    let found = client.members_filtered(&with_service).await.unwrap();
    assert_eq!(found.len(), 1);
    let nobody = MemberFilter::default().with_name("seco");
    assert!(client.members_filtered(&nobody).await.unwrap().is_empty());

    let stats = client.stats().await.unwrap();
    assert_eq!(stats.get("agent", "name"), Some("first"));
    assert_eq!(stats.get("serf", "members"), Some("2"));
    assert_eq!(stats.get("tags", "service"), None);
}

#[tokio::test]
async fn tags_are_any_bytes_but_not_too_many() {
    let Some(serf) = Serf::find() else { return };
    let agent = serf.agent("tagged").tag("old", "1").start().await;
    let client = client_of(&agent).await;
    let tags = Tags::from([
        ("bytes", &[0xff, 0x00, b'\n', b'='][..]),
        // Longer than the shortest form of a string.
        ("long", &[b'x'; 300]),
        ("empty", b""),
    ]);
    client.set_tags(&tags, &["old"]).await.unwrap();
    let members = client.members().await.unwrap();
    assert_eq!(members[0].tags, tags);

    let too_long = Tags::from([("note", "n".repeat(300))]);
    let error = client.set_tags(&too_long, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::TagsTooLong, "{error}");
    // The connection goes on, and nothing was set.
    assert_eq!(client.members().await.unwrap()[0].tags, tags);
}

#[tokio::test]
async fn a_stream_tells_what_happens_to_members_and_nothing_else() {
    let Some(serf) = Serf::find() else { return };
    let observer = serf.agent("observer").start().await;
    let client = client_of(&observer).await;
    let mut members = client.stream(&EventFilter::members()).await.unwrap();

    let mut node = serf.agent("node").join(&observer).start().await;
    next_of(&mut members, MemberEventKind::Join, MemberStatus::Alive).await;
    // Not for this stream; and it keeps events of members in order, so it would have come before the next one.
    client.event("deploy", b"v1\x00\xff", false).await.unwrap();
    node.set_tag("weight", "5").await;
    next_of(&mut members, MemberEventKind::Update, MemberStatus::Alive).await;
    node.leave().await;
    next_of(&mut members, MemberEventKind::Leave, MemberStatus::Left).await;
    client.force_leave("node", true).await.unwrap();
    let reaped = next_of(&mut members, MemberEventKind::Reap, MemberStatus::Left).await;
    assert_eq!(reaped, ["node"]);
    assert_eq!(client.members().await.unwrap().len(), 1);
}

#[tokio::test]
async fn clusters_are_joined_and_left_by_command() {
    let Some(serf) = Serf::find() else { return };
    let first = serf.agent("first").start().await;
    let mut second = serf.agent("second").start().await;
    let client = SerfClient::connect(&connection_to(&second)).await.unwrap();
    let address = first.gossip_addr().to_string();
    let joined = client.join(&[address.as_str()], false).await.unwrap();
    assert_eq!(joined, 1);
    first.wait_for("second", "alive").await;

    // No agent listens there: an error, after which the connection goes on.
    let nobody = testkit::peers::free_port();
    let address = format!("127.0.0.1:{nobody}");
    let error = client.join(&[address.as_str()], false).await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Rejected, "{error}");
    assert_eq!(client.members().await.unwrap().len(), 2);

    client.leave().await.unwrap();
    assert!(second.ended().await.success());
    guarded("the end of the connection", client.closed()).await;
    assert!(client.is_closed());
    first.wait_for("second", "left").await;
}

/// The names in the next event, which must be of this kind and about members in this status.
async fn next_of(
    events: &mut EventStream,
    kind: MemberEventKind,
    status: MemberStatus,
) -> Vec<String> {
    let event = guarded(format!("{kind:?}"), events.next()).await;
    match event.unwrap().unwrap() {
        Event::Member {
            kind: found,
            members,
        } => {
            assert_eq!(found, kind);
            assert!(members.iter().all(|m| m.status == status), "{members:?}");
            let names = members.iter().map(|member| member.name.to_string());
            names.collect()
        }
        other => panic!("{other:?} rather than {kind:?}"),
    }
}
