//! Pages of lists.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::wire::{List, bounded};

/// A page of a list.
///
/// Gateways write an object with the items and a token for the next page. Some calls, and all calls of old
/// versions of the API, return the bare list. An object without a list, or with `null` in its place, is an
/// error: it more likely comes from another server than from an empty list, and an empty list means that
/// everything was deleted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items of the page; more than 100,000 are an error.
    pub items: Vec<T>,
    /// The token for requesting the next page. `None` if this is the last page.
    pub continuation_token: Option<String>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Page<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = Page<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, or an object with `Items`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Page<T>, A::Error> {
        Ok(Page {
            items: bounded(items)?,
            continuation_token: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page<T>, A::Error> {
        let (mut list, mut token) = (None, None);
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Items => {
                    let items: List<T> = map.next_value()?;
                    if list.replace(items).is_some() {
                        return Err(A::Error::custom("two lists on one page"));
                    }
                }
                Key::ContinuationToken => token = map.next_value::<Option<String>>()?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let list = list.ok_or_else(|| A::Error::missing_field("Items"))?;
        Ok(Page {
            items: list.0,
            continuation_token: token.filter(|token| !token.is_empty()),
        })
    }
}

#[derive(serde::Deserialize)]
enum Key {
    #[serde(alias = "Properties")]
    Items,
    ContinuationToken,
    #[serde(other)]
    Other,
}
