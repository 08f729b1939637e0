//! Counting names in a request that has not been decoded yet
//! (<https://protobuf.dev/programming-guides/encoding/>).

/// The kinds of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// Returns the count of the most frequent of `fields`. An unreadable message ends the count, and the
/// decoder reports the error.
pub(super) fn most_of_a_kind(mut message: &[u8], fields: &[u64]) -> usize {
    let mut counts = [0_usize; 8];
    while let Some(field) = next(&mut message) {
        let place = fields.iter().position(|wanted| *wanted == field);
        if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
            *count += 1;
        }
    }
    counts.into_iter().max().unwrap_or_default()
}

/// Skips a field. Returns its number.
fn next(message: &mut &[u8]) -> Option<u64> {
    let key = varint(message)?;
    match key & 7 {
        VARINT => {
            varint(message)?;
        }
        FIXED64 => skip(message, 8)?,
        LENGTH => {
            let length = varint(message)?;
            skip(message, usize::try_from(length).ok()?)?;
        }
        FIXED32 => skip(message, 4)?,
        _ => return None,
    }
    Some(key >> 3)
}

fn skip(message: &mut &[u8], length: usize) -> Option<()> {
    *message = message.get(length..)?;
    Some(())
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use xds_types::pb::envoy::config::core::v3::Node;
    use xds_types::pb::envoy::service::discovery::v3::{
        DeltaDiscoveryRequest, DiscoveryRequest, ResourceLocator,
    };

    use super::super::inbound::Inbound;
    use super::*;

    fn count<R: Inbound>(request: &R) -> usize {
        most_of_a_kind(&request.encode_to_vec(), R::NAMES)
    }

    #[test]
    fn every_list_of_names_is_counted() {
        let names = vec![String::new(); 7];
        let locators = vec![ResourceLocator::default(); 7];
        let node = Some(Node {
            id: "x".repeat(300),
            ..Node::default()
        });
        for request in [
            DiscoveryRequest {
                resource_names: names.clone(),
                node: node.clone(),
                ..DiscoveryRequest::default()
            },
            DiscoveryRequest {
                resource_locators: locators.clone(),
                ..DiscoveryRequest::default()
            },
        ] {
            assert_eq!(count(&request), 7, "{request:?}");
        }
        let versions = (0..7).map(|n| (n.to_string(), String::new()));
        for request in [
            DeltaDiscoveryRequest {
                resource_names_subscribe: names.clone(),
                node,
                ..DeltaDiscoveryRequest::default()
            },
            DeltaDiscoveryRequest {
                resource_names_unsubscribe: names,
                ..DeltaDiscoveryRequest::default()
            },
            DeltaDiscoveryRequest {
                initial_resource_versions: versions.collect::<HashMap<_, _>>(),
                ..DeltaDiscoveryRequest::default()
            },
            DeltaDiscoveryRequest {
                resource_locators_subscribe: locators.clone(),
                ..DeltaDiscoveryRequest::default()
            },
            DeltaDiscoveryRequest {
                resource_locators_unsubscribe: locators,
                ..DeltaDiscoveryRequest::default()
            },
        ] {
            assert_eq!(count(&request), 7, "{request:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_and_no_more_names_than_there_can_be(bytes: Vec<u8>) {
            prop_assert!(most_of_a_kind(&bytes, DiscoveryRequest::NAMES) <= bytes.len() / 2);
        }
    }
}
