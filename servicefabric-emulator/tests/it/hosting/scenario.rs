//! A small language for scripts and their outcomes, so that a row of a test table reads like a sentence.
//!
//! A script is a list of clauses, separated by `;`. First the circumstances, for the one package `P` of
//! application `fabric:/App`, whose code package `Code` hosts the type `T`:
//!
//! * `set NAME VALUE`: a setting; `exclusive`: the package has an activation id
//! * `download|activation|deactivation takes SECONDS`, `… fails N`, `… fails always`
//!   `… errs N` (internal errors), `… jitters SECONDS SECONDS …`; `restarts jitter SECONDS SECONDS …`
//! * `registers after SECONDS`, `registers never`; `lives SECONDS SECONDS …`, `lives SECONDS each`
//!
//! Then, each with its time in seconds, what happens: `0 place r`, `0 place r existing`, `0 place r persisted`,
//! `9 activate`, `9 close r`, `9 exit 1`, `9 restart`; and at last `until 2000`.
//!
//! The outcome is a list of `time word`. Only the words that the row watches are compared, but of those, all.

use std::collections::BTreeSet;

use servicefabric_emulator::hosting::{
    Attempts, Behaviour, DeactivationTarget, Deferral, Event, Failures, HealthReport, HealthState,
    HostingConfig, Life, Logged, Node, PackageDescription, PackageKey, Phase, Placement,
    ProcessBehaviour, Registration, ReplicaKey, ReplicaKind, Span, Timestamp,
};

/// A row of a table.
pub(crate) struct Row {
    /// The name of the row in the specification.
    pub(crate) id: &'static str,
    /// The script.
    pub(crate) given: &'static str,
    /// The words to compare.
    pub(crate) watch: &'static str,
    /// The expected events.
    pub(crate) expect: &'static str,
}

/// A played script.
pub(crate) struct Played {
    pub(crate) node: Node,
    pub(crate) events: Vec<Logged>,
}

/// Plays all rows, and reports those with another outcome.
#[track_caller]
pub(crate) fn check(rows: &[Row]) {
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in rows {
        assert!(ids.insert(row.id), "row {} is there twice", row.id);
        let watched: Vec<&str> = row.watch.split_whitespace().collect();
        let played = play(row.given);
        let happened: Vec<String> = outcome(&played.events)
            .into_iter()
            .filter(|(_, word)| watched.contains(&word.as_str()))
            .map(|(at, word)| format!("{} {word}", seconds(at)))
            .collect();
        let expected: Vec<String> = clauses(row.expect).map(str::to_owned).collect();
        if happened != expected {
            wrong.push(format!(
                "{}: {}\n  expected {expected:?}\n  happened {happened:?}",
                row.id, row.given
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Plays a script.
#[track_caller]
pub(crate) fn play(given: &str) -> Played {
    let mut config = HostingConfig::default();
    let mut package = PackageKey::shared("fabric:/App", "P");
    let mut behaviour = Behaviour::default();
    let mut process = ProcessBehaviour::default();
    let mut steps: Vec<(Timestamp, Vec<&str>)> = Vec::new();
    for clause in clauses(given) {
        let words: Vec<&str> = clause.split_whitespace().collect();
        match words[..] {
            ["set", "Profile", "runtime64"] => {
                config = HostingConfig::new(servicefabric_emulator::hosting::Profile::Runtime64);
            }
            ["set", name, value] => {
                config.set(name, &value.into()).unwrap();
            }
            ["exclusive"] => package = PackageKey::exclusive("fabric:/App", "P", "a1"),
            ["download", ref rest @ ..] => attempts(&mut behaviour.download, rest),
            ["activation", ref rest @ ..] => attempts(&mut behaviour.activation, rest),
            ["deactivation", ref rest @ ..] => attempts(&mut behaviour.deactivation, rest),
            ["restarts", "jitter", ref secs @ ..] => {
                process.restart_jitter = secs.iter().map(|secs| span(secs)).collect();
            }
            ["registers", "never"] => process.registration = Registration::Never,
            ["registers", "after", secs] => process.registration = Registration::After(span(secs)),
            ["lives", ref lives @ .., "each"] => {
                process.repeat = true;
                process.lives = lives
                    .iter()
                    .map(|secs| Life::crashing_after(span(secs)))
                    .collect();
            }
            ["lives", ref lives @ ..] => {
                process.lives = lives
                    .iter()
                    .map(|secs| Life::crashing_after(span(secs)))
                    .collect();
            }
            ["until", secs] => steps.push((moment(secs), Vec::new())),
            [secs, ref rest @ ..] => steps.push((moment(secs), rest.to_vec())),
            [] => panic!("an empty clause in {given}"),
        }
    }
    let mut node = Node::new("N1", config);
    node.declare(PackageDescription::new("fabric:/App", "P", "1.0", &["T"]));
    node.script(&package, behaviour.with_process("Code", process));
    for (at, words) in steps {
        node.advance(at);
        instruct(&mut node, &package, &words);
    }
    Played {
        events: node.take_events(),
        node,
    }
}

#[track_caller]
fn instruct(node: &mut Node, package: &PackageKey, words: &[&str]) {
    match *words {
        [] => {}
        ["place", name, ref how @ ..] => {
            let mut placement = Placement::new(replica(name), package.clone(), "T");
            match how {
                [] => {}
                ["existing"] => placement = placement.with_kind(ReplicaKind::Existing),
                ["persisted"] => placement = placement.persisted(),
                _ => panic!("{words:?}"),
            }
            node.place(placement).unwrap();
        }
        ["activate"] => node.activate(package).unwrap(),
        ["close", name] => node.close(&replica(name)).unwrap(),
        ["exit", code] => node
            .exit(&package.process("Code"), code.parse().unwrap())
            .unwrap(),
        ["restart"] => node.restart(),
        _ => panic!("no such instruction: {words:?}"),
    }
}

fn attempts(attempts: &mut Attempts, words: &[&str]) {
    match *words {
        ["takes", secs] => attempts.time = span(secs),
        ["errs", count] => attempts.internal_errors = count.parse().unwrap(),
        ["jitters", ref secs @ ..] => {
            attempts.jitter = secs.iter().map(|secs| span(secs)).collect()
        }
        ["fails", "always"] => attempts.failures = Failures::Always,
        ["fails", count] => attempts.failures = Failures::First(count.parse().unwrap()),
        _ => panic!("{words:?}"),
    }
}

/// Returns the events as single words.
pub(crate) fn outcome(events: &[Logged]) -> Vec<(Timestamp, String)> {
    events
        .iter()
        .filter_map(|logged| Some((logged.at, word(&logged.event)?)))
        .collect()
}

fn word(event: &Event) -> Option<String> {
    let target = |target: &DeactivationTarget| match target {
        DeactivationTarget::Application(_) => "application",
        DeactivationTarget::Package(_) => "package",
    };
    let phase = |phase: &Phase| match phase {
        Phase::Download => "download",
        Phase::Activation => "activation",
    };
    Some(match event {
        Event::ReplicaOpened { replica, .. } => format!("open:{}", replica.partition),
        Event::ReplicaDown { replica, .. } => format!("down:{}", replica.partition),
        Event::PlacementRejected { replica, .. } => format!("rejected:{}", replica.partition),
        Event::PlacementDeferred {
            replica,
            reason: Deferral::Closing,
            ..
        } => format!("rejected:{}", replica.partition),
        Event::PlacementDeferred {
            replica,
            reason: Deferral::TypeDisabled,
            ..
        } => {
            format!("put-off:{}", replica.partition)
        }
        Event::AttemptStarted { phase: of, .. } => phase(of).to_owned(),
        Event::OperationAbandoned { .. } => "give-up".to_owned(),
        Event::PackageActivated { .. } => "active".to_owned(),
        Event::ProcessStarted { .. } => "start".to_owned(),
        Event::ProcessExited { .. } => "exit".to_owned(),
        Event::FailuresForgotten { .. } => "reset".to_owned(),
        Event::TypeRegistered { .. } => "registered".to_owned(),
        Event::TypeUnregistered { .. } => "unregistered".to_owned(),
        Event::TypeRegistrationTimedOut { .. } => "timed-out".to_owned(),
        Event::TypeDisableScheduled { .. } => "scheduled".to_owned(),
        Event::TypeDisableCancelled { .. } => "cancelled".to_owned(),
        Event::TypeDisabled { .. } => "disabled".to_owned(),
        Event::TypeEnabled { .. } => "enabled".to_owned(),
        Event::DeactivationScheduled { target: of, .. } => format!("{}-scheduled", target(of)),
        Event::DeactivationCancelled { target: of } => format!("{}-kept", target(of)),
        Event::DeactivationStarted { target: of } => format!("{}-closing", target(of)),
        Event::Deactivated { target: of } => format!("{}-gone", target(of)),
        Event::DeactivationFailed { .. } => "deactivation-failed".to_owned(),
        Event::Health {
            property, report, ..
        } => {
            let about = property.split(':').next()?;
            match report {
                HealthReport::State {
                    state: HealthState::Ok,
                    ..
                } => format!("{about}:ok"),
                HealthReport::State {
                    state: HealthState::Warning,
                    ..
                } => format!("{about}:warning"),
                HealthReport::State {
                    state: HealthState::Error,
                    ..
                } => format!("{about}:error"),
                HealthReport::Removed => format!("{about}:removed"),
            }
        }
        _ => return None,
    })
}

pub(crate) fn replica(name: &str) -> ReplicaKey {
    ReplicaKey::new(name, 1)
}

fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split(';')
        .map(str::trim)
        .filter(|clause| !clause.is_empty())
}

fn span(secs: &str) -> Span {
    Span::parse(secs).unwrap()
}

pub(crate) fn moment(secs: &str) -> Timestamp {
    Timestamp::from_millis(span(secs).as_millis())
}

/// Returns a time without its unit, which is always seconds here.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.to_string().trim_end_matches('s').to_owned()
}
