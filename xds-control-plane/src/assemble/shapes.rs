//! The messages of Envoy's API that contain maps, and their fields: taken from its descriptors, so that
//! none is missed.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::server::ENVOY_DESCRIPTORS;

/// The kinds of messages that have maps, or messages with maps.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    all: Vec<Shape>,
    by_name: HashMap<String, ShapeId>,
}

/// The fields of a message that are maps, or messages with maps; by number.
#[derive(Debug, Default)]
pub(super) struct Shape(Vec<(u32, Field)>);

/// The index of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShapeId(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// A message, once or often.
    Message(ShapeId),
    /// A map whose values have no maps.
    Map,
    /// A map of messages.
    MapOf(ShapeId),
}

static OF_ENVOY: LazyLock<Shapes> = LazyLock::new(|| {
    let pool = DescriptorPool::decode(ENVOY_DESCRIPTORS);
    pool.map(|pool| Shapes::of(&pool)).unwrap_or_default()
});

impl Shapes {
    /// The shapes of Envoy's API.
    pub(super) fn of_envoy() -> &'static Self {
        &OF_ENVOY
    }

    fn of(pool: &DescriptorPool) -> Self {
        let messages = pool
            .all_messages()
            .filter(|message| !message.is_map_entry());
        let with_maps: Vec<_> = messages.filter(reaches_map).collect();
        let names = with_maps.iter().enumerate();
        let by_name: HashMap<_, _> = names
            .map(|(at, message)| (message.full_name().to_owned(), ShapeId(at)))
            .collect();
        let shape_of = |message: &MessageDescriptor| {
            let mut fields: Vec<_> = message
                .fields()
                .filter_map(|field| {
                    let of = message_of(&field);
                    let inner = of.and_then(|of| by_name.get(of.full_name()).copied());
                    let kind = match (field.is_map(), inner) {
                        (false, None) => return None,
                        (false, Some(inner)) => Field::Message(inner),
                        (true, None) => Field::Map,
                        (true, Some(inner)) => Field::MapOf(inner),
                    };
                    Some((field.number(), kind))
                })
                .collect();
            fields.sort_by_key(|(number, _)| *number);
            Shape(fields)
        };
        Self {
            all: with_maps.iter().map(shape_of).collect(),
            by_name,
        }
    }

    /// Returns the shape of a message by its full name. `None` if it contains no maps.
    pub(super) fn named(&self, name: &str) -> Option<&Shape> {
        self.at(*self.by_name.get(name)?)
    }

    pub(super) fn at(&self, id: ShapeId) -> Option<&Shape> {
        self.all.get(id.0)
    }
}

impl Shape {
    pub(super) fn field(&self, number: u32) -> Option<Field> {
        let at = self.0.binary_search_by_key(&number, |(number, _)| *number);
        self.0.get(at.ok()?).map(|(_, field)| *field)
    }
}

/// Returns true if a message contains a map at any depth.
fn reaches_map(message: &MessageDescriptor) -> bool {
    let mut waiting = vec![message.clone()];
    let mut seen = HashSet::from([message.full_name().to_owned()]);
    while let Some(next) = waiting.pop() {
        if next.fields().any(|field| field.is_map()) {
            return true;
        }
        let inner = next.fields().filter_map(|field| message_of(&field));
        waiting.extend(inner.filter(|of| seen.insert(of.full_name().to_owned())));
    }
    false
}

/// The message that a field is, or that the values of a map are.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The field at the end of a path of numbers.
    fn at(root: &str, path: &[u32]) -> Option<Field> {
        let shapes = Shapes::of_envoy();
        let (last, way) = path.split_last()?;
        let mut shape = shapes.named(root)?;
        for number in way {
            shape = match shape.field(*number)? {
                Field::Message(inner) | Field::MapOf(inner) => shapes.at(inner)?,
                Field::Map => return None,
            };
        }
        shape.field(*last)
    }

    #[test]
    fn maps_are_found_however_deep_and_in_what_has_itself_in_it() {
        let cluster = "envoy.config.cluster.v3.Cluster";
        // typed_extension_protocol_options
        assert_eq!(at(cluster, &[36]), Some(Field::Map));
        // metadata.filter_metadata
        assert!(matches!(at(cluster, &[25, 1]), Some(Field::MapOf(_))));
        // metadata.filter_metadata.value.fields.value.list_value.values.struct_value.fields
        let deep = [25, 1, 1, 6, 1, 5, 1];
        assert!(matches!(at(cluster, &deep), Some(Field::MapOf(_))));
        // name, lb_policy
        assert_eq!((at(cluster, &[1]), at(cluster, &[6])), (None, None));
        let host = "envoy.config.route.v3.VirtualHost";
        // routes.route.weighted_clusters.clusters.typed_per_filter_config
        assert_eq!(at(host, &[3, 2, 3, 1, 10]), Some(Field::Map));
        // routes.typed_per_filter_config
        assert_eq!(at(host, &[3, 13]), Some(Field::Map));
        let assignment = "envoy.config.endpoint.v3.ClusterLoadAssignment";
        // named_endpoints, endpoints.lb_endpoints.metadata.filter_metadata
        assert!(at(assignment, &[5]).is_some());
        assert!(matches!(
            at(assignment, &[2, 2, 3, 1]),
            Some(Field::MapOf(_))
        ));
        let manager =
            "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
        // route_config.virtual_hosts.typed_per_filter_config
        assert_eq!(at(manager, &[4, 2, 15]), Some(Field::Map));
        assert!(
            Shapes::of_envoy()
                .named("envoy.config.listener.v3.Listener")
                .is_some()
        );
    }

    /// The reverse check: fields outside the shapes contain no maps.
    #[test]
    fn every_map_of_every_message_is_a_field_of_its_shape() {
        let pool = DescriptorPool::decode(ENVOY_DESCRIPTORS).unwrap();
        let shapes = Shapes::of(&pool);
        let mut maps = 0;
        for message in pool.all_messages() {
            for field in message.fields().filter(FieldDescriptor::is_map) {
                let found = shapes
                    .named(message.full_name())
                    .and_then(|s| s.field(field.number()));
                assert!(
                    matches!(found, Some(Field::Map | Field::MapOf(_))),
                    "{}",
                    field.full_name()
                );
                maps += 1;
            }
            let is_parent = |field: &FieldDescriptor| {
                message_of(field).is_some_and(|of| shapes.named(of.full_name()).is_some())
            };
            let parents = message.fields().filter(is_parent).count();
            let shape = shapes.named(message.full_name());
            if !message.is_map_entry() {
                assert!(parents == 0 || shape.is_some(), "{}", message.full_name());
            }
        }
        assert!(maps > 20, "{maps}");
    }
}
