//! Streams of events.

use std::time::Duration;

use futures_util::FutureExt;

use super::*;

async fn open(agent: &mut Script, client: &SerfClient) -> (EventStream, u64) {
    let filter = EventFilter::members();
    let (stream, seq) = tokio::join!(client.stream(&filter), async {
        let (seq, _) = agent.request().await;
        agent.ok(seq).await;
        seq
    });
    (stream.unwrap(), seq)
}

#[tokio::test]
async fn a_stream_that_is_dropped_is_stopped() {
    let (mut agent, client, stream, seq) = streaming().await;
    agent.tell(seq, &user_event(1)).await;
    drop(stream);
    let stop = agent.expect(&Request::Stop { seq }).await;
    // The agent sends queued records before its reply, and after it.
    agent.tell(seq, &user_event(2)).await;
    agent.ok(stop).await;
    agent.tell(seq, &user_event(3)).await;
    check_goes_on(&mut agent, &client).await;
    agent.tell(seq, &user_event(4)).await;
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn numbers_do_not_come_again() {
    let (mut agent, client, first, seq) = streaming().await;
    let mut seen = vec![seq];
    drop(first);
    for _ in 0..100 {
        let before = *seen.last().unwrap();
        let stop = agent.expect(&Request::Stop { seq: before }).await;
        agent.ok(stop).await;
        let (mut stream, seq) = open(&mut agent, &client).await;
        // A late record of the earlier stream does not belong to this one.
        agent.tell(before, &user_event(1)).await;
        agent.tell(seq, &user_event(2)).await;
        assert_eq!(stream.next().await, Some(Ok(user_event(2))));
        seen.extend([stop, seq]);
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[tokio::test]
async fn several_streams_get_their_own_events() {
    let (mut agent, client, mut first, one) = streaming().await;
    let (mut second, two) = open(&mut agent, &client).await;
    agent.tell(two, &user_event(2)).await;
    agent.tell(one, &user_event(1)).await;
    assert_eq!(first.next().await, Some(Ok(user_event(1))));
    assert_eq!(second.next().await, Some(Ok(user_event(2))));
    drop(first);
    agent.expect(&Request::Stop { seq: one }).await;
    agent.tell(two, &user_event(3)).await;
    assert_eq!(second.next().await, Some(Ok(user_event(3))));
}

#[tokio::test]
async fn a_request_for_a_stream_that_was_dropped_leaves_no_stream() {
    // Before the agent has agreed.
    let (mut agent, client) = introduced().await;
    let filter = EventFilter::members();
    let mut request = Box::pin(client.stream(&filter));
    assert!(request.as_mut().now_or_never().is_none());
    let (seq, _) = agent.request().await;
    drop(request);
    agent.ok(seq).await;
    let stop = agent.expect(&Request::Stop { seq }).await;
    agent.tell(seq, &user_event(1)).await;
    agent.ok(stop).await;
    // After that, but before it was noticed.
    let mut request = Box::pin(client.stream(&filter));
    assert!(request.as_mut().now_or_never().is_none());
    let (seq, _) = agent.request().await;
    agent.ok(seq).await;
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    drop(request);
    let stop = agent.expect(&Request::Stop { seq }).await;
    agent.ok(stop).await;
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn nobody_waits_for_one_who_does_not_ask() {
    let options = options().with_max_queued_events(100);
    let (mut agent, client, mut stream, events) = streaming_with(&options).await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        for number in 0..5_000 {
            agent.tell(events, &user_event(number)).await;
        }
        agent.members(seq, &[member("a")]).await;
    });
    assert_eq!(members.await.unwrap(), [member("a")]);
    assert_eq!(stream.next().await, Some(Err(EventError::Lagged(4_900))));
    for number in 4_900..5_000 {
        assert_eq!(stream.next().await, Some(Ok(user_event(number))));
    }
    agent.tell(events, &user_event(5_000)).await;
    assert_eq!(stream.next().await, Some(Ok(user_event(5_000))));
}

#[tokio::test]
async fn queues_are_bounded_by_their_length_too() {
    let long = Event::User {
        name: "long".into(),
        payload: vec![7; 1_000],
        logical_time: 1,
        coalesce: false,
    };
    let options = options().with_max_queued_bytes(10_000);
    let (mut agent, client, mut stream, events) = streaming_with(&options).await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        for _ in 0..20 {
            agent.tell(events, &long).await;
        }
        agent.members(seq, &[]).await;
    });
    members.await.unwrap();
    assert_eq!(stream.next().await, Some(Err(EventError::Lagged(11))));
    for _ in 0..9 {
        assert_eq!(stream.next().await, Some(Ok(long.clone())));
    }
    assert!(stream.next().now_or_never().is_none());
}

#[tokio::test]
async fn what_was_told_before_the_end_can_be_had_after_it() {
    let (mut agent, client, mut stream, events) = streaming().await;
    agent.tell(events, &user_event(1)).await;
    drop(agent);
    client.closed().await;
    assert_eq!(stream.next().await, Some(Ok(user_event(1))));
    assert_eq!(stream.next().await, None);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn events_that_are_new_or_make_no_sense_do_not_end_a_stream() {
    let (mut agent, _client, mut stream, events) = streaming().await;
    let kind = "member-dance".into();
    let new = Event::Other { kind };
    agent.tell(events, &new).await;
    agent
        .say(&[&header(events, "")[..], b"\x93\x01\x02\x03"].concat())
        .await;
    agent.tell(events, &user_event(1)).await;
    assert_eq!(stream.next().await, Some(Ok(new)));
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(error, EventError::Undecodable(_)), "{error:?}");
    assert_eq!(stream.next().await, Some(Ok(user_event(1))));
}

#[tokio::test]
async fn a_record_with_an_error_ends_the_connection() {
    let (mut agent, client, mut stream, events) = streaming().await;
    agent.reply(events, "out of events").await;
    assert_eq!(stream.next().await, None);
    client.closed().await;
    let end = client.end().unwrap();
    assert_eq!(end.kind(), ClientErrorKind::Protocol);
    assert!(with_causes(end).contains("out of events"));
}

#[tokio::test]
async fn there_are_not_too_many_streams() {
    let (mut agent, client) = introduced().await;
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(open(&mut agent, &client).await);
    }
    let rejected = client.stream(&EventFilter::members()).await;
    assert_eq!(kind(&rejected), ClientErrorKind::InvalidRequest);
    let (_, seq) = streams.pop().unwrap();
    let stop = agent.expect(&Request::Stop { seq }).await;
    agent.ok(stop).await;
    open(&mut agent, &client).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_event_may_be_given_up() {
    let (mut agent, _client, mut stream, events) = streaming().await;
    let nothing = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
    assert!(nothing.is_err(), "a quiet cluster is no reason to end");
    agent.tell(events, &user_event(1)).await;
    assert_eq!(stream.next().await, Some(Ok(user_event(1))));
}
