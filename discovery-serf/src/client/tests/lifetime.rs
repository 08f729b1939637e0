//! Tests of the end of connections and of dropped parts.

use futures_util::FutureExt;

use super::*;

#[tokio::test]
async fn dropping_the_last_client_closes_the_connection() {
    let (mut agent, client) = introduced().await;
    let clone = client.clone();
    drop(client);
    check_goes_on(&mut agent, &clone).await;
    drop(clone);
    agent.closed().await;
}

#[tokio::test]
async fn a_stream_keeps_the_connection_open() {
    let (mut agent, client, mut stream, seq) = streaming().await;
    drop(client);
    agent.tell(seq, &user_event(1)).await;
    assert_eq!(stream.next().await, Some(Ok(user_event(1))));
    drop(stream);
    // Nothing is sent first: the agent notices.
    agent.closed().await;
}

#[tokio::test]
async fn a_connection_is_closed_when_connecting_is_given_up() {
    let (mut agent, io) = Script::new();
    let options = options();
    let mut connecting = Box::pin(SerfClient::connect_over(io, &options));
    assert!(connecting.as_mut().now_or_never().is_none());
    agent.request().await;
    drop(connecting);
    agent.closed().await;
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_thrown_away() {
    let (mut agent, client) = introduced().await;
    let mut request = Box::pin(client.members());
    assert!(request.as_mut().now_or_never().is_none());
    let (seq, _) = agent.request().await;
    drop(request);
    agent.members(seq, &[member("a")]).await;
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn everybody_hears_of_the_end() {
    let (agent, client, mut stream, _) = streaming().await;
    assert!(!client.is_closed());
    assert!(client.end().is_none());
    let (members, stats, event, (), ()) = tokio::join!(
        client.members(),
        client.stats(),
        stream.next(),
        client.closed(),
        async {
            tokio::task::yield_now().await;
            drop(agent);
        }
    );
    assert_eq!(kind(&members), ClientErrorKind::Closed);
    assert_eq!(kind(&stats), ClientErrorKind::Closed);
    assert_eq!(event, None);
    assert!(client.is_closed());
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::Closed);
    let error = client.members().await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Closed);
    assert!(error.is_transient());
    assert!(
        with_causes(&error).contains("closed the connection"),
        "{error}"
    );
    let stream = client.stream(&EventFilter::members()).await;
    assert_eq!(kind(&stream), ClientErrorKind::Closed);
}

#[tokio::test]
async fn there_are_not_too_many_requests_at_a_time() {
    let (mut agent, client) = introduced().await;
    let requests: Vec<_> = (0..200)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.event("e", b"", false).await })
        })
        .collect();
    let mut waiting = std::collections::VecDeque::new();
    for _ in 0..64 {
        waiting.push_back(agent.request().await.0);
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(agent.requests.next().now_or_never().is_none());
    for _ in 64..200 {
        agent.ok(waiting.pop_front().unwrap()).await;
        waiting.push_back(agent.request().await.0);
    }
    for seq in waiting {
        agent.ok(seq).await;
    }
    for request in requests {
        request.await.unwrap().unwrap();
    }
}

/// Replies to each request, with records of streams in between and after their end, until the client closes
/// the connection.
async fn echo(mut agent: Script) {
    while let Some((seq, request)) = agent.next_request().await {
        let mut answer = header(seq, "");
        match request {
            Request::MembersFiltered { name, .. } => encode_members(&[member(&name)], &mut answer),
            Request::Stream { .. } => answer.extend(record(seq, &user_event(seq)).repeat(3)),
            Request::Stop { seq } => answer.extend(record(seq, &user_event(seq))),
            other => panic!("nobody asks for {other:?}"),
        }
        if agent.replies.write_all(&answer).await.is_err() {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_many_tasks_ask_for_is_not_mixed_up() {
    let (agent, client) = introduced().await;
    let agent = tokio::spawn(echo(agent));
    let asking = (0..20).map(|task| {
        let client = client.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                let name = format!("{task}-{number}");
                let filter = MemberFilter::new().with_name(&name);
                let members = client.members_filtered(&filter).await.unwrap();
                assert_eq!(members, [member(&format!("(?:{name})"))]);
                let mut stream = client.stream(&EventFilter::all()).await.unwrap();
                let first = stream.next().await.unwrap().unwrap();
                // Some are dropped while there is more to come.
                for _ in 0..number % 3 {
                    assert_eq!(stream.next().await.unwrap().unwrap(), first);
                }
            }
        })
    });
    for task in asking.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert!(client.end().is_none());
    drop(client);
    agent.await.unwrap();
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_the_connection() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let (_agent, client) = first.block_on(introduced());
    drop(first);
    let members = runtime().block_on(client.members());
    assert_eq!(kind(&members), ClientErrorKind::Closed);
    assert!(client.is_closed());
}
