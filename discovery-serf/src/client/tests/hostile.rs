//! Tests with peers that are not agents.

use super::*;

/// Returns the result of `members` if the agent responds with these bytes, and then stays or closes the
/// connection.
async fn answer(bytes: &[u8], goes: bool, options: &ConnectOptions) -> (ClientError, SerfClient) {
    let (mut agent, client) = introduced_with(options).await;
    let (members, agent) = tokio::join!(client.members(), async {
        let (seq, _) = agent.request().await;
        assert_eq!(seq, 2);
        // It may have heard enough before the end.
        let _ = agent.replies.write_all(bytes).await;
        (!goes).then_some(agent)
    });
    drop(agent);
    (members.unwrap_err(), client)
}

/// Case 97.
#[tokio::test(start_paused = true)]
async fn the_end_in_the_middle_of_a_message_is_an_end() {
    let mut reply = header(2, "");
    encode_members(&[member("a")], &mut reply);
    for end in 0..reply.len() {
        let (error, client) = answer(&reply[..end], true, &options()).await;
        assert_eq!(error.kind(), ClientErrorKind::Closed, "{error}");
        assert!(client.is_closed());
    }
}

/// Case 97.
#[tokio::test(start_paused = true)]
async fn what_no_agent_says_ends_the_connection_at_once() {
    let ok = header(2, "");
    let nested = b"\x91".repeat(10_000);
    let four_gib = b"\xc6\xff\xff\xff\xff";
    let many = b"\xdd\xff\xff\xff\xff";
    let cases: [&[u8]; 14] = [
        b"\xc1",
        b"\x81\xa3Seq\xc1",
        four_gib,
        many,
        &nested,
        &[&ok[..], b"\xc1"].concat(),
        &[&ok[..], four_gib].concat(),
        &[&ok[..], b"\x81\xa7Members\xdd\xff\xff\xff\xff"].concat(),
        &[&ok[..], &nested].concat(),
        b"\x90",
        b"\x80",
        b"\x81\xa3Seq\x02",
        b"\x82\xa3Seq\xff\xa5Error\xa0",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ];
    for bytes in cases {
        let begin = tokio::time::Instant::now();
        let (error, client) = answer(bytes, false, &options()).await;
        let shown = bytes[..bytes.len().min(40)].escape_ascii();
        assert_eq!(error.kind(), ClientErrorKind::Protocol, "{shown}: {error}");
        assert!(begin.elapsed().is_zero(), "{shown}");
        client.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_none_is_no_cluster_without_members() {
    let ok = header(2, "");
    for body in [&ok[..], b"\x80", b"\xc0", b"\x81\xa7Members\x01"] {
        let (error, client) = answer(&[&ok, body].concat(), false, &options()).await;
        assert_eq!(error.kind(), ClientErrorKind::Protocol, "{error}");
        client.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn messages_are_as_long_as_they_may_be() {
    let mut reply = header(2, "");
    let before = reply.len();
    encode_members(&[member("a")], &mut reply);
    let length = reply.len() - before;
    let (error, _) = answer(&reply, false, &options().with_max_frame(length - 1)).await;
    assert_eq!(error.kind(), ClientErrorKind::Protocol);
    assert!(
        with_causes(&error).contains(&format!("more than {} bytes", length - 1)),
        "{}",
        with_causes(&error)
    );

    let options = options().with_max_frame(length);
    let (mut agent, client) = introduced_with(&options).await;
    let members = answered(client.members(), &mut agent, async |agent, _| {
        agent.say(&reply).await;
    });
    assert_eq!(members.await.unwrap(), [member("a")]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_to_one_who_talks_first() {
    let (mut agent, io) = Script::new();
    agent.say(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    let client = SerfClient::connect_over(io, &options().with_auth_key("sekrit")).await;
    assert_eq!(kind(&client), ClientErrorKind::Protocol);
    // The key stays here.
    let mut heard = Vec::new();
    while let Ok(Some(message)) = agent.requests.next().await {
        heard.extend_from_slice(&message);
    }
    assert!(!heard.windows(6).any(|bytes| bytes == b"sekrit"));
}
