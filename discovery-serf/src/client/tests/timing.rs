//! Tests of time limits.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_silent_agent_is_left_after_the_time_of_the_handshake() {
    let (agent, io) = Script::new();
    let begin = Instant::now();
    let client = SerfClient::connect_over(io, &options()).await;
    assert_eq!(kind(&client), ClientErrorKind::TimedOut);
    assert_eq!(begin.elapsed(), 2 * SECOND);
    drop(agent);

    let (mut agent, io) = Script::new();
    let options = options()
        .with_auth_key("k")
        .with_handshake_timeout(3 * SECOND);
    let begin = Instant::now();
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, &options), async {
        let (seq, _) = agent.request().await;
        sleep(2 * SECOND).await;
        agent.ok(seq).await;
        agent.request().await;
    });
    let error = client.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::TimedOut);
    assert!(
        error.to_string().contains("auth: no answer within 3s"),
        "{error}"
    );
    assert_eq!(begin.elapsed(), 5 * SECOND);
    agent.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_ends_the_connection() {
    let (mut agent, client, mut stream, _) = streaming().await;
    let begin = Instant::now();
    let (members, stats) = tokio::join!(client.members(), client.stats());
    assert_eq!(begin.elapsed(), 5 * SECOND);
    assert_eq!(kind(&members), ClientErrorKind::TimedOut);
    assert_eq!(kind(&stats), ClientErrorKind::Closed);
    assert!(
        stats
            .unwrap_err()
            .to_string()
            .contains("no answer within 5s")
    );
    assert_eq!(stream.next().await, None);
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::TimedOut);
    agent.request().await;
    agent.request().await;
    agent.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_waits_for_is_still_to_be_answered() {
    let (_agent, client) = introduced().await;
    let given_up = tokio::time::timeout(SECOND, client.members()).await;
    assert!(given_up.is_err());
    let begin = Instant::now();
    client.closed().await;
    assert_eq!(begin.elapsed(), 4 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_not_blamed_for_those_before_it() {
    let (mut agent, client) = introduced().await;
    let (joined, members, ()) = tokio::join!(client.join(&["a"], false), client.members(), async {
        let (join, _) = agent.request().await;
        let (members, _) = agent.request().await;
        sleep(12 * SECOND).await;
        agent
            .say(&[&header(join, "")[..], b"\x81\xa3Num\x01"].concat())
            .await;
        sleep(4 * SECOND).await;
        agent.members(members, &[]).await;
    });
    assert_eq!(joined.unwrap(), 1);
    members.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_the_cluster_may_take_longer() {
    for (addresses, expected) in [(&["a"][..], 15), (&["a", "b", "c"], 35), (&[], 15)] {
        let (_agent, client) = introduced().await;
        let begin = Instant::now();
        let joined = client.join(addresses, false).await;
        assert_eq!(kind(&joined), ClientErrorKind::TimedOut);
        assert_eq!(begin.elapsed(), expected * SECOND);
    }
    let (_agent, client) = introduced().await;
    let begin = Instant::now();
    let done = client.set_tags(&Tags::new(), &[]).await;
    assert_eq!(kind(&done), ClientErrorKind::TimedOut);
    assert_eq!(begin.elapsed(), 15 * SECOND);
}

/// An agent that was stopped with SIGSTOP in the middle of a reply.
#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_in_the_middle_is_not_waited_for() {
    for cut in [3, 40] {
        let (mut agent, client) = introduced().await;
        let begin = Instant::now();
        let members = answered(client.members(), &mut agent, async |agent, seq| {
            let mut reply = header(seq, "");
            encode_members(&[member("a")], &mut reply);
            agent.say(&reply[..cut]).await;
        });
        assert_eq!(kind(&members.await), ClientErrorKind::TimedOut);
        let took = begin.elapsed();
        assert!((5 * SECOND..6 * SECOND).contains(&took), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_may_take_longer_while_it_comes() {
    // 4 MiB in 8 seconds.
    let long: Vec<Member> = (0..40_000)
        .map(|number| {
            let mut member = member(&format!("node-{number}"));
            member.tags.insert("a", "b");
            member
        })
        .collect();
    let mut body = Vec::new();
    encode_members(&long, &mut body);
    assert!(body.len() > 4 << 20, "{}", body.len());
    let (mut agent, client) = introduced().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.ok(seq).await;
        let eighth = body.len().div_ceil(8);
        for part in body.chunks(eighth) {
            agent.say(part).await;
            sleep(SECOND).await;
        }
    });
    assert_eq!(members.await.unwrap().len(), long.len());

    // A little at a time is not long.
    let begin = Instant::now();
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.ok(seq).await;
        for part in body.chunks(1_000).take(600) {
            if agent.replies.write_all(part).await.is_err() {
                break;
            }
            sleep(SECOND / 10).await;
        }
    });
    assert_eq!(kind(&members.await), ClientErrorKind::TimedOut);
    assert!(begin.elapsed() < 70 * SECOND);
    assert!(client.end().is_some());
}

/// An agent that sends so many events that it never replies is disconnected, not read forever.
#[tokio::test(start_paused = true)]
async fn events_do_not_make_up_for_an_answer() {
    let (mut agent, client, _stream, events) = streaming().await;
    let begin = Instant::now();
    let (members, ()) = tokio::join!(client.members(), async {
        agent.request().await;
        let record = record(events, &user_event(1));
        while agent.replies.write_all(&record).await.is_ok() {
            sleep(SECOND / 10).await;
        }
    });
    assert_eq!(kind(&members), ClientErrorKind::TimedOut);
    assert!(begin.elapsed() < 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_read_is_left() {
    let (mut agent, io) = Script::with_room(64);
    let options = options();
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, &options), async {
        let (seq, _) = agent.request().await;
        agent.ok(seq).await;
    });
    let client = client.unwrap();
    let begin = Instant::now();
    let done = client.event("e", &[7; 1_000], false).await;
    assert_eq!(kind(&done), ClientErrorKind::TimedOut);
    assert_eq!(begin.elapsed(), 5 * SECOND);
    drop(agent);
}

#[tokio::test(start_paused = true)]
async fn what_is_told_while_the_agent_does_not_read_is_heard() {
    let (mut agent, io) = Script::with_room(512);
    let options = options();
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, &options), async {
        let (seq, _) = agent.request().await;
        agent.ok(seq).await;
    });
    let client = client.unwrap();
    let filter = EventFilter::all();
    let (stream, events) = tokio::join!(client.stream(&filter), async {
        let (seq, _) = agent.request().await;
        agent.ok(seq).await;
        seq
    });
    let mut stream = stream.unwrap();
    let (done, ()) = tokio::join!(client.event("e", &[7; 10_000], false), async {
        // Neither side would get anywhere if the client did not read while it writes.
        for number in 0..100 {
            agent.tell(events, &user_event(number)).await;
            assert_eq!(stream.next().await, Some(Ok(user_event(number))));
        }
        let (seq, _) = agent.request().await;
        agent.ok(seq).await;
    });
    done.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_stays() {
    let (mut agent, client) = introduced().await;
    sleep(3_600 * SECOND).await;
    assert!(!client.is_closed());
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test(start_paused = true)]
async fn time_may_be_unlimited() {
    let options = options().with_request_timeout(Duration::MAX);
    let (mut agent, client) = introduced_with(&options).await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        sleep(3_600 * SECOND).await;
        agent.members(seq, &[]).await;
    });
    members.await.unwrap();
    let joined = answered(
        client.join(&["a"], false),
        &mut agent,
        async |agent, seq| {
            agent
                .say(&[&header(seq, "")[..], b"\x81\xa3Num\x00"].concat())
                .await;
        },
    );
    assert_eq!(joined.await.unwrap(), 0);
}
