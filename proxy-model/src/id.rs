//! Identifiers of routes, clusters and destinations.
//!
//! An id is kept as it was written and compared ignoring case, as YARP does (`OrdinalIgnoreCase`): `Orders` and
//! `orders` name the same cluster, and the spelling that came first is the one that people see.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::matching::text::fold;

/// The characters of `text` in the form in which ids are compared.
fn folded(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().map(fold)
}

/// Returns true if two ids are equal ignoring case.
pub fn same_id(a: &str, b: &str) -> bool {
    a == b || folded(a).eq(folded(b))
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes an id from its text, which is kept as written.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text as written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || same_id(&self.0, &other.0)
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                for c in folded(&self.0) {
                    state.write_u32(c.into());
                }
                state.write_u8(0xff);
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                folded(&self.0).cmp(folded(&other.0))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                same_id(&self.0, other)
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                same_id(&self.0, other)
            }
        }
    };
}

id!(
    /// Names a route.
    RouteId
);
id!(
    /// Names a cluster: a group of destinations that serve the same thing.
    ClusterId
);
id!(
    /// Names a destination within its cluster.
    DestinationId
);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn ids_keep_their_spelling_and_ignore_case() {
        let id = ClusterId::new("Orders");
        assert_eq!(id.as_str(), "Orders");
        assert_eq!(id, ClusterId::new("oRDERS"));
        assert_ne!(id, ClusterId::new("orders2"));
        assert_eq!(RouteId::new("ÄPFEL"), RouteId::new("äpfel"));
        for (one, other) in [
            ("straße", "strasse"),
            ("\u{131}d", "Id"),
            ("\u{17f}", "S"),
            ("\u{212a}", "k"),
        ] {
            assert_ne!(RouteId::new(one), RouteId::new(other));
        }
    }

    #[test]
    fn equal_ids_hash_and_order_alike() {
        let mut map = HashMap::new();
        map.insert(DestinationId::new("D1"), 1);
        assert_eq!(map.get(&DestinationId::new("d1")), Some(&1));
        assert_eq!(
            DestinationId::new("b").cmp(&DestinationId::new("A")),
            Ordering::Greater
        );
    }
}
