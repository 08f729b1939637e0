//! Tests that failures are reported and counted in the same way on each path of a request.
//!
//! A [scene](scene) lists the actions of a client and a destination, and the expected result. It is [played](play) on
//! each path, on a clock that advances only when all tasks wait; then the [observations](seen) are compared field by
//! field.

mod client;
mod clients;
mod connections;
mod destinations;
mod differs;
mod message;
mod play;
mod scene;
mod seen;
mod transport;

use std::collections::BTreeSet;
use std::fmt::Write;

use self::play::{Means, Way, play};
use self::scene::Scene;

const fn way(name: &'static str, means: Means, is_http2: bool) -> Way {
    Way {
        name,
        means,
        is_http2,
    }
}

/// The paths by the client's version of HTTP and the kind of forwarding.
const WAYS: &[Way] = &[
    way("bytes", Means::Bytes, false),
    way("types", Means::Types, false),
    #[cfg(feature = "http2")]
    way("h2 bytes", Means::Bytes, true),
    #[cfg(feature = "http2")]
    way("h2 types", Means::Types, true),
];

/// Plays all scenes on each path. Every difference must be a known one, and every known difference must occur.
fn compare(scenes: &[Scene]) {
    let mut report = String::new();
    for scene in scenes {
        let known = differs::of(scene.name, WAYS);
        let mut found = BTreeSet::new();
        for way in WAYS.iter().filter(|way| scene.is_for(way.is_http2)) {
            let expected = scene.expected(way.is_http2);
            let seen = play(scene, *way).fields(scene, expected);
            for ((field, seen), (_, expected)) in
                seen.into_iter().zip(scene.fields(expected, way.is_http2))
            {
                if seen == expected {
                    continue;
                }
                found.insert((way.name, field));
                if !known.contains(&(way.name, field)) {
                    let (scene, way) = (scene.name, way.name);
                    writeln!(
                        report,
                        "{scene} | {way} | {field}: {seen:?}, not {expected:?}"
                    )
                    .unwrap();
                }
            }
        }
        for (way, field) in known.difference(&found) {
            let scene = scene.name;
            writeln!(report, "{scene} | {way} | {field} differs no longer").unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn when_nothing_goes_wrong() {
    compare(&connections::well());
}

#[test]
fn of_destinations_that_say_nothing() {
    compare(&destinations::idle());
}

#[test]
fn of_destinations_that_are_late() {
    compare(&destinations::late());
}

#[test]
fn of_what_is_no_response() {
    compare(&destinations::meaningless());
}

#[test]
fn of_destinations_that_close() {
    compare(&destinations::closing());
}

#[test]
fn of_connections_that_are_stale() {
    compare(&connections::stale());
}

#[test]
fn of_clients_that_send_too_little_or_too_much() {
    compare(&clients::sending());
}

#[test]
fn of_clients_that_leave() {
    compare(&clients::leaving());
}

#[test]
fn of_clients_that_take_nothing_or_are_answered_early() {
    compare(&clients::taking());
}

#[test]
fn each_name_is_one_scenes() {
    let scenes = [
        connections::well(),
        destinations::idle(),
        destinations::late(),
        destinations::meaningless(),
        destinations::closing(),
        connections::stale(),
        clients::sending(),
        clients::leaving(),
        clients::taking(),
    ];
    let mut names = BTreeSet::new();
    for scene in scenes.iter().flatten() {
        assert!(names.insert(scene.name), "{}", scene.name);
    }
    for scene in differs::scenes() {
        assert!(names.contains(scene), "{scene}");
    }
}
