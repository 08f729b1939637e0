//! Tests of the protocol: all cases of an agent's responses.

use futures_util::FutureExt;

use super::*;
use crate::wire::messages::encode_joined;
use crate::wire::messages::golden::{self, bytes};

/// Case 88.
#[tokio::test]
async fn a_reply_may_come_in_any_pieces() {
    let reply = golden::MEMBERS_REPLY.map(bytes).concat();
    for at in 0..reply.len() {
        let (mut agent, client) = introduced().await;
        let members = answered(client.members(), &mut agent, async |agent, seq| {
            assert_eq!(seq, 2);
            agent.say(&reply[..at]).await;
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            agent.say(&reply[at..]).await;
        });
        assert_eq!(members.await.unwrap().len(), 3, "cut at {at}");
    }
}

#[tokio::test]
async fn a_reply_may_come_byte_by_byte() {
    let (mut agent, client) = introduced().await;
    let members = answered(client.members(), &mut agent, async |agent, _| {
        for byte in golden::MEMBERS_REPLY.map(bytes).concat() {
            agent.say(&[byte]).await;
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(members.await.unwrap().len(), 3);
}

#[tokio::test]
async fn requests_may_be_made_at_the_same_time() {
    let (mut agent, client) = introduced().await;
    let (first, stats, second, ()) =
        tokio::join!(client.members(), client.stats(), client.members(), async {
            let mut seqs = Vec::new();
            for _ in 0..3 {
                seqs.push(agent.request().await);
            }
            let mut replies = Vec::new();
            for (seq, request) in seqs {
                replies.extend(header(seq, ""));
                match request {
                    Request::Members => encode_members(&[member(&seq.to_string())], &mut replies),
                    _ => replies.extend(b"\x81\xa5agent\x81\xa4name\xa1n"),
                }
            }
            agent.say(&replies).await;
        });
    assert_eq!(&*first.unwrap()[0].name, "2");
    assert_eq!(stats.unwrap().get("agent", "name"), Some("n"));
    assert_eq!(&*second.unwrap()[0].name, "4");
}

/// Case 90.
#[tokio::test(start_paused = true)]
async fn records_are_told_as_soon_as_they_are_there() {
    let (mut agent, _client, mut stream, seq) = streaming().await;
    let third = record(seq, &user_event(3));
    let (begin, rest) = third.split_at(third.len() / 2);
    let two = [record(seq, &user_event(1)), record(seq, &user_event(2))].concat();
    agent.say(&[&two, begin].concat()).await;
    for number in [1, 2] {
        assert_eq!(stream.next().await, Some(Ok(user_event(number))));
    }
    assert!(stream.next().now_or_never().is_none());
    agent.say(rest).await;
    assert_eq!(stream.next().await, Some(Ok(user_event(3))));
}

#[tokio::test]
async fn records_come_between_replies() {
    let (mut agent, client, mut stream, events) = streaming().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.tell(events, &user_event(1)).await;
        agent.members(seq, &[member("a")]).await;
        agent.tell(events, &user_event(2)).await;
    });
    assert_eq!(members.await.unwrap(), [member("a")]);
    for number in [1, 2] {
        assert_eq!(stream.next().await, Some(Ok(user_event(number))));
    }
    check_goes_on(&mut agent, &client).await;
}

/// Case 91.
#[tokio::test]
async fn an_answer_to_a_request_that_nobody_made_ends_the_connection() {
    let (mut agent, client, mut stream, _) = streaming().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.members(seq + 7, &[member("a")]).await;
    });
    let members = members.await;
    assert_eq!(kind(&members), ClientErrorKind::Protocol);
    assert!(members.unwrap_err().to_string().contains("was not made"));
    assert!(client.is_closed());
    client.closed().await;
    assert_eq!(stream.next().await, None);
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::Protocol);
    assert_eq!(kind(&client.stats().await), ClientErrorKind::Closed);
    agent.closed().await;
}

#[tokio::test]
async fn an_answer_that_comes_twice_ends_the_connection() {
    let (mut agent, client) = introduced().await;
    let done = answered(
        client.event("e", b"", false),
        &mut agent,
        async |agent, seq| {
            agent.ok(seq).await;
            agent.ok(seq).await;
        },
    );
    done.await.unwrap();
    client.closed().await;
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::Protocol);
}

/// Case 92.
#[tokio::test(start_paused = true)]
async fn an_agent_that_wants_a_key_says_so_without_a_body() {
    let (mut agent, client) = introduced().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.reply(seq, "Authentication required").await;
    });
    let error = members.await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Denied);
    assert!(!error.is_transient());
    assert_eq!(error.agent_error(), Some("Authentication required"));
    client.closed().await;
}

/// Case 92: the agent reads the body of the request as another request, and repeats its error.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_missing_is_told_to_whoever_asked_first() {
    let (mut agent, client) = introduced().await;
    let filter = EventFilter::members();
    let (stream, members, ()) = tokio::join!(client.stream(&filter), client.members(), async {
        let (seq, _) = agent.request().await;
        let twice = [
            header(seq, "Authentication required"),
            header(seq, "Authentication required"),
        ];
        agent.say(&twice.concat()).await;
    });
    assert_eq!(kind(&stream), ClientErrorKind::Denied);
    assert_eq!(kind(&members), ClientErrorKind::Closed);
    assert!(with_causes(&members.unwrap_err()).contains("Authentication required"));
    client.closed().await;
    assert_eq!(client.end().unwrap().kind(), ClientErrorKind::Denied);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_key_is_denied_and_not_shown() {
    let (mut agent, io) = Script::new();
    let options = options().with_auth_key("sekrit");
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, &options), async {
        let (seq, _) = agent.request().await;
        // Nothing else comes before the replies.
        assert!(agent.requests.next().now_or_never().is_none());
        agent.ok(seq).await;
        let key = "sekrit".into();
        let seq = agent.expect(&Request::Auth { key }).await;
        assert!(agent.requests.next().now_or_never().is_none());
        agent.reply(seq, "Invalid authentication token").await;
    });
    let error = client.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Denied);
    let shown = format!("{error:?} {} {options:?}", with_causes(&error));
    assert!(!shown.contains("sekrit"), "{shown}");
    agent.closed().await;
}

/// Case 93.
#[tokio::test]
async fn a_join_that_fails_has_a_body() {
    let (mut agent, client) = introduced().await;
    let join = client.join(&["10.0.0.9"], false);
    let joined = answered(join, &mut agent, async |agent, seq| {
        let mut out = header(seq, "1 error occurred");
        encode_joined(0, &mut out);
        agent.say(&out).await;
    });
    let error = joined.await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Rejected);
    assert_eq!(error.agent_error(), Some("1 error occurred"));
    check_goes_on(&mut agent, &client).await;

    // But not if the agent has not handled the command.
    let join = client.join(&["10.0.0.9"], false);
    let joined = answered(join, &mut agent, async |agent, seq| {
        agent.reply(seq, "Authentication required").await;
    });
    assert_eq!(kind(&joined.await), ClientErrorKind::Denied);
}

/// Case 94.
#[tokio::test]
async fn nil_and_unknown_fields_are_tolerated() {
    let (mut agent, client, mut stream, events) = streaming().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent
            .say(
                &[
                    &header(seq, "")[..],
                    b"\x82\xa7Members\xc0\xa3New\x91\x81\x01\xc0",
                ]
                .concat(),
            )
            .await;
    });
    assert_eq!(members.await.unwrap(), []);
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        let body = b"\x81\xa7Members\x91\x83\xa4Name\xa1a\xa4Tags\xc0\xa3New\x01";
        agent.say(&[&header(seq, "")[..], body].concat()).await;
    });
    assert!(members.await.unwrap()[0].tags.is_empty());
    let body = b"\x83\xa5Event\xa4user\xa4Name\xa1x\xa7Payload\xc0";
    agent.say(&[&header(events, "")[..], body].concat()).await;
    let event = stream.next().await.unwrap().unwrap();
    assert!(matches!(event, Event::User { payload, .. } if payload.is_empty()));
    check_goes_on(&mut agent, &client).await;
}

/// Case 95.
#[tokio::test]
async fn bytes_that_are_no_text_hurt_nobody() {
    let (mut agent, client) = introduced().await;
    let mut odd = member("odd");
    odd.tags.insert("region", [0xff, 0xfe]);
    let expected = [odd, member("even")];
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.members(seq, &expected).await;
    });
    assert_eq!(members.await.unwrap(), expected);
}

/// Case 96.
#[tokio::test]
async fn addresses_have_4_or_16_bytes() {
    let (mut agent, client) = introduced().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        let mut body = b"\x81\xa7Members\x94".to_vec();
        let mapped = "::ffff:10.0.0.7"
            .parse::<std::net::Ipv6Addr>()
            .unwrap()
            .octets();
        let six = std::net::Ipv6Addr::LOCALHOST.octets();
        for address in [&[10, 0, 0, 1][..], &six, &mapped, &[1, 2, 3]] {
            body.extend(b"\x82\xa4Name\xa1a\xa4Addr\xc4");
            body.push(u8::try_from(address.len()).unwrap());
            body.extend(address);
        }
        agent.say(&[header(seq, ""), body].concat()).await;
    });
    let addresses: Vec<_> = members
        .await
        .unwrap()
        .into_iter()
        .map(|member| member.address)
        .collect();
    let expected = ["10.0.0.1", "::1", "10.0.0.7"].map(|text| Some(text.parse().unwrap()));
    assert_eq!(addresses, [&expected[..], &[None]].concat());
}

/// Case 99.
#[tokio::test]
async fn a_filter_that_is_rejected_leaves_the_connection_as_it_was() {
    let (mut agent, client) = introduced().await;
    let filter = EventFilter::members();
    let stream = answered(client.stream(&filter), &mut agent, async |agent, seq| {
        agent.reply(seq, "Invalid event filter").await;
    });
    let error = stream.await.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Rejected);
    assert_eq!(error.agent_error(), Some("Invalid event filter"));
    // There is nothing to stop.
    check_goes_on(&mut agent, &client).await;
}

/// Case 100.
#[tokio::test]
async fn another_version_of_the_protocol_is_said() {
    let (mut agent, io) = Script::new();
    let options = options();
    let (client, ()) = tokio::join!(SerfClient::connect_over(io, &options), async {
        let (seq, _) = agent.request().await;
        agent.reply(seq, "Unsupported IPC version").await;
    });
    let error = client.unwrap_err();
    assert_eq!(error.kind(), ClientErrorKind::Version);
    assert!(!error.is_transient());
    agent.closed().await;
}

#[tokio::test]
async fn a_command_that_the_agent_does_not_know_is_said() {
    let (mut agent, client) = introduced().await;
    let filter = MemberFilter::new();
    let members = client.members_filtered(&filter);
    let members = answered(members, &mut agent, async |agent, seq| {
        agent.reply(seq, "Unsupported command").await;
    });
    assert_eq!(kind(&members.await), ClientErrorKind::Unsupported);
    client.closed().await;
}

#[tokio::test]
async fn an_agent_that_has_forgotten_the_handshake_ends_the_connection() {
    let (mut agent, client) = introduced().await;
    let members = answered(client.members(), &mut agent, async |agent, seq| {
        agent.reply(seq, "Handshake required").await;
    });
    assert_eq!(kind(&members.await), ClientErrorKind::Protocol);
    client.closed().await;
}
