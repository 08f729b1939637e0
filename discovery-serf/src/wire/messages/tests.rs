//! Golden bytes, in both directions, and what is tolerated.

use std::collections::BTreeMap;

use super::golden::{self, bytes};
use super::*;
use crate::client::{Event, MemberEventKind};
use crate::member::{Member, MemberStatus, Tags};
use crate::wire::frames::Skipper;

/// The messages in some bytes.
fn frames(mut all: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while !all.is_empty() {
        let length = Skipper::new().advance(all, 1 << 20).unwrap().unwrap();
        let (frame, rest) = all.split_at(length);
        frames.push(frame);
        all = rest;
    }
    frames
}

fn encoded(request: &Request, seq: u64) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(seq, &mut out);
    out
}

fn captured_members() -> Vec<Member> {
    let member = |name: &str, address: &str, tags: Tags| {
        let mut member = Member::new(name, address.parse().unwrap(), tags);
        member.port = 17_946;
        member
    };
    vec![
        member(
            "o1",
            "127.0.0.2",
            Tags::from([
                ("service", "orders"),
                ("http-port", "5000"),
                ("host", "orders.local"),
                ("health-path", "/healthz"),
                ("instance", "orders-1"),
            ]),
        ),
        member("gw", "127.0.0.1", Tags::new()),
        member(
            "p2",
            "127.0.0.3",
            Tags::from([
                ("service", "payments"),
                ("http-port", "6000"),
                ("route-path", "/payments/{**catch-all}"),
                ("scheme", "http"),
                ("instance", "payments-2"),
            ]),
        ),
    ]
}

#[test]
fn requests_are_the_captured_bytes() {
    let cases = [
        (golden::HANDSHAKE, 1, Request::Handshake { version: 1 }),
        (
            golden::AUTH,
            2,
            Request::Auth {
                key: "sekrit".into(),
            },
        ),
        (
            golden::STREAM,
            3,
            Request::Stream {
                filter: "member-join".to_owned(),
            },
        ),
        (golden::MEMBERS, 4, Request::Members),
    ];
    for (golden, seq, request) in cases {
        assert_eq!(encoded(&request, seq), bytes(golden), "{request:?}");
    }
}

#[test]
fn every_request_is_read_as_it_was_written() {
    let requests = [
        Request::Handshake { version: 1 },
        Request::Auth {
            key: "sekrit".into(),
        },
        Request::Members,
        Request::MembersFiltered {
            tags: BTreeMap::from([("service".to_owned(), "(?:.+)".to_owned())]),
            status: "alive".to_owned(),
            name: String::new(),
        },
        Request::Stream {
            filter: "*".to_owned(),
        },
        Request::Stop { seq: u64::MAX },
        Request::Event {
            name: "deploy".to_owned(),
            payload: vec![0, 0xff],
            coalesce: true,
        },
        Request::Join {
            addresses: vec!["10.0.0.1:7946".to_owned(), "b".to_owned()],
            replay: true,
        },
        Request::Leave,
        Request::ForceLeave {
            node: "old".to_owned(),
            prune: true,
        },
        Request::Tags {
            set: Tags::from([(&b"a"[..], &[0xff, 0xfe][..]), (b"b", b"")]),
            delete: vec!["c".to_owned()],
        },
        Request::Stats,
        Request::Other {
            command: "dance".to_owned(),
        },
    ];
    for request in requests {
        let all = encoded(&request, 77);
        let frames = frames(&all);
        let header = RequestHeader::decode(frames[0]).unwrap();
        assert_eq!((&*header.command, header.seq), (request.command(), 77));
        assert_eq!(header.takes_body(), frames.len() == 2, "{request:?}");
        let body = frames.get(1).copied().unwrap_or_default();
        assert_eq!(Request::decode(&header, body).unwrap(), request);
    }
}

#[test]
fn strings_of_requests_are_strings_also_when_they_are_not_utf_8() {
    let set = Tags::from([("k", &[0xff, 0xfe][..])]);
    let delete = Vec::new();
    let out = encoded(&Request::Tags { set, delete }, 1);
    let tail = b"\x82\xa4Tags\x81\xa1k\xa2\xff\xfe\xaaDeleteTags\x90";
    assert!(out.ends_with(tail), "{}", out.escape_ascii());
}

#[test]
fn a_captured_reply_to_members_is_read_and_written() {
    let header = ResponseHeader::decode(&bytes(golden::MEMBERS_REPLY[0])).unwrap();
    assert_eq!((header.seq, &*header.error), (2, ""));
    let body = bytes(golden::MEMBERS_REPLY[1]);
    assert_eq!(decode_members(&body).unwrap(), captured_members());

    let mut written = Vec::new();
    header.encode(&mut written);
    assert_eq!(written, bytes(golden::MEMBERS_REPLY[0]));
    let mut written = Vec::new();
    encode_members(&captured_members(), &mut written);
    // The agent's order of tags is random.
    assert_eq!(written.len(), body.len());
    assert_eq!(decode_members(&written).unwrap(), captured_members());
}

#[test]
fn a_captured_reply_to_handshake_is_read_and_written() {
    let captured = bytes(golden::HANDSHAKE_REPLY);
    let header = ResponseHeader::decode(&captured).unwrap();
    assert_eq!((header.seq, &*header.error), (1, ""));
    let mut written = Vec::new();
    header.encode(&mut written);
    assert_eq!(written, captured);
}

#[test]
fn captured_records_are_read_and_written() {
    let [header, body] = golden::USER_EVENT.map(bytes);
    assert_eq!(ResponseHeader::decode(&header).unwrap().seq, 900);
    let event = decode_event(&body).unwrap();
    assert_eq!(
        event,
        Event::User {
            name: "deploy".into(),
            payload: b"v1\0\xff".to_vec(),
            logical_time: 1,
            coalesce: false,
        }
    );
    let mut written = Vec::new();
    encode_event(&event, &mut written);
    assert_eq!(written, body);

    let [header, body] = golden::UPDATE_EVENT.map(bytes);
    assert_eq!(ResponseHeader::decode(&header).unwrap().seq, 7);
    let event = decode_event(&body).unwrap();
    let Event::Member { kind, members } = &event else {
        panic!("{event:?}");
    };
    assert_eq!((*kind, members.len()), (MemberEventKind::Update, 1));
    assert_eq!(
        members[0].tags.text("route-path").unwrap(),
        "/a-rather-long-prefix/orders/{**catch-all}"
    );
    let mut written = Vec::new();
    encode_event(&event, &mut written);
    assert_eq!(written.len(), body.len());
    assert_eq!(decode_event(&written).unwrap(), event);
}

/// Case 94.
#[test]
fn nil_missing_and_unknown_fields_are_tolerated() {
    let members = |body: &[u8]| decode_members(body).unwrap();
    assert_eq!(members(b"\x81\xa7Members\xc0"), []);
    assert_eq!(members(b"\x82\xa3Any\x81\xc0\x01\xa7Members\x90"), []);
    let nobody = members(b"\x81\xa7Members\x91\x81\xa4Name\xa1a");
    assert_eq!(&*nobody[0].name, "a");
    assert_eq!(nobody[0].address, None);
    assert_eq!(nobody[0].status, MemberStatus::Other("".into()));
    let nil = members(
        b"\x81\xa7Members\x91\x87\xa4Name\xa1a\xa4Tags\xc0\xa4Addr\xc0\xa4Port\xc0\xa6Status\xc0\xa3New\xc3\xa3Old\x91\xc0",
    );
    assert_eq!(nil, nobody);

    let event = decode_event(b"\x83\xa5Event\xa4user\xa4Name\xa1x\xa7Payload\xc0").unwrap();
    let expected = Event::User {
        name: "x".into(),
        payload: Vec::new(),
        logical_time: 0,
        coalesce: false,
    };
    assert_eq!(event, expected);
    let event = decode_event(b"\x82\xa5Event\xabmember-join\xa7Members\xc0").unwrap();
    let members = Vec::new();
    let kind = MemberEventKind::Join;
    assert_eq!(event, Event::Member { kind, members });
    let event = decode_event(b"\x81\xa5Event\xacmember-dance").unwrap();
    let kind = "member-dance".into();
    assert_eq!(event, Event::Other { kind });
    let header = ResponseHeader::decode(b"\x83\xa3Seq\x05\xa5Error\xc0\xa3New\x01").unwrap();
    assert_eq!((header.seq, &*header.error), (5, ""));
    assert!(decode_stats(b"\x81\xa5agent\xc0").unwrap()["agent"].is_empty());
}

#[test]
fn strings_may_be_any_bytes_and_binary() {
    let body = b"\x81\xa7Members\x91\x83\xc4\x04Name\xa2\xff\xfe\xa4Tags\x81\xc4\x01k\xa2\xfe\xff\xa6Status\xc4\x05alive";
    let members = decode_members(body).unwrap();
    assert_eq!(&*members[0].name, "\u{fffd}\u{fffd}");
    assert_eq!(members[0].tags.bytes("k"), Some(&[0xfe, 0xff][..]));
    assert!(members[0].status.is_alive());
    let header = ResponseHeader::decode(b"\x82\xa3Seq\x01\xa5Error\xa2\xff!").unwrap();
    assert_eq!(header.error, "\u{fffd}!");
    let stats = decode_stats(b"\x81\xa4tags\x81\xa1k\xa1\xff").unwrap();
    assert_eq!(stats["tags"].bytes("k"), Some(&[0xff][..]));
}

#[test]
fn what_is_no_reply_is_not_an_empty_one() {
    let header = b"\x82\xa5Error\xa0\xa3Seq\x02";
    assert!(decode_members(header).is_err());
    assert!(decode_joined(header).is_err());
    assert!(decode_event(header).is_err());
    assert!(decode_stats(header).is_err());
    for wrong in [
        &b"\xc0"[..],
        b"\x01",
        b"\x80",
        b"\x81\xa3Seq\x01",
        b"\x82\xa3Seq\xff\xa5Error\xa0",
    ] {
        assert!(ResponseHeader::decode(wrong).is_err(), "{wrong:?}");
    }
    // A member without a name is invalid.
    assert!(decode_members(b"\x81\xa7Members\x91\x80").is_err());
}

#[test]
fn an_error_repeats_only_a_short_and_printable_beginning() {
    let mut body = b"\xda\x10\x00".to_vec();
    body.extend_from_slice(&b"\x1b[31m\n".repeat(0x1000)[..0x1000]);
    let error = decode_members(&body).unwrap_err().to_string();
    assert!(error.chars().count() < 300, "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn a_body_follows_as_the_agent_decides() {
    for (body, error, follows) in [
        (ReplyBody::Never, "", false),
        (ReplyBody::Never, "no", false),
        (ReplyBody::OnSuccess, "", true),
        (ReplyBody::OnSuccess, "no", false),
        (ReplyBody::Always, "", true),
        (ReplyBody::Always, "no", true),
        (ReplyBody::Always, "Authentication required", false),
        (ReplyBody::Always, "Handshake required", false),
        (ReplyBody::Always, "Unsupported command", false),
    ] {
        assert_eq!(body.follows(error), follows, "{body:?} {error}");
    }
}

#[test]
fn the_key_is_not_shown() {
    let request = Request::Auth {
        key: "sekrit".into(),
    };
    assert!(!format!("{request:?}").contains("sekrit"));
}
