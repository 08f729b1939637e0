use std::io::ErrorKind;

use super::Frame;
use crate::origin::{Echo, Origin};
use crate::raw::{RawClient, RawOrigin, frame};

#[tokio::test]
async fn a_real_server_understands_crafted_frames() {
    let origin = Origin::echo();
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    // Lengths on both sides of the limits of one and two bytes of a prefixed integer.
    let values = [0, 126, 127, 128, 254, 255, 15_000].map(|length| "v".repeat(length));
    let mut fields = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/crafted"),
        (":authority", "a.example"),
    ];
    fields.extend(values.iter().map(|value| ("x-long", value.as_str())));
    let frames = [
        frame::PREFACE.to_vec(),
        Frame::settings(&[(4, 65_535)]).encode(),
        Frame::headers(1, &fields, false).encode(),
        Frame::data(1, "hel", false).encode(),
        Frame::data(1, "lo", true).encode(),
    ];
    client.write_all(frames.concat()).await.unwrap();

    let mut body = Vec::new();
    loop {
        let frame = client.read_frame().await.unwrap();
        match frame.kind {
            frame::DATA => body.extend(&frame.payload),
            frame::RST_STREAM | frame::GOAWAY => panic!("{frame:?}"),
            _ => {}
        }
        if frame.stream == 1 && frame.has(frame::END_STREAM) {
            break;
        }
    }
    let echo: Echo = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (echo.version.as_str(), echo.body_text.as_deref()),
        ("HTTP/2.0", Some("hello"))
    );
    assert_eq!(echo.header("x-long"), values);
}

#[tokio::test]
async fn frames_are_read_as_they_were_written() {
    let frames = [
        Frame::new(0xfe, 0xa5, 0x7fff_ffff, vec![7; 70_000]),
        Frame::reset(5, frame::CANCEL),
        Frame::goaway(3, frame::ENHANCE_YOUR_CALM),
        Frame::new(frame::PING, frame::ACK, 0, *b"12345678"),
    ];
    let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
    let origin = RawOrigin::script(move |mut connection| {
        let bytes = bytes.clone();
        async move { connection.write_all(bytes).await }
    });
    let mut client = RawClient::connect(origin.addr()).await.unwrap();
    for frame in &frames {
        assert_eq!(&client.read_frame().await.unwrap(), frame);
    }
    assert_eq!(
        client.read_frame().await.unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    let codes = frames.map(|frame| frame.error_code());
    assert_eq!(
        codes,
        [
            None,
            Some(frame::CANCEL),
            Some(frame::ENHANCE_YOUR_CALM),
            None
        ]
    );
}
