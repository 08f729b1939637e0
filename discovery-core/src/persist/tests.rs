use std::sync::Arc;

use proptest::prelude::*;
use proxy_model::Problem;
use proxy_model::config::{ClusterConfig, DestinationConfig, ProxyConfig, RouteConfig, RouteMatch};

use super::*;
use crate::runner::{Good, KeptQuarantine, KeptService};
use crate::timestamp::Timestamp;

const GRACE: Duration = Duration::from_secs(1800);

fn service(name: &str, age: u64) -> KeptService {
    let mut fragment = ProxyConfig::default();
    let destination = DestinationConfig {
        address: "http://10.0.0.1:8080".to_owned(),
        ..Default::default()
    };
    let cluster = ClusterConfig {
        destinations: [("d1".into(), destination)].into(),
        ..Default::default()
    };
    let route = RouteConfig {
        cluster_id: Some(name.into()),
        r#match: RouteMatch {
            path: Some("/ä/{**rest}".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    fragment.clusters.insert(name.into(), cluster);
    fragment.routes.insert(name.into(), route);
    KeptService {
        name: name.into(),
        group: Some("group".into()),
        good: Good {
            fragment: Arc::new(fragment),
            labels: Some(Arc::new(
                [("proxy.enable".to_owned(), "true".to_owned())].into(),
            )),
            at: Timestamp::ago(Duration::from_secs(age)),
            read_at: Timestamp::ago(Duration::from_secs(age / 2)),
            unread: Default::default(),
        },
        later: [(name.into(), age)].into(),
    }
}

fn all_of<const N: usize>(services: [KeptService; N]) -> KeptState {
    KeptState {
        services: services.into(),
        ..KeptState::default()
    }
}

fn names(kept: &KeptState) -> Vec<String> {
    let name = |service: &KeptService| service.name.to_string();
    kept.services.iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_read_back_with_its_age() {
    let now = SystemTime::now();
    let bytes = encode(
        "sf",
        &all_of([service("orders", 90), service("web", 0)]),
        now,
    );
    let later = now + Duration::from_secs(10);
    let services = decode("sf", &bytes, later).unwrap();
    assert_eq!(names(&services), ["orders", "web"]);
    let services = services.services;
    assert_eq!(services[0].later, [("orders".into(), 90)].into());
    assert_eq!(
        services[0].good.fragment,
        service("orders", 0).good.fragment
    );
    assert_eq!(services[0].group.as_deref(), Some("group"));
    assert_eq!(services[0].good.labels, service("orders", 0).good.labels);
    assert_eq!(services[0].good.at.age().as_secs(), 100);
    assert_eq!(services[0].good.destinations_at().age().as_secs(), 55);
    assert_eq!(services[1].good.at.age().as_secs(), 10);

    let earlier = now - Duration::from_secs(3600);
    let services = decode("sf", &bytes, earlier).unwrap().services;
    assert_eq!(services[1].good.at.age(), Duration::ZERO);
}

/// Services of which nothing serves are in quarantine, too.
#[tokio::test(start_paused = true)]
async fn what_the_source_needs_and_what_is_quarantined_is_read_back() {
    let now = SystemTime::now();
    let problem = Problem::error("/Routes/r", "invalid_path", "no path");
    let before = KeptState {
        quarantined: vec![KeptQuarantine {
            name: "broken".into(),
            since: Timestamp::ago(Duration::from_secs(90)),
            problems: problem.into(),
        }],
        memo: Some("a memo".into()),
        ..all_of([service("orders", 0)])
    };
    let later = now + Duration::from_secs(10);
    let after = decode("sf", &encode("sf", &before, now), later).unwrap();
    assert_eq!(after.memo.as_deref(), Some("a memo"));
    let [quarantined] = &after.quarantined[..] else {
        panic!("{:?}", after.quarantined);
    };
    assert_eq!(&*quarantined.name, "broken");
    assert_eq!(quarantined.problems, before.quarantined[0].problems);
    assert_eq!(quarantined.since.age().as_secs(), 100);
}

/// A restart makes what could not be looked at no younger, and what was read until then no older.
#[tokio::test(start_paused = true)]
async fn each_part_of_the_destinations_has_its_own_age() {
    let now = SystemTime::now();
    let mut kept = service("orders", 90);
    let seen = Timestamp::ago(Duration::from_secs(600));
    let mut fragment = ProxyConfig::clone(&kept.good.fragment);
    let known = fragment.clusters[0].destinations[0].clone();
    fragment.clusters[0]
        .destinations
        .insert("p2/1".into(), known);
    kept.good.fragment = Arc::new(fragment);
    kept.good.unread.insert("p2/".into(), seen);
    kept.good
        .unread
        .insert("gone/".into(), Timestamp::ago(Duration::from_secs(9000)));
    let bytes = encode("sf", &all_of([kept]), now);
    let services = decode("sf", &bytes, now + Duration::from_secs(10)).unwrap();
    let services = services.services;
    let good = &services[0].good;
    assert_eq!(good.read_at.age().as_secs(), 55);
    assert_eq!(good.unread["p2/"].age().as_secs(), 610);
    assert_eq!(good.destinations_at().age().as_secs(), 610);
}

#[test]
fn a_file_of_another_source_or_version_is_rejected() {
    let now = SystemTime::now();
    let bytes = encode("sf", &all_of([service("orders", 0)]), now);
    assert_eq!(
        decode("consul", &bytes, now).unwrap_err(),
        FormatError::OtherSource("sf".to_owned())
    );
    let text = String::from_utf8(bytes).unwrap();
    let newer = text.replacen("last-good 1", "last-good 2", 1);
    assert_eq!(
        decode("sf", newer.as_bytes(), now).unwrap_err(),
        FormatError::UnknownVersion
    );
    for other in [
        "",
        "\n",
        "{}",
        "discovery-last-good 1 x y\n",
        "\u{0}\u{0}\n",
    ] {
        assert!(decode("sf", other.as_bytes(), now).is_err(), "{other:?}");
    }
}

#[test]
fn a_file_torn_at_any_byte_is_rejected() {
    let now = SystemTime::now();
    let bytes = encode("sf", &all_of([service("orders", 0)]), now);
    for length in 0..bytes.len() {
        assert!(decode("sf", &bytes[..length], now).is_err(), "{length}");
    }
    let mut longer = bytes;
    longer.push(b' ');
    assert!(decode("sf", &longer, now).is_err());
}

proptest! {
    #[test]
    fn a_file_with_any_bit_flipped_is_rejected(at in 0_usize..10_000, bit in 0_u8..8) {
        let now = SystemTime::now();
        let mut bytes = encode("sf", &all_of([service("orders", 0)]), now);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(decode("sf", &bytes, now).is_err());
    }

    #[test]
    fn bytes_of_any_kind_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(decode("sf", &bytes, SystemTime::now()).is_err());
    }

}

proptest! {
    // Every case syncs several files to disk.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A last write that was cut off at any byte is ignored: the state before it is loaded.
    #[test]
    fn a_torn_file_gives_way_to_its_predecessor(cut in 0.0..1.0_f64) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path().join("last-good"), GRACE);
        store.save("sf", &all_of([service("old", 0)])).unwrap();
        store.save("sf", &all_of([service("new", 0)])).unwrap();
        let written = fs::read(&store.path).unwrap();
        let length = (written.len() as f64 * cut) as usize;
        fs::write(&store.path, &written[..length]).unwrap();
        let services = store.load("sf").unwrap().unwrap();
        prop_assert_eq!(names(&services), ["old"]);

        // A torn file is no predecessor: the good one before it is kept.
        store.save("sf", &all_of([service("newer", 0)])).unwrap();
        prop_assert_eq!(names(&store.load("sf").unwrap().unwrap()), ["newer"]);
        fs::write(&store.path, "").unwrap();
        prop_assert_eq!(names(&store.load("sf").unwrap().unwrap()), ["old"]);
    }
}

#[test]
fn the_newest_file_is_read_and_nothing_else_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path().join("last-good"), GRACE);
    assert!(store.load("sf").unwrap().is_none());
    for name in ["a", "b", "c"] {
        store.save("sf", &all_of([service(name, 0)])).unwrap();
        assert_eq!(names(&store.load("sf").unwrap().unwrap()), [name]);
    }
    let mut files: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["last-good", "last-good.previous"]);
}

/// A file that another account may have written is not read, since it decides where requests go.
#[cfg(unix)]
#[test]
fn a_file_that_another_account_may_have_put_there_is_not_read() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path().join("last-good"), GRACE);
    store.save("sf", &all_of([service("a", 0)])).unwrap();
    let linked = Store::new(directory.path().join("link"), GRACE);
    symlink(&store.path, &linked.path).unwrap();
    let error = linked.load("sf").unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");

    let permissions = fs::Permissions::from_mode(0o777);
    fs::set_permissions(directory.path(), permissions).unwrap();
    for error in [
        store.load("sf").unwrap_err(),
        store.save("sf", &all_of([service("b", 0)])).unwrap_err(),
    ] {
        assert!(error.to_string().contains("chmod o-w"), "{error}");
    }
}

#[test]
fn a_crash_between_the_renames_leaves_the_predecessor() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::new(directory.path().join("last-good"), GRACE);
    store.save("sf", &all_of([service("old", 0)])).unwrap();
    fs::rename(&store.path, beside(&store.path, ".previous")).unwrap();
    assert_eq!(names(&store.load("sf").unwrap().unwrap()), ["old"]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_rejects_is_asked_again_a_minute_later() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::new(directory.path().join("missing").join("last-good"), GRACE);
    assert!(store.is_due(true, Instant::now()));
    let error = store.save("sf", &all_of([service("a", 0)])).unwrap_err();
    assert!(error.to_string().contains("last-good"), "{error}");
    store.saved(false, Instant::now());
    assert!(!store.is_due(true, Instant::now()));
    tokio::time::advance(RETRY).await;
    assert!(store.is_due(false, Instant::now()));
    store.saved(true, Instant::now());
    assert!(!store.is_due(false, Instant::now()));
    assert!(store.is_due(true, Instant::now()));
}

/// A configuration that is confirmed again and again must not look old after a restart: unreadable destinations would
/// be given up that were read a moment before.
#[tokio::test(start_paused = true)]
async fn what_does_not_change_is_written_again_within_a_part_of_the_time_that_unread_ones_serve() {
    let minute = Duration::from_secs(60);
    for (grace, expected) in [
        (30 * minute, 5 * minute),
        (24 * 60 * minute, 5 * minute),
        (6 * minute, minute),
        (minute, MIN_LAG),
        (Duration::from_secs(1), MIN_LAG),
        // No unreadable destination serves.
        (Duration::ZERO, 5 * minute),
    ] {
        let mut store = Store::new(PathBuf::from("last-good"), grace);
        assert!(store.is_due(false, Instant::now()));
        store.saved(true, Instant::now());
        tokio::time::advance(expected - Duration::from_millis(1)).await;
        assert!(!store.is_due(false, Instant::now()), "{grace:?}");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(store.is_due(false, Instant::now()), "{grace:?}");
    }
}
