//! Equal messages, equal bytes.
//!
//! Maps of generated messages are hash maps, and their entries are encoded in any order. What is encoded is therefore gone
//! through once more, and the entries of each map are put in the order of their keys.

use bytes::Bytes;
use prost::Message;

/// A kind of message that has maps, or messages with maps: those of its fields, by number.
pub(super) struct Shape(&'static [(u32, Field)]);

#[derive(Clone, Copy)]
enum Field {
    /// A message, once or often.
    Message(&'static Shape),
    /// A map whose values have no maps.
    Map,
    /// A map of messages.
    MapOf(&'static Shape),
}

/// The number of a map entry's value.
const ENTRY_VALUE: u32 = 2;

static STRUCT: Shape = Shape(&[(1, Field::MapOf(&VALUE))]);
static VALUE: Shape = Shape(&[(5, Field::Message(&STRUCT)), (6, Field::Message(&LIST))]);
static LIST: Shape = Shape(&[(1, Field::Message(&VALUE))]);
static METADATA: Shape = Shape(&[(1, Field::MapOf(&STRUCT)), (2, Field::Map)]);
static LB_ENDPOINT: Shape = Shape(&[(3, Field::Message(&METADATA))]);
static LOCALITY: Shape = Shape(&[
    (2, Field::Message(&LB_ENDPOINT)),
    (9, Field::Message(&METADATA)),
]);
static SOCKET_MATCH: Shape = Shape(&[(2, Field::Message(&STRUCT))]);
static SUBSETS: Shape = Shape(&[(2, Field::Message(&STRUCT))]);
static HEALTH_CHECK: Shape = Shape(&[(23, Field::Message(&STRUCT))]);
static CLUSTER_WEIGHT: Shape = Shape(&[(3, Field::Message(&METADATA)), (10, Field::Map)]);
static WEIGHTED_CLUSTERS: Shape = Shape(&[(1, Field::Message(&CLUSTER_WEIGHT))]);
static ROUTE_ACTION: Shape = Shape(&[
    (3, Field::Message(&WEIGHTED_CLUSTERS)),
    (4, Field::Message(&METADATA)),
]);
static ROUTE: Shape = Shape(&[
    (2, Field::Message(&ROUTE_ACTION)),
    (4, Field::Message(&METADATA)),
    (13, Field::Map),
]);
static FILTER_CHAIN: Shape = Shape(&[(5, Field::Message(&METADATA))]);
static ROUTE_CONFIGURATION: Shape = Shape(&[
    (2, Field::Message(&VIRTUAL_HOST)),
    (16, Field::Map),
    (17, Field::Message(&METADATA)),
]);

/// `envoy.config.endpoint.v3.ClusterLoadAssignment`.
pub(super) static ASSIGNMENT: Shape = Shape(&[(2, Field::Message(&LOCALITY)), (5, Field::Map)]);
/// `envoy.config.cluster.v3.Cluster`.
pub(super) static CLUSTER: Shape = Shape(&[
    (8, Field::Message(&HEALTH_CHECK)),
    (22, Field::Message(&SUBSETS)),
    (25, Field::Message(&METADATA)),
    (33, Field::Message(&ASSIGNMENT)),
    (36, Field::Map),
    (43, Field::Message(&SOCKET_MATCH)),
]);
/// `envoy.config.route.v3.VirtualHost`.
pub(super) static VIRTUAL_HOST: Shape = Shape(&[
    (3, Field::Message(&ROUTE)),
    (15, Field::Map),
    (24, Field::Message(&METADATA)),
]);
/// `envoy.config.listener.v3.Listener`.
pub(super) static LISTENER: Shape = Shape(&[
    (3, Field::Message(&FILTER_CHAIN)),
    (6, Field::Message(&METADATA)),
    (25, Field::Message(&FILTER_CHAIN)),
]);
/// `envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`.
pub(super) static CONNECTION_MANAGER: Shape = Shape(&[(4, Field::Message(&ROUTE_CONFIGURATION))]);

/// The message's bytes, which are equal for equal messages.
pub(super) fn encode(message: &impl Message, shape: &Shape) -> Bytes {
    let encoded = message.encode_to_vec();
    let mut ordered = Vec::with_capacity(encoded.len());
    match order(&encoded, shape, &mut ordered) {
        Some(()) => ordered.into(),
        // It was encoded just now, so it can be read. If it could not, it would still be right, only not canonical.
        None => encoded.into(),
    }
}

fn order(message: &[u8], shape: &Shape, out: &mut Vec<u8>) -> Option<()> {
    let mut entries: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let field = WireField::take(&mut rest)?;
        match (shape.field(field.number), field.value) {
            (Some(Field::Message(inner)), Some(value)) => {
                let mut ordered = Vec::with_capacity(value.len());
                order(value, inner, &mut ordered)?;
                put(out, field.number, &ordered);
            }
            (Some(Field::Map), Some(entry)) => {
                entries.push((field.number, key_of(entry)?, entry.to_vec()));
            }
            (Some(Field::MapOf(inner)), Some(entry)) => {
                let entry_shape = |number| (number == ENTRY_VALUE).then_some(inner);
                let mut ordered = Vec::with_capacity(entry.len());
                order_entry(entry, entry_shape, &mut ordered)?;
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

fn order_entry(
    entry: &[u8],
    shape: impl Fn(u32) -> Option<&'static Shape>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut rest = entry;
    while !rest.is_empty() {
        let field = WireField::take(&mut rest)?;
        match (shape(field.number), field.value) {
            (Some(inner), Some(value)) => {
                let mut ordered = Vec::with_capacity(value.len());
                order(value, inner, &mut ordered)?;
                put(out, field.number, &ordered);
            }
            _ => out.extend_from_slice(field.whole),
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

/// Puts a field that has a length.
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

impl Shape {
    fn field(&self, number: u32) -> Option<Field> {
        let mut fields = self.0.iter();
        fields.find(|field| field.0 == number).map(|field| field.1)
    }
}

/// A field as it is on the wire.
struct WireField<'m> {
    number: u32,
    /// With its tag.
    whole: &'m [u8],
    /// What is in it, if it has a length.
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
    use std::collections::{BTreeSet, HashMap, HashSet};

    use envoy_types::pb::envoy::config::cluster::v3::Cluster;
    use envoy_types::pb::envoy::config::core::v3::Metadata;
    use envoy_types::pb::google::protobuf::{Any, Struct, Value, value};
    use proptest::prelude::*;
    use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

    use super::*;
    use crate::server::ENVOY_DESCRIPTORS;

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
            let bytes = encode(&one, &CLUSTER);
            prop_assert_eq!(&bytes, &encode(&other, &CLUSTER));
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
        assert_eq!(encode(&cluster, &CLUSTER), cluster.encode_to_vec());
    }

    /// What the descriptors of Envoy's API say of maps.
    struct Walk {
        reaching: HashMap<String, bool>,
        seen: HashSet<(usize, String)>,
        wrong: BTreeSet<String>,
    }

    impl Walk {
        /// Whether a message has a map, or a message with one.
        fn reaches_map(&mut self, message: &MessageDescriptor) -> bool {
            if let Some(known) = self.reaching.get(message.full_name()) {
                return *known;
            }
            let (mut waiting, mut seen) = (vec![message.clone()], HashSet::new());
            let mut has = false;
            while let Some(next) = waiting.pop() {
                has |= next.fields().any(|field| field.is_map());
                let inner = next.fields().filter_map(|field| message_of(&field));
                waiting.extend(inner.filter(|of| seen.insert(of.full_name().to_owned())));
            }
            self.reaching.insert(message.full_name().to_owned(), has);
            has
        }

        fn compare(&mut self, shape: &'static Shape, message: &MessageDescriptor) {
            let key = std::ptr::from_ref(shape).addr();
            if !self.seen.insert((key, message.full_name().to_owned())) {
                return;
            }
            let mut known: BTreeSet<u32> = shape.0.iter().map(|(number, _)| *number).collect();
            for field in message.fields() {
                known.remove(&field.number());
                let of = message_of(&field);
                let inner = of.filter(|of| self.reaches_map(of));
                match (field.is_map(), inner, shape.field(field.number())) {
                    (false, None, None) | (true, None, Some(Field::Map)) => {}
                    (false, Some(inner), Some(Field::Message(shape)))
                    | (true, Some(inner), Some(Field::MapOf(shape))) => self.compare(shape, &inner),
                    _ => {
                        let name = format!("{} = {}", field.full_name(), field.number());
                        self.wrong.insert(name);
                    }
                }
            }
            for number in known {
                self.wrong.insert(format!("{} has no {number}", message.full_name()));
            }
        }
    }

    /// The message that a field is, or that its values are.
    fn message_of(field: &FieldDescriptor) -> Option<MessageDescriptor> {
        match field.kind() {
            Kind::Message(entry) if field.is_map() => match entry.map_entry_value_field().kind() {
                Kind::Message(value) => Some(value),
                _ => None,
            },
            Kind::Message(message) => Some(message),
            _ => None,
        }
    }

    /// The table is written by hand, and whoever forgets a map makes versions that differ between replicas.
    #[test]
    fn the_table_has_every_map_of_the_descriptors() {
        let pool = DescriptorPool::decode(ENVOY_DESCRIPTORS).unwrap();
        let mut walk = Walk {
            reaching: HashMap::new(),
            seen: HashSet::new(),
            wrong: BTreeSet::new(),
        };
        for (shape, name) in [
            (&ASSIGNMENT, "envoy.config.endpoint.v3.ClusterLoadAssignment"),
            (&CLUSTER, "envoy.config.cluster.v3.Cluster"),
            (&VIRTUAL_HOST, "envoy.config.route.v3.VirtualHost"),
            (&LISTENER, "envoy.config.listener.v3.Listener"),
            (
                &CONNECTION_MANAGER,
                "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            ),
        ] {
            let message = pool.get_message_by_name(name).unwrap();
            assert!(walk.reaches_map(&message), "{name}");
            walk.compare(shape, &message);
        }
        let wrong: Vec<_> = walk.wrong.into_iter().collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
