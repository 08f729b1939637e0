use std::time::Duration;

use super::*;
use crate::client::{
    ClientErrorKind, ConnectOptions, EventFilter, EventStream, MemberFilter, SerfClient,
};

fn tags(service: &str) -> Tags {
    Tags::from([("service", service), ("http-port", "80")])
}

fn member(name: &str, service: &str) -> Member {
    Member::new(name, [10, 0, 0, 1].into(), tags(service))
}

async fn client(agent: &AgentInMemory) -> SerfClient {
    let io = agent.connect().unwrap();
    SerfClient::connect_over(io, &ConnectOptions::default())
        .await
        .unwrap()
}

async fn next(stream: &mut EventStream) -> Event {
    let next = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
    next.unwrap().unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_lists_its_members_and_those_that_match() {
    let agent = AgentInMemory::new("gw");
    agent.put(member("o1", "orders"));
    agent.put(member("p1", "payments"));
    agent.fail("p1");
    let client = client(&agent).await;
    let names = |members: Vec<Member>| {
        let mut names: Vec<_> = members.iter().map(|m| m.name.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names(client.members().await.unwrap()), ["gw", "o1", "p1"]);
    for (filter, expected) in [
        (
            MemberFilter::new().with_tag("service", ".+"),
            vec!["o1", "p1"],
        ),
        (
            MemberFilter::new().with_tag("service", "orders"),
            vec!["o1"],
        ),
        (MemberFilter::new().with_status("failed"), vec!["p1"]),
        (MemberFilter::new().with_name("gw"), vec!["gw"]),
    ] {
        let found = client.members_filtered(&filter).await.unwrap();
        assert_eq!(names(found), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn it_tells_each_stream_what_it_wants() {
    let agent = AgentInMemory::new("gw");
    let client = client(&agent).await;
    let mut members = client.stream(&EventFilter::members()).await.unwrap();
    let deploy = EventFilter::user_event("deploy");
    let mut deploy = client.stream(&deploy).await.unwrap();
    agent.join(member("o1", "orders"));
    client.event("other", b"1", false).await.unwrap();
    client.event("deploy", b"2", true).await.unwrap();
    let expected = Event::Member {
        kind: MemberEventKind::Join,
        members: vec![member("o1", "orders")],
    };
    assert_eq!(next(&mut members).await, expected);
    let expected = Event::User {
        name: "deploy".into(),
        payload: b"2".to_vec(),
        logical_time: 2,
        coalesce: true,
    };
    assert_eq!(next(&mut deploy).await, expected);
}

#[tokio::test(start_paused = true)]
async fn its_own_tags_can_be_changed_within_their_limit() {
    let agent = AgentInMemory::new("gw");
    let client = client(&agent).await;
    let mut events = client.stream(&EventFilter::members()).await.unwrap();
    client.set_tags(&tags("orders"), &[]).await.unwrap();
    client.set_tags(&Tags::new(), &["http-port"]).await.unwrap();
    let left = Tags::from([("service", "orders")]);
    let stats = client.stats().await.unwrap();
    assert_eq!(stats.get("agent", "name"), Some("gw"));
    assert_eq!(stats.get("tags", "service"), Some("orders"));
    assert_eq!(client.members().await.unwrap()[0].tags, left);
    for expected in [tags("orders"), left.clone()] {
        let Event::Member { kind, members } = next(&mut events).await else {
            panic!("it is about a member");
        };
        assert_eq!(
            (kind, &members[0].tags),
            (MemberEventKind::Update, &expected)
        );
    }
    // As measured with a real agent: 505 bytes under a key of one byte.
    client.set_tags(&Tags::new(), &["service"]).await.unwrap();
    let most = Tags::from([("k", "v".repeat(505))]);
    client.set_tags(&most, &[]).await.unwrap();
    let more = Tags::from([("k", "v".repeat(506))]);
    let error = client.set_tags(&more, &[]).await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::TagsTooLong);
    assert_eq!(client.members().await.unwrap()[0].tags, most);
}

#[tokio::test(start_paused = true)]
async fn the_other_commands_do_what_an_agent_does() {
    let agent = AgentInMemory::new("gw");
    agent.put(member("o1", "orders"));
    agent.put(member("o2", "orders"));
    let client = client(&agent).await;
    assert_eq!(
        client.join(&["10.0.0.1", "10.0.0.2"], false).await.unwrap(),
        2
    );
    agent.fail("o1");
    agent.fail("o2");
    client.force_leave("o1", false).await.unwrap();
    client.force_leave("o2", true).await.unwrap();
    client.force_leave("nobody", true).await.unwrap();
    let members = client.members().await.unwrap();
    let o1 = members.iter().find(|m| &*m.name == "o1").unwrap();
    assert_eq!((members.len(), &o1.status), (2, &MemberStatus::Left));
    client.leave().await.unwrap();
    agent.wait_for_connections(0).await;
    assert!(agent.connect().is_err());
}

#[tokio::test(start_paused = true)]
async fn it_rejects_stalls_stops_and_counts() {
    let agent = AgentInMemory::new("gw");
    agent.reject("stats", "no");
    let client = client(&agent).await;
    let error = client.stats().await.unwrap_err();
    assert_eq!(error.agent_error(), Some("no"));
    agent.obey("stats");
    agent.stall();
    let waiting = tokio::time::timeout(Duration::from_secs(1), client.stats()).await;
    assert!(waiting.is_err());
    agent.resume();
    client.stats().await.unwrap();
    assert_eq!(agent.calls("stats"), 3);
    assert_eq!(agent.connections(), 1);
    agent.restart();
    client.closed().await;
    agent.wait_for_connections(0).await;
    assert!(agent.connect().is_ok());
    agent.stop();
    assert!(agent.connect().is_err());
}
