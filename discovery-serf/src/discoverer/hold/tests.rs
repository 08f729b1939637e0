use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::member::Tags;

const RULE: HoldOptions = HoldOptions {
    share: 1.0,
    settle: Duration::from_secs(10),
    recheck: Duration::from_secs(1),
};

/// An instance of a service, with something that can change.
fn instance(name: &str, revision: u8) -> Member {
    let tags = Tags::from([
        ("service", "web".to_owned()),
        ("http-port", format!("80{revision}")),
    ]);
    Member::new(name, Ipv4Addr::LOCALHOST.into(), tags)
}

fn node(name: &str) -> Member {
    Member::new(name, Ipv4Addr::LOCALHOST.into(), Tags::new())
}

fn failed(name: &str) -> Member {
    instance(name, 0).with_status(MemberStatus::Failed)
}

/// A simulated sequence of snapshots over time.
struct Story {
    start: Instant,
    rule: HoldOptions,
    standing: Standing,
}

impl Story {
    fn new(members: Vec<Member>) -> Self {
        let mut story = Self {
            start: Instant::now(),
            rule: RULE,
            standing: Standing::default(),
        };
        story.snapshot(0.0, true, members);
        story
    }

    /// Applies a snapshot `at` seconds after the start. Returns the names of the members that are alive.
    fn snapshot(&mut self, at: f64, is_first: bool, members: Vec<Member>) -> Vec<&str> {
        let now = self.start + Duration::from_secs_f64(at);
        let snapshot = Snapshot { members, is_first };
        let standing = self.standing.after(snapshot, &self.rule, now);
        let names: Vec<_> = serving(&standing.members).collect();
        self.standing = standing.served_by(names);
        let mut alive: Vec<_> = alive(&self.standing.members).collect();
        alive.sort_unstable();
        alive
    }

    fn first(&mut self, at: f64, members: Vec<Member>) -> Vec<&str> {
        self.snapshot(at, true, members)
    }

    fn further(&mut self, at: f64, members: Vec<Member>) -> Vec<&str> {
        self.snapshot(at, false, members)
    }

    fn recheck(&self, at: f64) -> Option<f64> {
        let now = self.start + Duration::from_secs_f64(at);
        let due = self.standing.recheck(&self.rule, now)?;
        Some((due - self.start).as_secs_f64())
    }
}

fn alive(members: &[Member]) -> impl Iterator<Item = &str> {
    let alive = members.iter().filter(|member| member.status.is_alive());
    alive.map(|member| &*member.name)
}

fn serving(members: &[Member]) -> impl Iterator<Item = Arc<str>> {
    let serving = members
        .iter()
        .filter(|member| member.status.is_alive() && member.tags.bytes("http-port").is_some());
    serving.map(|member| Arc::clone(&member.name))
}

#[test]
fn an_agent_that_knows_only_itself_is_not_believed_for_a_while() {
    let mut story = Story::new(vec![node("gw"), instance("a", 0), instance("b", 0)]);
    assert_eq!(story.first(100.0, vec![node("gw")]), ["a", "b", "gw"]);
    assert_eq!(story.standing.held(), 2);
    assert_eq!(story.recheck(100.0), Some(101.0));
    assert_eq!(story.further(109.5, vec![node("gw")]), ["a", "b", "gw"]);
    assert_eq!(story.recheck(109.5), Some(110.0));
    assert_eq!(story.further(110.0, vec![node("gw")]), ["gw"]);
    assert_eq!(story.standing.held(), 0);
    assert_eq!(story.recheck(110.0), None);
}

#[test]
fn those_who_are_back_are_believed_and_the_others_wait_on() {
    let mut story = Story::new(vec![instance("a", 0), instance("b", 0), instance("c", 0)]);
    assert_eq!(story.first(1.0, vec![]), ["a", "b", "c"]);
    let back = vec![instance("a", 1)];
    assert_eq!(story.further(2.0, back.clone()), ["a", "b", "c"]);
    assert_eq!(story.standing.members[0], back[0]);
    assert_eq!(story.further(3.0, vec![]), ["b", "c"], "seen and gone");
    assert_eq!(story.further(11.0, vec![]), [""; 0]);
}

#[test]
fn an_instance_beside_the_agent_does_not_hide_that_it_sees_nobody_else() {
    let mut story = Story::new(vec![instance("gw", 0), instance("a", 0)]);
    assert_eq!(story.first(1.0, vec![instance("gw", 0)]), ["a", "gw"]);
    let mut story = Story::new(vec![
        instance("gw", 0),
        node("other"),
        instance("a", 0),
        instance("b", 0),
    ]);
    let most = vec![instance("gw", 0), node("other")];
    assert_eq!(story.first(1.0, most), ["gw", "other"], "it sees others");
}

#[test]
fn an_ordinary_loss_applies_at_once() {
    let all = || vec![instance("a", 0), instance("b", 0), node("gw")];
    let mut story = Story::new(all());
    assert_eq!(story.further(1.0, vec![node("gw")]), ["gw"]);
    let mut story = Story::new(all());
    let one = vec![instance("a", 0), node("gw")];
    assert_eq!(story.first(1.0, one), ["a", "gw"], "less than the share");
}

#[test]
fn what_members_say_themselves_applies_at_once() {
    for status in [MemberStatus::Left, MemberStatus::Leaving] {
        let mut story = Story::new(vec![instance("a", 0), instance("b", 0)]);
        let said = ["a", "b"].map(|name| instance(name, 0).with_status(status.clone()));
        assert_eq!(story.first(1.0, said.into()), [""; 0], "{status}");
    }
    // Held first, and then heard of.
    let mut story = Story::new(vec![node("gw"), instance("a", 0)]);
    assert_eq!(story.first(1.0, vec![node("gw")]), ["a", "gw"]);
    let left = instance("a", 0).with_status(MemberStatus::Left);
    assert_eq!(story.further(2.0, vec![node("gw"), left]), ["gw"]);
}

#[test]
fn those_who_seem_to_have_failed_are_kept_in_place_of_what_is_said_of_them() {
    let mut story = Story::new(vec![instance("a", 7), instance("b", 0)]);
    assert_eq!(story.first(1.0, vec![failed("a"), failed("b")]), ["a", "b"]);
    assert_eq!(story.standing.members.len(), 2);
    assert!(story.standing.members.contains(&instance("a", 7)));
    let later = story.further(11.0, vec![failed("a"), failed("b")]);
    assert_eq!(later, [""; 0]);
    assert_eq!(story.standing.members, [failed("a"), failed("b")]);
}

#[test]
fn further_connections_do_not_wind_the_clock_up() {
    let mut story = Story::new(vec![instance("a", 0), node("gw")]);
    for at in [1.0, 5.0, 9.0, 10.9] {
        assert_eq!(story.first(at, vec![node("gw")]), ["a", "gw"]);
    }
    assert_eq!(story.first(11.0, vec![node("gw")]), ["gw"]);
    assert_eq!(story.first(11.1, vec![node("gw")]), ["gw"]);
}

#[test]
fn members_that_are_back_can_be_doubted_anew() {
    let mut story = Story::new(vec![instance("a", 0), node("gw")]);
    story.first(1.0, vec![node("gw")]);
    story.further(9.0, vec![instance("a", 0), node("gw")]);
    assert_eq!(story.standing.held(), 0);
    assert_eq!(story.first(10.0, vec![node("gw")]), ["a", "gw"]);
    assert_eq!(story.further(19.0, vec![node("gw")]), ["a", "gw"]);
    assert_eq!(story.further(20.0, vec![node("gw")]), ["gw"]);
}

#[test]
fn a_share_of_the_instances_may_be_enough() {
    let all = || {
        let mut members: Vec<_> = ["a", "b", "c", "d"].map(|name| instance(name, 0)).into();
        members.push(node("gw"));
        members
    };
    let mut story = Story::new(all());
    story.rule.share = 0.5;
    assert_eq!(story.first(1.0, all().split_off(1)).len(), 4, "a quarter");
    let mut story = Story::new(all());
    story.rule.share = 0.5;
    assert_eq!(story.first(1.0, all().split_off(2)).len(), 5, "a half");
}

#[test]
fn a_cluster_of_which_every_service_has_failed_is_not_taken_for_one_without_services() {
    let mut story = Story::new(vec![node("gw"), failed("a")]);
    story.first(1.0, vec![node("gw")]);
    assert_eq!(story.standing.members, [node("gw"), failed("a")]);
    story.further(11.0, vec![node("gw")]);
    assert_eq!(story.standing.members, [node("gw")]);
}

#[test]
fn without_patience_nothing_is_kept() {
    let mut story = Story::new(vec![instance("a", 0), node("gw")]);
    story.rule.settle = Duration::ZERO;
    assert_eq!(story.first(1.0, vec![node("gw")]), ["gw"]);
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// One snapshot: milliseconds since the one before, whether it is the first of its connection, and each member's state
/// and revision.
type Step = (u64, bool, [(u8, u8); 5]);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let member = (0..6_u8, 0..3_u8);
    let step = (0..6_000_u64, any::<bool>(), prop::array::uniform5(member));
    prop::collection::vec(step, 1..25)
}

fn members_of(states: &[(u8, u8); 5]) -> Vec<Member> {
    let member = |(name, (state, revision)): (&str, &(u8, u8))| {
        let member = instance(name, *revision);
        Some(match state {
            0 => return None,
            1 => member.with_status(MemberStatus::Failed),
            2 => member.with_status(MemberStatus::Left),
            3 => member.with_status(MemberStatus::Leaving),
            _ => member,
        })
    };
    NAMES.into_iter().zip(states).filter_map(member).collect()
}

proptest! {
    #[test]
    fn whatever_happens_the_promises_hold(steps in steps(), share in 0.1..=1.0) {
        let rule = RULE.with_share(share);
        let mut standing = Standing::default();
        let mut now = Instant::now();
        // Since when each member has been lacking, and how it was before.
        let mut lacking_since: BTreeMap<&str, Instant> = BTreeMap::new();
        for (wait, is_first, states) in steps {
            now += Duration::from_millis(wait);
            let listed = members_of(&states);
            let before = standing;
            let snapshot = Snapshot { members: listed.clone(), is_first };
            let after = before.after(snapshot, &rule, now);
            for name in NAMES {
                let said = listed.iter().find(|member| &*member.name == name);
                let stood = before.members.iter().find(|member| &*member.name == name);
                let stands = after.members.iter().find(|member| &*member.name == name);
                let by_itself = said.is_some_and(|member| {
                    !matches!(member.status, MemberStatus::Failed)
                });
                let kept = stands.is_some() && stands != said;
                if by_itself {
                    // What an agent has of members that speak for themselves applies at once.
                    prop_assert_eq!(stands, said);
                    lacking_since.remove(name);
                } else {
                    let since = *lacking_since.entry(name).or_insert(now);
                    // No member is kept for longer than the limit, or in another form.
                    if kept {
                        prop_assert!(now - since < rule.settle);
                        prop_assert_eq!(stands, stood);
                    } else {
                        prop_assert_eq!(stands, said);
                        // It is trusted, and so may be doubted again.
                        lacking_since.remove(name);
                    }
                }
                // Without a new connection nothing begins to be kept.
                if !is_first && !before.doubted.contains_key(name) {
                    prop_assert_eq!(stands, said);
                }
            }
            // Members are kept for the first time only if enough of them are lacking.
            let fresh = after.doubted.keys().filter(|name| !before.doubted.contains_key(*name));
            if fresh.count() > 0 {
                let gone = lacking(&before.members, &listed);
                let gone = gone.iter().filter(|m| before.instances.contains(&m.name)).count();
                let enough = gone as f64 >= share * before.instances.len() as f64;
                prop_assert!(enough || listed.len() <= 1);
            }
            prop_assert_eq!(after.held() > 0, after.recheck(&rule, now).is_some());
            let names: Vec<_> = serving(&after.members).collect();
            standing = after.served_by(names);
        }
        // Once connections are quiet for long enough the last word of the agent stands.
        let last = standing.members.clone();
        let listed: Vec<_> = last.into_iter().filter(|m| !standing.doubted.contains_key(&m.name)).collect();
        let snapshot = Snapshot { members: listed.clone(), is_first: false };
        let after = standing.after(snapshot, &rule, now + rule.settle);
        prop_assert_eq!(after.members, listed);
    }

    #[test]
    fn the_order_of_a_list_does_not_matter(steps in steps(), seed in any::<u64>()) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut now = Instant::now();
        let (mut one, mut other) = (Standing::default(), Standing::default());
        for (wait, is_first, states) in steps {
            now += Duration::from_millis(wait);
            let members = members_of(&states);
            let mut shuffled = members.clone();
            rng.shuffle(&mut shuffled);
            let after = |standing: &Standing, members| {
                let snapshot = Snapshot { members, is_first };
                let after = standing.after(snapshot, &RULE, now);
                let names: Vec<_> = serving(&after.members).collect();
                after.served_by(names)
            };
            one = after(&one, members);
            other = after(&other, shuffled);
            let sorted = |standing: &Standing| {
                let mut members = standing.members.clone();
                members.sort_by(|a, b| a.name.cmp(&b.name));
                members
            };
            prop_assert_eq!(sorted(&one), sorted(&other));
            prop_assert_eq!(&one.doubted, &other.doubted);
        }
    }
}
