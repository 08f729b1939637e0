//! The wire format of numbers, lists and words.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};

/// Maximum length of a list in a response. A gateway keeps a page under 4 MiB, so its lists are far
/// shorter; the limit bounds the memory that a hostile list with few bytes for each item can take.
pub(super) const LONGEST_LIST: usize = 100_000;

/// Reads a value that the gateway may write as `null` instead of leaving it out.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A list that the gateway may write as `null`.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(optional_list(deserializer)?.unwrap_or_default())
}

/// A list that the gateway may write as `null`, where that is something else than an empty one.
pub(super) fn optional_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<List<T>>::deserialize(deserializer)?.map(|list| list.0))
}

/// A list of bounded length.
pub(super) struct List<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Vec<T>, A::Error> {
                bounded(items)
            }
        }

        deserializer
            .deserialize_seq(Items(std::marker::PhantomData))
            .map(List)
    }
}

/// The items of a list, unless there are too many.
pub(super) fn bounded<'de, A, T>(mut items: A) -> Result<Vec<T>, A::Error>
where
    A: SeqAccess<'de>,
    T: Deserialize<'de>,
{
    let mut list = Vec::new();
    while list.len() < LONGEST_LIST {
        match items.next_element()? {
            Some(item) => list.push(item),
            None => return Ok(list),
        }
    }
    match items.next_element::<IgnoredAny>()? {
        None => Ok(list),
        Some(_) => Err(A::Error::custom(format_args!(
            "a list of more than {LONGEST_LIST} items"
        ))),
    }
}

/// A 64-bit number, which the gateway writes as a text.
pub(super) fn int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(optional_int64(deserializer)?.unwrap_or_default())
}

/// Reads an optional 64-bit number from its text form.
pub(super) fn optional_int64<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i64>, D::Error> {
    #[derive(serde::Deserialize)]
    struct Number(#[serde(deserialize_with = "required_int64")] i64);
    Ok(Option::<Number>::deserialize(deserializer)?.map(|number| number.0))
}

fn required_int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    deserializer.deserialize_any(Int64)
}

struct Int64;

impl Visitor<'_> for Int64 {
    type Value = i64;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a 64-bit number, as a number or a text")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
        text.trim()
            .parse()
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Defines an enumeration with words that may be added to: unknown ones are kept. Old gateways write the
/// number of a word, counted from 0 in the order of the words here, with 65535 for `Unknown` where it is
/// the last.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident, $default:ident {
            $($(#[$word_meta:meta])* $word:ident),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$word_meta])* $word,)+
            /// A word that this crate does not know.
            Other(Box<str>),
        }

        impl $name {
            const WORDS: &[&str] = &[$(stringify!($word)),+];

            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$word => stringify!($word),)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $(stringify!($word) => Self::$word,)+
                    other => Self::Other(other.into()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Word;

                impl serde::de::Visitor<'_> for Word {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a word or its number")
                    }

                    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<$name, E> {
                        Ok($name::from(word))
                    }

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        Ok($crate::model::wire::numbered($name::WORDS, number)
                            .map_or_else(|| $name::Other(number.to_string().into()), $name::from))
                    }

                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$name, E> {
                        Ok($name::Other(number.to_string().into()))
                    }

                    fn visit_unit<E: serde::de::Error>(self) -> Result<$name, E> {
                        Ok($name::default())
                    }
                }

                deserializer.deserialize_any(Word)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}
pub(super) use words;

/// The word with a number.
pub(super) fn numbered(words: &'static [&'static str], number: u64) -> Option<&'static str> {
    if number == 65535 {
        return words.last().copied().filter(|word| *word == "Unknown");
    }
    words.get(usize::try_from(number).ok()?).copied()
}
