use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use prost::Message;
use xds_types::pb::envoy::config::core::v3::ControlPlane;
use xds_types::pb::envoy::service::discovery::v3::{self as discovery, DeltaDiscoveryResponse};
use xds_types::pb::google::protobuf::Any;

use super::*;
use crate::server::fixtures::resource;
use crate::snapshot::{Bodies, Resource, ResourceType, Version};

type FullResponse = discovery::DiscoveryResponse;

fn response(protocol: StreamProtocol, resources: Vec<Arc<Resource>>) -> Response {
    Response {
        reply: Reply {
            resource_type: ResourceType::Endpoint,
            version: resources
                .first()
                .map(|first| first.version())
                .unwrap_or_default(),
            nonce: 300,
            resources,
            removed: Vec::new(),
        },
        protocol,
        subscription: Subscription::Aggregated,
        identifier: Arc::from("us"),
    }
}

fn any(response: &Response, resource: &Resource) -> Any {
    Any {
        type_url: response.reply.resource_type.type_url().to_owned(),
        value: resource.body(response.subscription).to_vec(),
    }
}

fn control_plane(response: &Response) -> Option<ControlPlane> {
    (!response.identifier.is_empty()).then(|| ControlPlane {
        identifier: response.identifier.to_string(),
    })
}

fn nonce(response: &Response) -> String {
    match response.reply.nonce {
        0 => String::new(),
        nonce => nonce.to_string(),
    }
}

/// Returns the typed message.
fn full(response: &Response) -> FullResponse {
    let resources = response.reply.resources.iter();
    FullResponse {
        version_info: response.reply.version.to_string(),
        resources: resources.map(|resource| any(response, resource)).collect(),
        type_url: response.reply.resource_type.type_url().to_owned(),
        nonce: nonce(response),
        control_plane: control_plane(response),
        ..FullResponse::default()
    }
}

/// Returns the typed message.
fn delta(response: &Response) -> DeltaDiscoveryResponse {
    let resources = response.reply.resources.iter();
    DeltaDiscoveryResponse {
        system_version_info: response.reply.version.to_string(),
        resources: resources
            .map(|resource| discovery::Resource {
                name: resource.name().to_string(),
                version: resource.version().to_string(),
                resource: Some(any(response, resource)),
                ..discovery::Resource::default()
            })
            .collect(),
        type_url: response.reply.resource_type.type_url().to_owned(),
        nonce: nonce(response),
        removed_resources: (response.reply.removed.iter())
            .map(ToString::to_string)
            .collect(),
        control_plane: control_plane(response),
        ..DeltaDiscoveryResponse::default()
    }
}

/// Returns the message of a frame, after checking its stated length.
fn unframed(framed: Framed) -> Bytes {
    let message_len = framed.message_len();
    let mut all = BytesMut::new();
    for piece in framed.into_pieces() {
        assert!(!piece.is_empty());
        all.extend_from_slice(&piece);
    }
    let message = all.split_off(PREFIX);
    assert_eq!(message.len(), message_len);
    assert_eq!(prefix(message_len).unwrap(), *all);
    message.freeze()
}

/// Checks that the response equals the typed message of another encoder byte by byte, and decodes to it.
fn check(response: &Response, blocks: &Blocks) {
    let bytes = unframed(response.framed(blocks).unwrap());
    assert!(bytes == response.encode_to_vec());
    match response.protocol {
        StreamProtocol::Sotw => {
            assert!(FullResponse::decode(bytes.clone()).unwrap() == full(response));
            assert!(bytes == full(response).encode_to_vec());
        }
        StreamProtocol::Delta => {
            assert!(DeltaDiscoveryResponse::decode(bytes.clone()).unwrap() == delta(response));
            assert!(bytes == delta(response).encode_to_vec());
        }
    }
}

const PROTOCOLS: [StreamProtocol; 2] = [StreamProtocol::Sotw, StreamProtocol::Delta];

/// A resource with other bytes for each subscription.
fn of_each_subscription(name: &str, length: usize) -> Arc<Resource> {
    let body = |byte: u8| Bytes::from(vec![byte; length]);
    let bodies = Bodies::PerSubscription {
        aggregated: body(b'a'),
        separate: body(b's'),
        rest: body(b'r'),
    };
    Arc::new(Resource::new(name, bodies))
}

#[test]
fn all_types_are_what_other_encoders_write() {
    let blocks = Blocks::default();
    for protocol in PROTOCOLS {
        for resource_type in ResourceType::MAKE_BEFORE_BREAK {
            for subscription in Subscription::ALL {
                for length in [0, 1, 300, SHARED_FROM] {
                    let resources = vec![
                        of_each_subscription("a", length),
                        of_each_subscription("b", 7),
                    ];
                    let mut response = response(protocol, resources);
                    response.reply.resource_type = resource_type;
                    response.subscription = subscription;
                    check(&response, &blocks);
                }
            }
        }
    }
}

#[test]
fn thousands_of_resources_are_shared_and_what_is_around_them_is_not() {
    let body = "x".repeat(100);
    let resources: Vec<_> = (0..5_000)
        .map(|n| resource(&format!("service-{n:05}"), &body))
        .collect();
    for protocol in PROTOCOLS {
        let blocks = Blocks::default();
        let first = response(protocol, resources.clone());
        let mut second = first.clone();
        second.reply.nonce = 7;
        second.reply.version = Version::of([b"other".as_slice()]);
        second.reply.removed = vec![Arc::from("gone")];
        second.identifier = Arc::from("");
        check(&first, &blocks);
        check(&second, &blocks);
        let pieces = |response: &Response| -> Vec<Bytes> {
            let framed = response.framed(&blocks).unwrap();
            framed.into_pieces().collect()
        };
        let (first, second) = (pieces(&first), pieces(&second));
        assert_eq!((first.len(), second.len()), (3, 3));
        assert_eq!(first[1].as_ptr(), second[1].as_ptr());
        let own = |pieces: &[Bytes]| pieces[0].len() + pieces[2].len();
        assert!(own(&first) < 200 && own(&second) < 200);
    }
}

#[test]
fn what_is_short_is_one_piece() {
    let blocks = Blocks::default();
    let small = vec![
        resource("a", "1"),
        resource("b", &"x".repeat(SHARED_FROM - 2)),
    ];
    for protocol in PROTOCOLS {
        for resources in [Vec::new(), small.clone()] {
            let response = response(protocol, resources);
            assert_eq!(response.framed(&blocks).unwrap().into_pieces().count(), 1);
            check(&response, &blocks);
        }
    }
}

#[test]
fn what_is_empty_is_not_written() {
    let blocks = Blocks::default();
    for protocol in PROTOCOLS {
        let mut response = response(protocol, Vec::new());
        response.identifier = Arc::from("");
        response.reply.nonce = 0;
        check(&response, &blocks);
    }
}

#[test]
fn what_is_removed_is_said_by_name() {
    let blocks = Blocks::default();
    for removed in [1, 5_000] {
        let mut response = response(StreamProtocol::Delta, vec![resource("a", "1")]);
        response.reply.removed = (0..removed)
            .map(|n| Arc::from(format!("gone-{n}")))
            .collect();
        check(&response, &blocks);
        response.reply.resources.clear();
        check(&response, &blocks);
    }
}

#[test]
fn four_gigabytes_are_too_much() {
    let longest = usize::try_from(u32::MAX).unwrap();
    assert_eq!(prefix(longest), Ok([0, 255, 255, 255, 255]));
    assert_eq!(prefix(258), Ok([0, 0, 0, 1, 2]));
    assert_eq!(prefix(longest + 1), Err(TooLong(longest + 1)));
}

proptest! {
    #[test]
    fn any_response_is_what_other_encoders_write(
        bodies in prop::collection::vec((".{0,9}", prop_oneof![0..200_usize, 10_000..20_000_usize]), 0..5),
        removed in prop::collection::vec(".{0,9}", 0..3),
        nonce: u64,
        is_delta: bool,
    ) {
        let protocol = if is_delta { StreamProtocol::Delta } else { StreamProtocol::Sotw };
        let resources = bodies.iter().map(|(name, length)| of_each_subscription(name, *length));
        let mut response = response(protocol, resources.collect());
        response.reply.nonce = nonce;
        response.reply.removed = removed.into_iter().map(Arc::from).collect();
        check(&response, &Blocks::default());
    }
}
