//! Tests of requests and their results.

use super::*;

/// The request that a call makes, which the agent grants without a body.
async fn request_of<T: fmt::Debug>(
    call: impl AsyncFnOnce(&SerfClient) -> Result<T, ClientError>,
) -> Request {
    let (mut agent, client) = introduced().await;
    let (_, request) = tokio::join!(call(&client), async {
        let (_, request) = agent.request().await;
        drop(agent);
        request
    });
    request
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn calls_ask_for_what_they_say() {
    let payload = vec![0, 0xff];
    let request = request_of(async |client| client.event("deploy", &[0, 0xff], true).await);
    let name = "deploy".to_owned();
    let expected = Request::Event {
        name,
        payload,
        coalesce: true,
    };
    assert_eq!(request.await, expected);

    let request = request_of(async |client| client.join(&["a", "b:1"], true).await);
    let addresses = texts(&["a", "b:1"]);
    let replay = true;
    assert_eq!(request.await, Request::Join { addresses, replay });

    let request = request_of(async |client| client.force_leave("old", true).await);
    let node = "old".to_owned();
    assert_eq!(request.await, Request::ForceLeave { node, prune: true });

    let set = Tags::from([(&b"a"[..], &[0xff][..])]);
    let request = request_of(async |client| client.set_tags(&set, &["b"]).await).await;
    let delete = texts(&["b"]);
    assert_eq!(request, Request::Tags { set, delete });

    let request = request_of(async |client| client.leave().await);
    assert_eq!(request.await, Request::Leave);
    let request = request_of(async |client| client.stats().await);
    assert_eq!(request.await, Request::Stats);
}

#[tokio::test]
async fn patterns_match_a_text_as_a_whole() {
    let filter = MemberFilter::new()
        .with_name("web-.*")
        .with_status("alive|leaving")
        .with_tag("service", "ord|zzz");
    let request = request_of(async |client| client.members_filtered(&filter).await).await;
    let tags = [("service".to_owned(), "(?:ord|zzz)".to_owned())];
    let expected = Request::MembersFiltered {
        tags: tags.into(),
        status: "(?:alive|leaving)".to_owned(),
        name: "(?:web-.*)".to_owned(),
    };
    assert_eq!(request, expected);

    // An agent does not filter by an empty text, which is not the same as a pattern that matches nothing else.
    let all = MemberFilter::new();
    let request = request_of(async |client| client.members_filtered(&all).await).await;
    let expected = Request::MembersFiltered {
        tags: [].into(),
        status: String::new(),
        name: String::new(),
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn a_pattern_that_is_none_is_suspected_when_the_agent_goes() {
    let (mut agent, client) = introduced().await;
    let filter = MemberFilter::new().with_name("(");
    let (members, ()) = tokio::join!(client.members_filtered(&filter), async {
        agent.request().await;
        drop(agent);
    });
    let error = members.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Closed);
    assert!(error.to_string().contains("pattern"), "{error}");
}

#[tokio::test]
async fn tags_that_are_too_long_are_an_error_of_their_own() {
    let (mut agent, client) = introduced().await;
    let set = Tags::from([("a", "x".repeat(600))]);
    let tags = client.set_tags(&set, &[]);
    let done = answered(tags, &mut agent, async |agent, seq| {
        let said = "Encoded length of tags exceeds limit of 512 bytes";
        agent.reply(seq, said).await;
    });
    let error = done.await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::TagsTooLong);
    assert!(!error.is_transient());
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn what_an_agent_says_is_short_and_printable() {
    let (mut agent, client) = introduced().await;
    let event = client.event("e", b"", false);
    let done = answered(event, &mut agent, async |agent, seq| {
        agent.reply(seq, &"no\r\n\u{1b}[2J".repeat(10_000)).await;
    });
    let error = done.await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Rejected);
    let text = with_causes(&error);
    assert!(
        text.len() < 5_000 && !text.contains(char::is_control),
        "{text}"
    );
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn a_success_that_is_none_is_no_success() {
    let (mut agent, client) = introduced().await;
    let joined = answered(
        client.join(&["a"], false),
        &mut agent,
        async |agent, seq| {
            agent.say(&[&header(seq, "")[..], b"\x80"].concat()).await;
        },
    );
    assert_eq!(kind(&joined.await), ClientErrorKind::Protocol);
    // An agent with such a response is not trusted any longer.
    client.closed().await;
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::Protocol);
    agent.closed().await;
}

#[tokio::test]
async fn what_is_too_long_is_not_sent() {
    let (mut agent, client) = introduced().await;
    let payload = vec![0; 2 << 20];
    let rejected = client.event("e", &payload, false).await;
    assert_eq!(kind(&rejected), ClientErrorKind::InvalidRequest);
    let many = vec![""; 1 << 20];
    let rejected = client.join(&many, false).await;
    assert_eq!(kind(&rejected), ClientErrorKind::InvalidRequest);
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn a_filter_that_cannot_be_said_is_not_sent() {
    let (mut agent, client) = introduced().await;
    for filter in [
        EventFilter::user_event("a,*"),
        EventFilter::member_events([]),
    ] {
        let rejected = client.stream(&filter).await;
        assert_eq!(kind(&rejected), ClientErrorKind::InvalidRequest);
    }
    check_goes_on(&mut agent, &client).await;
}

#[tokio::test]
async fn stats_have_sections() {
    let (mut agent, client) = introduced().await;
    let stats = answered(client.stats(), &mut agent, async |agent, seq| {
        let body = b"\x82\xa5agent\x81\xa4name\xa2o1\xa4tags\x82\xa1a\xa1\xff\xa1b\xa0";
        agent.say(&[&header(seq, "")[..], body].concat()).await;
    });
    let stats = stats.await.unwrap();
    assert_eq!(stats.get("agent", "name"), Some("o1"));
    assert_eq!(stats.get("agent", "age"), None);
    assert_eq!(stats.get("tags", "b"), Some(""));
    assert_eq!(stats.get("tags", "a"), None);
    let tags: Tags = stats.section("tags").collect();
    assert_eq!(tags, Tags::from([(&b"a"[..], &[0xff][..]), (b"b", b"")]));
    assert_eq!(stats.section("none").count(), 0);
    assert_eq!(stats.sections().collect::<Vec<_>>(), ["agent", "tags"]);
}

#[tokio::test(start_paused = true)]
async fn leaving_ends_with_an_answer_or_without() {
    // With.
    let (mut agent, client) = introduced().await;
    let (left, ()) = tokio::join!(client.leave(), async {
        let seq = agent.expect(&Request::Leave).await;
        agent.ok(seq).await;
        drop(agent);
    });
    left.unwrap();
    client.closed().await;
    // Without.
    let (mut agent, client) = introduced().await;
    let (left, members, ()) = tokio::join!(client.leave(), client.members(), async {
        agent.expect(&Request::Leave).await;
        drop(agent);
    });
    left.unwrap();
    assert_eq!(kind(&members), ClientErrorKind::Closed);
    // With an error reply.
    let (mut agent, client) = introduced().await;
    let left = answered(client.leave(), &mut agent, async |agent, seq| {
        agent.reply(seq, "timeout while leaving").await;
    });
    assert_eq!(kind(&left.await), ClientErrorKind::Rejected);
    // With nonsense.
    let (mut agent, client) = introduced().await;
    let left = answered(client.leave(), &mut agent, async |agent, _| {
        agent.say(b"\xc1").await;
    });
    assert_eq!(kind(&left.await), ClientErrorKind::Protocol);
    // Not at all.
    let (_agent, client) = introduced().await;
    assert_eq!(kind(&client.leave().await), ClientErrorKind::TimedOut);
    // When the connection had ended before.
    let (agent, client) = introduced().await;
    drop(agent);
    client.closed().await;
    assert_eq!(kind(&client.leave().await), ClientErrorKind::Closed);
}
