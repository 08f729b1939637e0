//! Frames in any pieces, of any peer.

use futures_util::FutureExt;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use tokio::io::AsyncWriteExt;

use super::skipper::{MAX_DEPTH, MAX_VALUES};
use super::*;
use crate::wire::messages::golden::{self, bytes};

const LIMIT: usize = 1 << 20;

fn skip(bytes: &[u8]) -> Result<Option<usize>, Violation> {
    Skipper::new().advance(bytes, LIMIT)
}

/// Returns the messages before the end, and the reason for the end.
async fn read_all<R: AsyncRead + Unpin>(
    mut reader: FrameReader<R>,
) -> (Vec<Bytes>, Option<FrameError>) {
    let mut frames = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

fn captured() -> Vec<Vec<u8>> {
    let [header, body] = golden::MEMBERS_REPLY;
    let [record, event] = golden::UPDATE_EVENT;
    [golden::HANDSHAKE_REPLY, header, body, record, event]
        .map(bytes)
        .to_vec()
}

/// Cases 88 and 90.
#[tokio::test]
async fn messages_are_the_same_in_whatever_pieces_they_come() {
    let expected = captured();
    let all = expected.concat();
    for at in 0..=all.len() {
        let pieces = in_pieces(&[&all[..at], &all[at..]]);
        let (frames, error) = read_all(FrameReader::new(pieces, LIMIT)).await;
        assert_eq!(frames, expected, "split at {at}");
        assert!(error.is_none(), "{error:?}");
    }
    let single: Vec<&[u8]> = all.chunks(1).collect();
    let (frames, _) = read_all(FrameReader::new(in_pieces(&single), LIMIT)).await;
    assert_eq!(frames, expected);
}

/// A reader that gives one piece at a time.
fn in_pieces(pieces: &[&[u8]]) -> impl AsyncRead + Unpin + use<> {
    let pieces: Vec<Bytes> = pieces
        .iter()
        .map(|piece| Bytes::copy_from_slice(piece))
        .collect();
    Pieces(pieces.into())
}

struct Pieces(std::collections::VecDeque<Bytes>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        out: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        while self.0.front().is_some_and(Bytes::is_empty) {
            self.0.pop_front();
        }
        if let Some(piece) = self.0.front_mut() {
            out.put_slice(&piece.split_to(piece.len().min(out.remaining())));
        }
        std::task::Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_message_is_given_as_soon_as_it_is_there() {
    let (mut agent, client) = tokio::io::duplex(1 << 16);
    let mut reader = FrameReader::new(client, LIMIT);
    let [header, body] = golden::UPDATE_EVENT.map(bytes);
    let (begin, rest) = body.split_at(40);
    agent
        .write_all(&[&header, &body, &header, begin].concat())
        .await
        .unwrap();
    for expected in [&header, &body, &header] {
        assert_eq!(reader.next().await.unwrap().unwrap(), expected);
    }
    // Dropped while it waits, it loses nothing.
    assert!(reader.next().now_or_never().is_none());
    assert_eq!(reader.buffered(), 40);
    agent.write_all(rest).await.unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), body);
}

/// Case 97.
#[tokio::test]
async fn the_end_inside_of_a_message_is_not_the_end_after_one() {
    let all = bytes(golden::MEMBERS_REPLY[1]);
    let (frames, error) = read_all(FrameReader::new(&all[..], LIMIT)).await;
    assert_eq!((frames.len(), error.is_none()), (1, true));
    for end in 1..all.len() {
        let (frames, error) = read_all(FrameReader::new(&all[..end], LIMIT)).await;
        assert!(frames.is_empty());
        assert!(matches!(error, Some(FrameError::Truncated)), "{error:?}");
    }
}

/// Case 97.
#[test]
fn what_is_too_much_is_rejected_when_it_is_announced() {
    let limit = LIMIT;
    let too_long = Err(Violation::TooLong { limit });
    for lie in [
        &b"\xc6\xff\xff\xff\xff"[..],
        b"\xdb\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa7Members\xdd\x00\x10\x00\x00",
    ] {
        assert_eq!(skip(lie), too_long, "{}", lie.escape_ascii());
    }
    assert_eq!(skip(b"\xc1"), Err(Violation::Reserved));
    assert_eq!(skip(b"\x81\xa1a\x92\x01\xc1"), Err(Violation::Reserved));
    let nested = |depth: usize| [b"\x91".repeat(depth), b"\x00".to_vec()].concat();
    assert_eq!(skip(&nested(MAX_DEPTH)), Ok(Some(MAX_DEPTH + 1)));
    assert_eq!(skip(&nested(MAX_DEPTH + 1)), Err(Violation::TooDeep));
    assert_eq!(skip(&nested(10_000)), Err(Violation::TooDeep));
    let many = u32::try_from(MAX_VALUES).unwrap().to_be_bytes();
    let many = [&b"\xdd"[..], &many].concat();
    let rejected = Skipper::new().advance(&many, usize::MAX);
    assert_eq!(rejected, Err(Violation::TooManyValues));
}

#[test]
fn a_message_may_be_as_long_as_the_limit() {
    let text = [&b"\xda\x01\x00"[..], &[b'x'; 256]].concat();
    let limit = text.len();
    assert_eq!(Skipper::new().advance(&text, limit), Ok(Some(limit)));
    let limit = limit - 1;
    let rejected = Err(Violation::TooLong { limit });
    assert_eq!(Skipper::new().advance(&text[..3], limit), rejected);
}

#[tokio::test]
async fn a_long_message_leaves_no_long_buffer_behind() {
    let long = [&b"\xc6\x00\x08\x00\x00"[..], &vec![7; 1 << 19]].concat();
    let short = bytes(golden::HANDSHAKE_REPLY);
    let all = [&long[..], &short, &short].concat();
    let mut reader = FrameReader::new(&all[..], LIMIT);
    assert_eq!(reader.next().await.unwrap().unwrap(), long);
    assert!(
        reader.buffer.capacity() <= KEPT + READ.1,
        "{}",
        reader.buffer.capacity()
    );
    assert_eq!(reader.next().await.unwrap().unwrap(), short);
    assert_eq!(reader.next().await.unwrap().unwrap(), short);
    assert!(reader.next().await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_announced_is_not_allocated() {
    let mut begin = b"\xc6\x0f\xff\xff\xff".to_vec();
    begin.resize(100_000, 0);
    let mut reader = FrameReader::new(&begin[..], 1 << 30);
    assert!(matches!(reader.next().await, Err(FrameError::Truncated)));
    assert!(
        reader.buffer.capacity() < 400_000,
        "{}",
        reader.buffer.capacity()
    );
}

/// Each marker and length is read once, or a few times when it comes in pieces: a long message in small
/// pieces takes linear time.
#[test]
fn the_time_is_linear() {
    let elements = 1 << 20;
    let mut all = [&b"\xdd"[..], &u32::to_be_bytes(elements)].concat();
    all.extend(std::iter::repeat_n(0xc0, elements as usize));
    let mut skipper = Skipper::new();
    // Quadratic, this would look at half a million times a million bytes.
    for end in 1..all.len() {
        assert_eq!(skipper.advance(&all[..end], usize::MAX), Ok(None));
    }
    assert_eq!(skipper.advance(&all, usize::MAX), Ok(Some(all.len())));
}

/// Any MessagePack value, a few levels deep, in any of the forms it can have.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        any::<u8>()
            .prop_filter(
                "a scalar",
                |marker| matches!(marker, 0..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..)
            )
            .prop_map(|marker| vec![marker]),
        any::<f32>().prop_map(|value| rmp_serde::to_vec(&value).unwrap()),
        any::<f64>().prop_map(|value| rmp_serde::to_vec(&value).unwrap()),
        any::<u64>().prop_map(|value| rmp_serde::to_vec(&value).unwrap()),
        any::<i64>().prop_map(|value| rmp_serde::to_vec(&value).unwrap()),
        (0_u32..5).prop_flat_map(
            |power| proptest::collection::vec(any::<u8>(), 1 + (1 << power)).prop_map(
                move |data| { [vec![0xd4 + u8::try_from(power).unwrap()], data].concat() }
            )
        ),
        (0_u8..9, proptest::collection::vec(any::<u8>(), 0..80)).prop_map(|(form, data)| {
            let markers = [0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb, 0xc7, 0xc8, 0xc9];
            let length = u32::try_from(data.len()).unwrap().to_be_bytes();
            let width = 1 << (form % 3);
            // The type of an extension.
            let kind: &[u8] = if form > 5 { &[9] } else { &[] };
            [
                &[markers[usize::from(form)]],
                &length[4 - width..],
                kind,
                &data,
            ]
            .concat()
        }),
    ];
    scalar.prop_recursive(5, 60, 8, |inner| {
        (0_u8..6, proptest::collection::vec(inner, 0..8)).prop_map(|(form, mut inside)| {
            let is_map = form % 2 == 1;
            if is_map && inside.len() % 2 == 1 {
                inside.pop();
            }
            let count = if is_map {
                inside.len() / 2
            } else {
                inside.len()
            };
            let count = u32::try_from(count).unwrap().to_be_bytes();
            let head = match form {
                0 => vec![0x90 | count[3]],
                1 => vec![0x80 | count[3]],
                2 => [&[0xdc], &count[2..]].concat(),
                3 => [&[0xde], &count[2..]].concat(),
                4 => [&[0xdd], &count[..]].concat(),
                _ => [&[0xdf], &count[..]].concat(),
            };
            [head, inside.concat()].concat()
        })
    })
}

/// Returns rmp-serde's length of the first object, or `None` if it is incomplete or malformed.
fn read_by_rmp(bytes: &[u8]) -> Option<usize> {
    let mut deserializer = rmp_serde::Deserializer::new(bytes);
    let read = <IgnoredAny as serde::Deserialize>::deserialize(&mut deserializer);
    read.is_ok()
        .then(|| bytes.len() - deserializer.get_ref().len())
}

proptest! {
    #[test]
    fn skipping_ends_where_reading_does(value in value(), rest in proptest::collection::vec(any::<u8>(), 0..20)) {
        prop_assert_eq!(read_by_rmp(&value), Some(value.len()));
        let all = [&value[..], &rest].concat();
        prop_assert_eq!(skip(&all), Ok(Some(value.len())));
        for end in 0..value.len() {
            prop_assert_eq!(skip(&value[..end]), Ok(None));
        }
    }

    #[test]
    fn garbage_is_skipped_as_it_is_read(garbage in proptest::collection::vec(any::<u8>(), 0..200)) {
        // Input that is skipped as a whole can be decoded, to the same end, and vice versa.
        let skipped = skip(&garbage).ok().flatten();
        prop_assert_eq!(skipped, read_by_rmp(&garbage));
    }

    #[test]
    fn pieces_make_no_difference(values in proptest::collection::vec(value(), 1..6), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let all = values.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).collect();
        cuts.extend([0, all.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &all[cut[0]..cut[1]]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (frames, error) = runtime.block_on(read_all(FrameReader::new(in_pieces(&pieces), LIMIT)));
        prop_assert!(error.is_none());
        prop_assert_eq!(frames, values);
    }
}
