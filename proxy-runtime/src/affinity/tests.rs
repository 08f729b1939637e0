//! Keys on the wire.

use std::time::{Duration, SystemTime};

use http::Request;
use http::header::SET_COOKIE;
use http::request::Parts;
use proptest::prelude::*;
use proxy_model::Snapshot;

use super::*;
use crate::fixtures::snapshot;
use crate::head::HttpHead;

const INDICES: [DestinationIndex; 3] = [
    DestinationIndex(0),
    DestinationIndex(1),
    DestinationIndex(2),
];

/// A cluster with the destinations `dest-A`, `dest-B` and `dest-C`.
fn cluster(affinity: &str) -> std::sync::Arc<Snapshot> {
    snapshot(&format!(
        r#"{{"Clusters":{{"c":{{
            "SessionAffinity":{{"Enabled":true,"AffinityKeyName":"My.Affinity",{affinity}}},
            "Destinations":{{"dest-A":{{"Address":"http://a/"}},"dest-B":{{"Address":"http://b/"}},
                "dest-C":{{"Address":"http://c/"}}}}}}}}}}"#
    ))
}

fn affinity(cluster: &Cluster) -> ClusterAffinity {
    let affinity = ClusterAffinity::of(
        cluster,
        &Affinities::default(),
        #[cfg(feature = "affinity-keys")]
        &KeyRing::default(),
    );
    affinity.unwrap().unwrap()
}

fn request(fields: &[(&str, &str)]) -> Parts {
    let mut request = Request::get("/");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn read(affinity: &ClusterAffinity, cluster: &Cluster, fields: &[(&str, &str)]) -> RequestKey {
    affinity.read(cluster, &HttpHead::new(&request(fields)))
}

/// The value of the header that gives a client a key.
fn given(
    affinity: &ClusterAffinity,
    cluster: &Cluster,
    index: DestinationIndex,
    (names_cluster, is_https): (bool, bool),
) -> (String, String) {
    let key = affinity
        .give(cluster, index, names_cluster, is_https)
        .unwrap();
    let mut headers = http::HeaderMap::new();
    key.apply_to(&mut headers);
    let (name, value) = headers.iter().next().unwrap();
    (name.to_string(), value.to_str().unwrap().to_owned())
}

#[test]
fn keys_are_written_as_yarp_writes_them() {
    const SOME: &str = r#""Cookie":{"Domain":"mydomain.my","Path":"/some","MaxAge":"01:00:00","HttpOnly":false,
        "SameSite":"Lax","SecurePolicy":"Always"}"#;
    for (case, settings, index, expected) in [
        (
            "J01",
            SOME.to_owned(),
            1,
            "My.Affinity=53c079ed4c377b0d; max-age=3600; domain=mydomain.my; path=/some; secure; samesite=lax",
        ),
        (
            "J04",
            format!(r#""Policy":"ArrCookie",{SOME}"#),
            1,
            "My.Affinity=920A160FA519353932B655488361A944531650016793761EE7224DE632863B13; max-age=3600; \
             domain=mydomain.my; path=/some; secure; samesite=lax",
        ),
        (
            "J05",
            r#""Policy":"ArrCookie""#.to_owned(),
            0,
            "My.Affinity=CE3762A8E5BFB452C5071CC80C81E9C89A87369B0E8F7866CB437C1A181A865F; path=/; httponly",
        ),
        (
            "defaults",
            r#""Policy":"HashCookie""#.to_owned(),
            1,
            "My.Affinity=53c079ed4c377b0d; path=/; httponly",
        ),
    ] {
        let snapshot = cluster(&settings);
        let cluster = &snapshot.clusters()[0];
        let key = given(&affinity(cluster), cluster, INDICES[index], (false, false));
        assert_eq!(key, (SET_COOKIE.to_string(), expected.to_owned()), "{case}");
    }
}

#[test]
fn attributes_have_one_order() {
    let snapshot = cluster(
        r#""Cookie":{"Domain":"d","MaxAge":"00:00:01.9","Expiration":"1.00:00:00","SameSite":"None",
            "SecurePolicy":"SameAsRequest","IsEssential":true}"#,
    );
    let cookie = snapshot.clusters()[0].affinity().unwrap().cookie();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let tail = |is_https| cookie::set_cookie("n", "v", cookie, is_https, now);
    let before = "n=v; expires=Mon, 07 Nov 1994 08:49:37 GMT; max-age=1; domain=d; path=/";
    // J19
    assert_eq!(tail(false), format!("{before}; samesite=none; httponly"));
    assert_eq!(
        tail(true),
        format!("{before}; secure; samesite=none; httponly")
    );
}

#[test]
fn ids_are_hashed_ignoring_case() {
    // J03
    assert_eq!(hash::short("DEST-b"), hash::short("dest-B"));
    assert_eq!(hash::long("DEST-b"), hash::long("dest-B"));
    assert_eq!(hash::short("äÖ"), hash::short("Äö"));
}

#[test]
fn cookies_are_read_as_aspnet_reads_them() {
    const B: RequestKey = RequestKey::Destination(INDICES[1]);
    let snapshot = cluster(r#""Policy":"HashCookie""#);
    let cluster = &snapshot.clusters()[0];
    let affinity = affinity(cluster);
    let tagged = |tag: &str| format!("My.Affinity={tag}.53c079ed4c377b0d");
    let mut here = String::new();
    hash::push_hex(&hash::short("C"), false, &mut here);
    for (cookies, expected) in [
        (&[] as &[&str], RequestKey::NotSet),
        (&["Some-Cookie=ZZZ"], RequestKey::NotSet),
        (&["My.Affinity=53c079ed4c377b0d"], B),
        (&["a=b;My.Affinity=53c079ed4c377b0d;c=d"], B),
        (&["a=b; my.affinity=53c079ed4c377b0d ; c"], B),
        (&["a=b", "My.Affinity=53c079ed4c377b0d"], B),
        (&["My.Affinity=%353c079ed4c377b0d"], B),
        // The last value counts, unless it is empty.
        (
            &["My.Affinity=x; My.Affinity=53c079ed4c377b0d; My.Affinity="],
            B,
        ),
        (
            &["My.Affinity=53c079ed4c377b0d; My.Affinity=x"],
            RequestKey::NotFound,
        ),
        (&["My.Affinity="], RequestKey::NotSet),
        (&["My.Affinity"], RequestKey::NotSet),
        (&["My.Affinity =53c079ed4c377b0d"], RequestKey::NotSet),
        (&["XMy.Affinity=53c079ed4c377b0d"], RequestKey::NotSet),
        // J08, J20
        (&["My.Affinity=0000000000000000"], RequestKey::NotFound),
        (&["My.Affinity=53C079ED4C377B0D"], RequestKey::NotFound),
        (&["My.Affinity=53c079ed4c377b0"], RequestKey::NotFound),
        (&["My.Affinity=53c079ed4c377b0d0"], RequestKey::NotFound),
        (&["My.Affinity=\"53c079ed4c377b0d\""], RequestKey::NotFound),
        (&["My.Affinity=."], RequestKey::NotFound),
        // A key with a cluster.
        (&[&*tagged(&here)], B),
        (&[&*tagged("0000000000000000")], RequestKey::NotFound),
        (&[&*tagged("")], RequestKey::NotFound),
        (
            &[&*format!("My.Affinity={}", "5".repeat(100_000))],
            RequestKey::NotFound,
        ),
    ] {
        let fields: Vec<_> = cookies.iter().map(|value| ("cookie", *value)).collect();
        assert_eq!(read(&affinity, cluster, &fields), expected, "{cookies:?}");
    }
}

#[cfg(feature = "affinity-keys")]
#[test]
fn a_header_with_a_key_is_there_once() {
    let snapshot = cluster(r#""Policy":"CustomHeader""#);
    let cluster = &snapshot.clusters()[0];
    let affinity = affinity(cluster);
    let (name, key) = given(&affinity, cluster, INDICES[2], (false, false));
    assert_eq!(name, "my.affinity");
    assert!(!key.contains('='), "{key}");
    let c = RequestKey::Destination(INDICES[2]);
    for (values, expected) in [
        (&[] as &[&str], RequestKey::NotSet),
        // J12
        (&[""], RequestKey::NotSet),
        (&[&key], c),
        (&[&key, &key], RequestKey::Unreadable),
        (&["", &key], RequestKey::Unreadable),
        (&["nonsense"], RequestKey::Unreadable),
        (&[&key[1..]], RequestKey::Unreadable),
        (&[&"A".repeat(100_000)], RequestKey::Unreadable),
    ] {
        let fields: Vec<_> = values.iter().map(|value| ("My.Affinity", *value)).collect();
        assert_eq!(read(&affinity, cluster, &fields), expected, "{values:?}");
    }
}

#[cfg(feature = "affinity-keys")]
#[test]
fn an_encrypted_key_is_of_use_in_one_place() {
    let header = cluster(r#""Policy":"CustomHeader""#);
    let cookie = cluster(r#""Policy":"Cookie""#);
    let keys = KeyRing::default();
    let of = |snapshot: &Snapshot| {
        let cluster = &snapshot.clusters()[0];
        let affinity = ClusterAffinity::of(cluster, &Affinities::default(), &keys);
        affinity.unwrap().unwrap()
    };
    let (in_header, in_cookie) = (of(&header), of(&cookie));
    let (_, key) = given(
        &in_header,
        &header.clusters()[0],
        INDICES[0],
        (false, false),
    );
    // J10
    let moved = format!("My.Affinity={key}");
    let found = read(&in_cookie, &cookie.clusters()[0], &[("cookie", &moved)]);
    assert_eq!(found, RequestKey::Unreadable);
    // The keys were replaced.
    keys.store(AffinityKeys::random());
    let found = read(&in_header, &header.clusters()[0], &[("my.affinity", &key)]);
    assert_eq!(found, RequestKey::Unreadable);
}

proptest! {
    /// A given key is read back, for every policy, and names its cluster or not.
    #[test]
    fn a_given_key_names_its_destination(
        policy in prop::sample::select(vec![
            "HashCookie",
            "ArrCookie",
            #[cfg(feature = "affinity-keys")]
            "Cookie",
            #[cfg(feature = "affinity-keys")]
            "CustomHeader",
        ]),
        at in 0_usize..3,
        names_cluster: bool,
        is_https: bool,
    ) {
        let snapshot = cluster(&format!(r#""Policy":"{policy}""#));
        let cluster = &snapshot.clusters()[0];
        let affinity = affinity(cluster);
        let index = INDICES[at];
        let (name, value) = given(&affinity, cluster, index, (names_cluster, is_https));
        let sent = match name == "set-cookie" {
            true => ("cookie", value.split(';').next().unwrap_or_default()),
            false => ("my.affinity", &*value),
        };
        prop_assert_eq!(read(&affinity, cluster, &[sent]), RequestKey::Destination(index));
        prop_assert!(affinity.is_named(cluster, &HttpHead::new(&request(&[sent]))));
    }

    /// A hostile cookie names nobody, and is read in one pass.
    #[test]
    fn a_hostile_cookie_names_nobody(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let snapshot = cluster(r#""Policy":"HashCookie""#);
        let cluster = &snapshot.clusters()[0];
        let affinity = affinity(cluster);
        let text = [b"My.Affinity=", &*bytes].concat();
        if let Ok(value) = HeaderValue::from_bytes(&text) {
            let mut parts = request(&[]);
            parts.headers.insert("cookie", value);
            let key = affinity.read(cluster, &HttpHead::new(&parts));
            prop_assert!(!matches!(key, RequestKey::Destination(_)));
        }
    }
}
