use proptest::prelude::*;
use testkit::raw::frame::{self, Frame};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::*;
use crate::server::http2::hpack::tests::parts;

/// The bytes that `h2` gets for a frame; `None` if the connection ends.
fn passed_on(frames: &mut ConnectionFrames, frame: &Frame) -> Option<Vec<u8>> {
    let bytes = frame.encode();
    let head = FrameHeader::of(&bytes).unwrap();
    match frames.look(head, &bytes) {
        FrameAction::Pass(length) => {
            assert_eq!(length, bytes.len());
            Some(bytes)
        }
        FrameAction::Replace { taken, with } => {
            assert_eq!(taken, bytes.len());
            Some(with)
        }
        FrameAction::End(_) => None,
        FrameAction::Wait { .. } => panic!("it is all there"),
    }
}

/// Returns true if `h2` serves stream `last` of a client that sends these bytes.
async fn is_served(bytes: &[u8], last: u32) -> Result<bool, h2::Error> {
    let (mut near, far) = tokio::io::duplex(1 << 20);
    near.write_all(bytes).await.unwrap();
    let mut server = h2::server::handshake(far).await?;
    while let Some(accepted) = server.accept().await {
        let (_, respond) = accepted?;
        if respond.stream_id().as_u32() == last {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A block in CONTINUATION frames is copied once, however small the pieces are in which it arrives.
#[test]
fn a_block_that_comes_in_pieces_is_copied_once() {
    const PART: usize = LARGEST;
    let field = |name: u8| [&[0, 1, name, 0x7f, 0xfb, 0x7d][..], &[b'v'; 16_250]].concat();
    let block: Vec<u8> = (b'a'..=b'f').flat_map(field).collect();
    assert_eq!(block.len().div_ceil(PART), CONTINUATIONS);
    let mut bytes = Vec::new();
    for (index, part) in block.chunks(PART).enumerate() {
        let kind = if index == 0 {
            frame::HEADERS
        } else {
            frame::CONTINUATION
        };
        let is_last = (index + 1) * PART >= block.len();
        let flags = if is_last { frame::END_HEADERS } else { 0 };
        bytes.extend(Frame::new(kind, flags, 1, part).encode());
    }
    let head = FrameHeader::of(&bytes).unwrap();
    let mut frames = ConnectionFrames::default();
    let mut looks = 0;
    let allocated = allocation_counter::measure(|| {
        for end in (PART + HEAD..bytes.len()).step_by(10) {
            let verdict = frames.look(head, &bytes[..end]);
            assert_eq!(verdict, FrameAction::Wait { is_block: true });
            looks += 1;
        }
        assert_eq!(frames.look(head, &bytes), FrameAction::Pass(bytes.len()));
    });
    assert!(looks > 8000);
    let most = 3 * block.len() as u64;
    assert!(allocated.bytes_total < most, "{allocated:?} of {most}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// After any input, `h2` serves the next request, unless the connection has ended with a
    /// reason.
    #[test]
    fn h2_keeps_in_step(
        blocks in prop::collection::vec(prop::collection::vec(parts(), 0..6), 1..6)
    ) {
        let mut frames = ConnectionFrames::default();
        let mut bytes = [frame::PREFACE, &*Frame::settings(&[]).encode()].concat();
        let mut stream = 1;
        for block in blocks {
            let flags = frame::END_HEADERS | frame::END_STREAM;
            let head = Frame::new(frame::HEADERS, flags, stream, block.concat());
            let Some(passed) = passed_on(&mut frames, &head) else { return Ok(()) };
            bytes.extend(passed);
            stream += 2;
        }
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/")];
        let last = Frame::headers(stream, &fields, true);
        prop_assert_eq!(passed_on(&mut frames, &last), Some(last.encode()));
        bytes.extend(last.encode());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let served = runtime.block_on(async {
            timeout(testkit::time::GUARD, is_served(&bytes, stream)).await
        });
        prop_assert!(matches!(served, Ok(Ok(true))), "{served:?}");
    }

    /// Any input is checked once, and no more is replaced than has arrived.
    #[test]
    fn frames_of_any_bytes_do_no_harm(bytes: Vec<u8>) {
        let mut frames = ConnectionFrames::default();
        let mut rest = &bytes[..];
        while let Some(head) = FrameHeader::of(rest) {
            match frames.look(head, rest) {
                FrameAction::Pass(length) if length <= rest.len() => rest = &rest[length..],
                FrameAction::Replace { taken, .. } => {
                    prop_assert!(taken <= rest.len());
                    rest = &rest[taken..];
                }
                _ => break,
            }
        }
    }
}
