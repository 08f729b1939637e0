//! Scripts of the hosting life cycle.

use servicefabric_emulator::hosting::Timestamp;
use servicefabric_emulator::timeline::{Script, Timeline};

use crate::input::text;

/// Maximum duration of a script. Repeated events occur often enough within it.
const LONGEST: Timestamp = Timestamp::from_secs(2 * 3_600);

/// Fuzzes a script: JSON if it begins with a brace, otherwise TOML.
///
/// * Two readings give the same result. Each problem has a line of the text and a description.
/// * Two runs give the same events, as text and as JSON.
/// * Events are in the order of time. None is after the end.
pub fn emulator_timeline(data: &[u8]) {
    let text = text(data);
    let script = match Script::read(&text) {
        Ok(script) => script,
        Err(errors) => {
            assert_eq!(Script::read(&text), Err(errors.clone()));
            assert!(!errors.problems().is_empty());
            let lines = text.lines().count() + 1;
            for problem in errors.problems() {
                assert!(!problem.message.is_empty(), "{problem:?}");
                assert!(
                    problem.line.is_none_or(|line| (1..=lines).contains(&line)),
                    "{problem}"
                );
            }
            return;
        }
    };
    let again = Script::read(&text).expect("it was read before");
    assert_eq!(format!("{script:?}"), format!("{again:?}"));
    if script.until() > LONGEST {
        return;
    }
    let timeline = script.run();
    check_order(&timeline);
    let once_more = again.run();
    assert_eq!(timeline.to_string(), once_more.to_string());
    let json = |timeline| serde_json::to_string(timeline).expect("keys are texts");
    assert_eq!(json(&timeline), json(&once_more));
}

fn check_order(timeline: &Timeline) {
    assert!(timeline.log.is_sorted_by_key(|entry| entry.at()));
    assert!(timeline.states.is_sorted_by_key(|state| state.at));
    let last = timeline.log.last().map(|entry| entry.at());
    let ends = [
        last,
        timeline.states.last().map(|state| state.at),
        timeline.cut_off_at,
    ];
    for end in ends.into_iter().flatten() {
        assert!(end <= timeline.until, "{end} is after {}", timeline.until);
    }
}
