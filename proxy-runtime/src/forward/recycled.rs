//! Recycled maps of heads: those of finished requests serve new ones.
//!
//! A map of fields has two blocks, and so has one of extensions, each value of which has another. A
//! thread that forwards many requests gets along with the blocks of those that are under way at a time.
//!
//! Most heads have the same fields in the same order as one before them. So a map keeps its names, and
//! is filled by giving them their values, which takes a comparison for each where it would take a hash,
//! a place and often a block for the name.

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};

use super::same_name::is_named;
use crate::ConnectionInfo;
use crate::forward::RouteContext;
use crate::head::headers::received_name;
use crate::http1::Field;
use crate::local_pool::LocalPool;
use crate::response::ExchangeInfo;

/// Maximum number of unused maps of each kind per thread: the number of concurrent requests on a busy thread.
const MOST: usize = 128;

/// Fields of a map that is worth keeping.
const LARGEST: usize = 64;

/// Bytes of a name that is worth keeping.
const LONGEST: usize = 64;

/// Maximum number of surplus fields, such as those of layers, that are removed so that a map can be recycled.
const ADDED: usize = 4;

/// The purpose of a head. Heads of one purpose have similar fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    /// A few fields of a request, for the log.
    #[cfg_attr(
        not(feature = "server"),
        expect(dead_code, reason = "for the server, which writes the log")
    )]
    Logged,
    Response,
}

thread_local! {
    static POOL: [HeadParts; 3] = const { [HeadParts::new(), HeadParts::new(), HeadParts::new()] };
}

/// The recycled maps of one kind of head.
struct HeadParts {
    /// Maps that keep their names; the values are empty.
    fields: LocalPool<HeaderMap, MOST>,
    /// Extensions that hold an empty placeholder only.
    extensions: LocalPool<Extensions, MOST>,
}

impl HeadParts {
    const fn new() -> Self {
        Self {
            fields: LocalPool::new(),
            extensions: LocalPool::new(),
        }
    }
}

/// Returns a map of at most `most` fields of `head`, with capacity for `more`. Values share its memory. `None` if
/// a field cannot be represented in `http` types.
pub(crate) fn fields<'a>(
    kind: Kind,
    head: &Bytes,
    fields: impl Iterator<Item = &'a Field> + Clone,
    (most, more): (usize, usize),
) -> Option<HeaderMap> {
    let spare = POOL.try_with(|spare| {
        let own = spare[kind as usize].fields.take();
        // A server that is not ours keeps the maps of responses, and has others for requests.
        own.or_else(|| {
            let mut other = spare.iter().find_map(|spare| spare.fields.take())?;
            other.clear();
            Some(other)
        })
    });
    let mut map = match spare {
        // A map that has to grow is worth no more than a new one.
        Ok(Some(map)) if map.capacity() >= most + more => map,
        _ => HeaderMap::with_capacity(most + more),
    };
    let mut rest = fields.clone();
    match fill(&mut map, head, &mut rest)? {
        Filled::All => {}
        Filled::Names => append(&mut map, head, rest)?,
        Filled::Other => {
            map.clear();
            append(&mut map, head, fields)?;
        }
    }
    Some(map)
}

/// The degree to which a recycled map had the needed names.
enum Filled {
    /// The map had exactly the needed names.
    All,
    /// The map had the first ones of the needed names.
    Names,
    /// The map had other names.
    Other,
}

/// Sets the values of a map, which has each name once, to those of `fields`, as long as the names agree in order.
fn fill<'a>(
    map: &mut HeaderMap,
    head: &Bytes,
    fields: &mut (impl Iterator<Item = &'a Field> + Clone),
) -> Option<Filled> {
    let mut count = 0;
    for (name, slot) in &mut *map {
        let Some(field) = fields.next() else {
            break;
        };
        if !is_named(field.name().get(head), name.as_str().as_bytes()) {
            return Some(Filled::Other);
        }
        *slot = value(head, field)?;
        count += 1;
    }
    if count == map.keys_len() {
        return Some(Filled::Names);
    }
    if map.keys_len() > count + ADDED {
        return Some(Filled::Other);
    }
    // Surplus fields stand at the end, where layers have added them.
    while let Some(name) = map.keys().nth(count).cloned() {
        map.remove(&name);
    }
    Some(Filled::All)
}

fn append<'a>(
    map: &mut HeaderMap,
    head: &Bytes,
    fields: impl Iterator<Item = &'a Field>,
) -> Option<()> {
    for field in fields {
        let name: HeaderName = received_name(field.class(), field.name().get(head))?;
        map.append(name, value(head, field)?);
    }
    Some(())
}

fn value(head: &Bytes, field: &Field) -> Option<HeaderValue> {
    let span = field.value();
    let value = head.slice(span.start() as usize..span.end() as usize);
    HeaderValue::from_maybe_shared(value).ok()
}

/// Returns extensions with the placeholder that heads of this kind replace by their value.
pub(crate) fn extensions(kind: Kind) -> Extensions {
    let spare = POOL.try_with(|spare| {
        // Those of the same kind first, which have the right types already.
        let own = spare[kind as usize].extensions.take();
        own.or_else(|| {
            let mut other = spare.iter().find_map(|spare| spare.extensions.take())?;
            other.clear();
            Some(other)
        })
    });
    spare.ok().flatten().unwrap_or_default()
}

/// Keeps the maps of a finished head. Their values are dropped.
pub(crate) fn release(kind: Kind, mut fields: HeaderMap, mut extensions: Extensions) {
    // With these, programs' values are dropped, which may want a map themselves.
    empty_fields(&mut fields);
    empty_extensions(kind, &mut extensions);
    // A thread that ends has no use for it.
    let _ = POOL.try_with(|spare| {
        let spare = &spare[kind as usize];
        // A map that one request made large would keep its memory for good.
        if (1..=LARGEST).contains(&fields.capacity()) {
            spare.fields.add(fields);
        }
        spare.extensions.add(extensions);
    });
}

/// Leaves the names, if each of them is there once.
fn empty_fields(fields: &mut HeaderMap) {
    let mut is_kept = fields.len() == fields.keys_len();
    for (name, value) in &mut *fields {
        // An empty value needs no memory, and lets that of the head go.
        *value = HeaderValue::from_static("");
        is_kept &= name.as_str().len() <= LONGEST;
    }
    if !is_kept {
        fields.clear();
    }
}

/// Resets the extensions to the placeholder, if they hold nothing else.
fn empty_extensions(kind: Kind, extensions: &mut Extensions) {
    let context = extensions.get::<RouteContext>();
    // Extensions that every message has stay, to be overwritten in place.
    let is_kept = match (kind, extensions.len(), context) {
        (Kind::Request, 1, None) => reset::<ConnectionInfo>(extensions),
        (Kind::Request, 2, Some(context)) if context.is_taken() => {
            reset::<ConnectionInfo>(extensions)
        }
        (Kind::Response, 1, _) => reset::<ExchangeInfo>(extensions),
        _ => false,
    };
    if !is_kept {
        extensions.clear();
    }
}

fn reset<T: Default + Send + Sync + 'static>(extensions: &mut Extensions) -> bool {
    let place = extensions.get_mut::<T>();
    place.map(|place| *place = T::default()).is_some()
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, HOST};
    use proptest::prelude::*;

    use super::*;
    use crate::head::put_in_place;
    use crate::http1::{HeadLimits, HeadTable, parse_request};

    /// The map of a head with these fields.
    fn read(kind: Kind, lines: &[(&str, &str)]) -> HeaderMap {
        let mut head = "GET / HTTP/1.1\r\nhost: h\r\n".to_owned();
        for (name, value) in lines {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut table = HeadTable::new();
        parse_request(head.as_bytes(), &HeadLimits::default(), &mut table).expect("it is one");
        let head = Bytes::from(head);
        let given = table.fields();
        let map = fields(kind, &head, given.iter(), (given.len(), 2)).expect("they are fields");
        assert!(map.capacity() >= given.len() + 2);
        map
    }

    fn lines(map: &HeaderMap) -> Vec<(&str, &str)> {
        map.iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect()
    }

    fn kept(kind: Kind) -> usize {
        POOL.with(|spare| spare[kind as usize].fields.count())
    }

    #[test]
    fn what_is_kept_has_no_values() {
        let mut used = read(Kind::Request, &[("accept", "secret")]);
        used.insert("x-layer", HeaderValue::from_static("seen"));
        release(Kind::Request, used, Extensions::new());
        assert_eq!(kept(Kind::Request), 1);
        let map = POOL.with(|spare| spare[Kind::Request as usize].fields.take().unwrap());
        assert_eq!(map.keys_len(), 3);
        assert!(map.values().all(HeaderValue::is_empty));
    }

    #[test]
    fn a_map_is_filled_whatever_it_had() {
        let accept = &[("accept", "b")][..];
        let both = &[("accept", "b"), ("x-c", "d")][..];
        for (before, added, now) in [
            (accept, &[][..], accept),
            (accept, &[], both),
            (both, &[], accept),
            (accept, &["x-layer", "x-other"], accept),
            (accept, &["x-c", "x-other"], both),
            (accept, &["x-1", "x-2", "x-3", "x-4", "x-5"], accept),
            (both, &["x-layer"], &[("x-c", "d"), ("accept", "b")]),
            (both, &["x-layer"], &[("Accept", "1"), ("X-C", "2")]),
            (accept, &[], &[("accept", "1"), ("accept", "2")]),
            (&[("accept", "1"), ("accept", "2")], &[], both),
            (both, &[], &[("accept", "1"), ("x-c", "2"), ("accept", "3")]),
        ] {
            let mut used = read(Kind::Request, before);
            for name in added {
                used.insert(*name, HeaderValue::from_static("added"));
            }
            release(Kind::Request, used, Extensions::new());
            let map = read(Kind::Request, now);
            let fresh = std::thread::scope(|scope| {
                scope.spawn(|| read(Kind::Request, now)).join().unwrap()
            });
            assert_eq!(map, fresh, "{before:?} {added:?}");
            assert_eq!(lines(&map), lines(&fresh), "{before:?} {added:?}");
            for name in fresh.keys() {
                assert_eq!(map.get(name), fresh.get(name), "it is found");
            }
            assert_eq!(map.contains_key("x-layer"), fresh.contains_key("x-layer"));
            POOL.with(|spare| while spare[0].fields.take().is_some() {});
        }
    }

    proptest! {
        #[test]
        fn heads_do_not_depend_on_those_before(
            heads in prop::collection::vec(
                prop::collection::vec(("[a-d]|x-[a-d]", "[0-9]{0,2}"), 0..6),
                1..8,
            ),
            removed in 0..6_usize,
        ) {
            for head in heads {
                let given: Vec<_> = head.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                let mut map = read(Kind::Request, &given);
                let mut expected = HeaderMap::new();
                expected.append(HOST, HeaderValue::from_static("h"));
                for (name, value) in &head {
                    let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                    expected.append(name, HeaderValue::from_str(value).unwrap());
                }
                prop_assert_eq!(&map, &expected);
                prop_assert_eq!(lines(&map), lines(&expected));
                for name in ["a", "b", "c", "d", "x-a", "x-b", "x-c", "x-d"] {
                    prop_assert_eq!(map.contains_key(name), expected.contains_key(name));
                }
                // A program may do anything with it.
                if let Some(name) = map.keys().nth(removed).cloned() {
                    map.remove(name);
                }
                map.append(ACCEPT, HeaderValue::from_static("added"));
                release(Kind::Request, map, Extensions::new());
            }
        }
    }

    #[test]
    fn extensions_keep_a_place_and_nothing_that_was_said() {
        let remote = ConnectionInfo::new(([192, 0, 2, 1], 1).into());
        let mut said = Extensions::new();
        put_in_place(&mut said, remote);
        release(Kind::Request, HeaderMap::new(), said);
        let mut again = extensions(Kind::Request);
        assert_eq!(again.get(), Some(&ConnectionInfo::default()));
        put_in_place(&mut again, remote);
        assert_eq!(again.get(), Some(&remote));
        again.insert(7_u8);
        release(Kind::Request, HeaderMap::new(), again);
        assert!(
            extensions(Kind::Request).is_empty(),
            "what a program put there is gone"
        );
        let mut other = Extensions::new();
        other.insert(7_u8);
        release(Kind::Response, HeaderMap::new(), other);
        assert!(extensions(Kind::Response).is_empty());
    }

    #[test]
    fn maps_of_another_kind_will_do() {
        release(Kind::Request, read(Kind::Request, &[]), Extensions::new());
        assert_eq!((kept(Kind::Request), kept(Kind::Response)), (1, 0));
        let map = read(Kind::Response, &[("accept", "b")]);
        assert_eq!(lines(&map), [("host", "h"), ("accept", "b")]);
        assert_eq!(kept(Kind::Request), 0);
    }

    #[test]
    fn neither_many_nor_large_ones_are_kept() {
        for _ in 0..2 * MOST {
            let large = HeaderMap::with_capacity(LARGEST * 2);
            release(Kind::Response, large, Extensions::new());
            release(
                Kind::Response,
                HeaderMap::with_capacity(4),
                Extensions::new(),
            );
        }
        let (kept, large) = POOL.with(|spare| {
            let spare = &spare[Kind::Response as usize];
            let most = spare.fields.count().max(spare.extensions.count());
            let mut maps = std::iter::from_fn(|| spare.fields.take());
            (most, maps.any(|map| map.capacity() > LARGEST))
        });
        assert_eq!((kept, large), (MOST, false));
    }

    #[test]
    fn long_names_are_not_kept() {
        let long = "x".repeat(LONGEST + 1);
        release(
            Kind::Request,
            read(Kind::Request, &[(&long, "v")]),
            Extensions::new(),
        );
        let map = POOL.with(|spare| spare[0].fields.take());
        assert!(map.unwrap().is_empty());
    }
}
