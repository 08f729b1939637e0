//! Any agent, in any pieces.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Returns the client's results for an agent that sends one response after each request, in pieces of these
/// lengths in turn, and closes the connection.
async fn outcome(answers: &[Vec<u8>], pieces: &[usize]) -> String {
    let (mut agent, io) = Script::new();
    let mut pieces = pieces.iter().copied().cycle();
    let say = async {
        for answer in answers {
            // The header of a request, and its body except for `members`.
            let header = agent.requests.next().await;
            let Ok(Some(header)) = header else { break };
            if RequestHeader::decode(&header).unwrap().takes_body() {
                agent.requests.next().await.unwrap();
            }
            let mut rest = &answer[..];
            while !rest.is_empty() {
                let piece = pieces.next().unwrap_or(rest.len());
                let (piece, after) = rest.split_at(piece.clamp(1, rest.len()));
                let _ = agent.replies.write_all(piece).await;
                tokio::task::yield_now().await;
                rest = after;
            }
        }
        drop(agent);
    };
    let options = options().with_max_frame(1 << 16);
    let ask = async {
        let mut said = String::new();
        let mut note = |what: &dyn fmt::Debug| said += &format!("{what:?}\n");
        let client = match SerfClient::connect_over(io, &options).await {
            Ok(client) => client,
            Err(error) => {
                note(&error.kind());
                return said;
            }
        };
        let stream = client.stream(&EventFilter::all()).await;
        note(&stream.as_ref().map(drop).map_err(ClientError::kind));
        note(&client.members().await.map_err(|error| error.kind()));
        if let Ok(mut stream) = stream {
            while let Some(event) = stream.next().await {
                note(&event);
            }
        }
        client.closed().await;
        note(&client.end().map(ClientError::kind));
        said
    };
    let both = async { tokio::join!(ask, say).0 };
    let outcome = tokio::time::timeout(Duration::from_secs(60), both).await;
    outcome.expect("it ends, since the agent does")
}

fn run(answers: &[Vec<u8>], pieces: &[usize]) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(outcome(answers, pieces))
}

/// Returns the responses of a correct agent to handshake, stream and members, with events around the last.
fn conversation(events: &[u64], names: &[String]) -> Vec<Vec<u8>> {
    let (before, after) = events.split_at(events.len() / 2);
    let told = |numbers: &[u64]| -> Vec<u8> {
        let records = numbers.iter();
        records
            .flat_map(|number| record(2, &user_event(*number)))
            .collect()
    };
    let mut members = [told(before), header(3, "")].concat();
    let list: Vec<_> = names.iter().map(|name| member(name)).collect();
    encode_members(&list, &mut members);
    members.extend(told(after));
    vec![header(1, ""), header(2, ""), members]
}

proptest! {
    #[test]
    fn garbage_ends(garbage in vec(any::<u8>(), 0..300)) {
        run(std::slice::from_ref(&garbage), &[]);
        run(&[header(1, ""), garbage.clone()], &[]);
        run(&[header(1, ""), header(2, ""), garbage.clone()], &[]);
        run(&[header(1, ""), header(2, ""), [header(3, ""), garbage].concat()], &[]);
    }

    #[test]
    fn a_conversation_with_mistakes_ends(
        events in vec(any::<u64>(), 0..4),
        names in vec("[a-z]{0,8}", 0..4),
        changes in vec((0_usize..3, any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in (0_usize..3, any::<prop::sample::Index>()),
    ) {
        let mut answers = conversation(&events, &names);
        for (answer, at, byte) in changes {
            let at = at.index(answers[answer].len());
            answers[answer][at] = byte;
        }
        let (answer, at) = cut;
        let length = at.index(answers[answer].len() + 1);
        answers[answer].truncate(length);
        run(&answers, &[]);
    }

    #[test]
    fn pieces_make_no_difference(
        events in vec(any::<u64>(), 0..4),
        names in vec("[a-z]{0,8}", 0..4),
        pieces in vec(1_usize..40, 0..20),
    ) {
        let answers = conversation(&events, &names);
        let whole = run(&answers, &[]);
        let oks = whole.matches("Ok(").count();
        prop_assert_eq!(oks, 2 + events.len(), "{}", whole);
        prop_assert_eq!(run(&answers, &pieces), whole);
    }
}
