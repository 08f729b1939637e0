//! Results of limited validity.

use super::super::names::FIRST_WAIT;
use super::*;

async fn all(resolver: &Resolver) -> Vec<String> {
    let found = resolver.resolve(&of(NAME), NAME, 80).await.unwrap();
    found.iter().map(|found| found.ip().to_string()).collect()
}

/// A lost datagram does not remove the other address family.
#[tokio::test(start_paused = true)]
async fn the_known_addresses_of_a_family_are_used_while_nobody_tells_of_it() {
    let script = Script::default();
    let resolver = script.with(FEW, true, Some(HOUR));
    assert_eq!(all(&resolver).await, ["192.0.2.1"]);
    script.turn(Mood::HalfSilent);
    sleep(HOUR).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3590) {
        assert_eq!(all(&resolver).await, ["2001:db8::1", "192.0.2.1"]);
        sleep(Duration::from_millis(500)).await;
    }
    // It is looked up again after 1 s, 2 s, 4 s and so on, and finally every 30 s.
    let asked = script.asked(NAME);
    assert!((115..130).contains(&asked), "{asked}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&resolver).await, ["2001:db8::1"], "for an hour");
    script.turn(Mood::Moved);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(all(&resolver).await, ["192.0.2.2"]);
}

#[tokio::test(start_paused = true)]
async fn one_family_alone_is_not_believed_for_long() {
    let script = Script::default();
    let resolver = script.with(FEW, true, Some(HOUR));
    script.turn(Mood::HalfSilent);
    for _ in 0..10 {
        assert_eq!(all(&resolver).await, ["2001:db8::1"]);
    }
    assert_eq!(script.asked(NAME), 1);
    script.turn(Mood::Well);
    sleep(FIRST_WAIT).await;
    assert_eq!(all(&resolver).await, ["192.0.2.1"]);
    // The next loss counts as the first one again.
    sleep(HOUR).await;
    script.turn(Mood::HalfSilent);
    assert_eq!(all(&resolver).await, ["2001:db8::1", "192.0.2.1"]);
    script.turn(Mood::Well);
    sleep(FIRST_WAIT).await;
    assert_eq!(all(&resolver).await, ["192.0.2.1"]);
}

/// The known host stays while its name cannot be queried, whatever a search domain has.
#[tokio::test(start_paused = true)]
async fn another_full_name_is_not_believed_while_the_known_one_fails() {
    let script = Script::default();
    let resolver = script.with(FEW, true, Some(HOUR));
    assert_eq!(first(&resolver).await, "192.0.2.1");
    script.turn(Mood::Elsewhere);
    sleep(HOUR).await;
    for _ in 0..100 {
        assert_eq!(first(&resolver).await, "192.0.2.1");
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(script.asked(NAME), 101, "it is asked again after 1 s");
    let [unresolved] = &resolver.names().unresolved()[..] else {
        panic!("the name is failing");
    };
    assert_eq!(unresolved.error.to_string(), "SERVFAIL");
    script.turn(Mood::Moved);
    assert_eq!(first(&resolver).await, "192.0.2.2");
    // Once the known addresses are too old, there is nothing better.
    script.turn(Mood::Elsewhere);
    sleep(HOUR).await;
    assert_eq!(first(&resolver).await, "192.0.2.2");
    sleep(HOUR).await;
    assert_eq!(first(&resolver).await, "203.0.113.66");
    assert!(resolver.names().unresolved().is_empty());
    script.turn(Mood::Well);
    sleep(FIRST_WAIT).await;
    assert_eq!(first(&resolver).await, "192.0.2.1");
}

/// The case of a search domain whose server always rejects.
#[tokio::test(start_paused = true)]
async fn a_full_name_that_is_unsure_counts_where_no_other_is_known() {
    let script = Script::default();
    let resolver = script.with(FEW, true, Some(HOUR));
    script.turn(Mood::Elsewhere);
    for asked in 1..10 {
        assert_eq!(first(&resolver).await, "203.0.113.66");
        assert_eq!(first(&resolver).await, "203.0.113.66");
        assert_eq!(script.asked(NAME), asked);
        assert!(resolver.names().unresolved().is_empty());
        sleep(FIRST_WAIT).await;
    }
}
