//! Canonical encoding: equal messages have equal bytes.
//!
//! Maps of generated messages are hash maps, whose entries are encoded in any order. Encoded messages are
//! therefore processed once more, and the entries of each map are sorted by key. The fields that are maps
//! are taken from the [descriptors](super::shapes).

use bytes::Bytes;
use prost::{Message, Name};

use super::shapes::{Field, Shape, Shapes};

/// The message's bytes, which are equal for equal messages.
pub(crate) fn encode<M: Message + Name>(message: &M) -> Bytes {
    let encoded = message.encode_to_vec();
    let shapes = Shapes::of_envoy();
    let Some(shape) = shapes.named(&M::full_name()) else {
        // It has no maps.
        return encoded.into();
    };
    let mut ordered = Vec::with_capacity(encoded.len());
    match order(&encoded, shape, shapes, &mut ordered) {
        Some(()) => ordered.into(),
        // It was encoded just now, so it can be read. If it could not, it would still be right, only not canonical.
        None => encoded.into(),
    }
}

/// The number of a map entry's value.
const ENTRY_VALUE: u32 = 2;

fn order(message: &[u8], shape: &Shape, shapes: &Shapes, out: &mut Vec<u8>) -> Option<()> {
    let mut entries: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let field = WireField::take(&mut rest)?;
        match (shape.field(field.number), field.value) {
            (Some(Field::Message(inner)), Some(value)) => {
                let mut ordered = Vec::with_capacity(value.len());
                order(value, shapes.at(inner)?, shapes, &mut ordered)?;
                put(out, field.number, &ordered);
            }
            (Some(Field::Map), Some(entry)) => {
                entries.push((field.number, key_of(entry)?, entry.to_vec()));
            }
            (Some(Field::MapOf(inner)), Some(entry)) => {
                let mut ordered = Vec::with_capacity(entry.len());
                order_entry(entry, shapes.at(inner)?, shapes, &mut ordered)?;
                entries.push((field.number, key_of(entry)?, ordered));
            }
            _ => out.extend_from_slice(field.whole),
        }
    }
    entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (number, _, entry) in entries {
        put(out, number, &entry);
    }
    Some(())
}

fn order_entry(entry: &[u8], value: &Shape, shapes: &Shapes, out: &mut Vec<u8>) -> Option<()> {
    let mut rest = entry;
    while !rest.is_empty() {
        let field = WireField::take(&mut rest)?;
        match field.value.filter(|_| field.number == ENTRY_VALUE) {
            Some(message) => {
                let mut ordered = Vec::with_capacity(message.len());
                order(message, value, shapes, &mut ordered)?;
                put(out, field.number, &ordered);
            }
            None => out.extend_from_slice(field.whole),
        }
    }
    Some(())
}

/// The key of a map entry; all maps here have texts for keys. An absent one is empty.
fn key_of(entry: &[u8]) -> Option<Vec<u8>> {
    let mut rest = entry;
    while !rest.is_empty() {
        let field = WireField::take(&mut rest)?;
        if field.number == 1 {
            return field.value.map(<[u8]>::to_vec);
        }
    }
    Some(Vec::new())
}

/// Writes a length-delimited field.
pub(super) fn put(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field in its wire format.
struct WireField<'m> {
    number: u32,
    /// The field with its tag.
    whole: &'m [u8],
    /// The content, if the field is length-delimited (wire type 2).
    value: Option<&'m [u8]>,
}

impl<'m> WireField<'m> {
    fn take(rest: &mut &'m [u8]) -> Option<Self> {
        let start = *rest;
        let tag = take_varint(rest)?;
        let mut value = None;
        match tag & 7 {
            0 => drop(take_varint(rest)?),
            1 => *rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(take_varint(rest)?).ok()?;
                let (taken, after) = rest.split_at_checked(length)?;
                value = Some(taken);
                *rest = after;
            }
            5 => *rest = rest.get(4..)?,
            _ => return None,
        }
        Some(Self {
            number: u32::try_from(tag >> 3).ok()?,
            whole: start.get(..start.len() - rest.len())?,
            value,
        })
    }
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xds_types::pb::envoy::config::cluster::v3::Cluster;
    use xds_types::pb::envoy::config::core::v3::Metadata;
    use xds_types::pb::google::protobuf::{Any, Struct, Value, value};

    use super::*;

    fn cluster_of(names: &[String]) -> Cluster {
        let any = |name: &String| {
            let value = Any {
                type_url: name.clone(),
                value: Vec::new(),
            };
            (name.clone(), value)
        };
        let number = |name: &String| {
            let value = Value {
                kind: Some(value::Kind::NumberValue(name.len() as f64)),
            };
            (name.clone(), value)
        };
        let fields = Struct {
            fields: names.iter().map(number).collect(),
        };
        let metadata = Metadata {
            filter_metadata: names
                .iter()
                .map(|name| (name.clone(), fields.clone()))
                .collect(),
            ..Metadata::default()
        };
        Cluster {
            name: "a".to_owned(),
            metadata: Some(metadata),
            typed_extension_protocol_options: names.iter().map(any).collect(),
            ..Cluster::default()
        }
    }

    proptest! {
        /// Two hash maps of the same entries are two orders, as a rule.
        #[test]
        fn equal_messages_have_equal_bytes_and_mean_the_same(
            names in prop::collection::vec("[a-z]{0,6}", 0..12),
        ) {
            let (one, other) = (cluster_of(&names), cluster_of(&names));
            let bytes = encode(&one);
            prop_assert_eq!(&bytes, &encode(&other));
            prop_assert_eq!(Cluster::decode(bytes).unwrap(), one);
        }
    }

    #[test]
    fn what_has_no_maps_stays_as_it_is() {
        let cluster = Cluster {
            name: "a".to_owned(),
            lb_policy: 5,
            ..Cluster::default()
        };
        assert_eq!(encode(&cluster), cluster.encode_to_vec());
    }
}
