//! Announcements of agents on the destinations, in the protocol of HAProxy's `agent-check`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use discovery_core::Timestamp;
use parking_lot::Mutex;

/// Most bytes of a line.
pub(crate) const LONGEST_LINE: usize = 1024;
/// Most characters of a reason or a word that are kept.
const KEPT: usize = 128;
/// The greatest percentage that counts. That of HAProxy as well.
const MOST_PERCENT: u32 = 25_600;
/// The greatest absolute weight.
const MOST_WEIGHT: u32 = 256;

/// The weight of a destination by its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentWeight {
    /// A percentage of the configured weight.
    Percent(u32),
    /// A number in place of the configured weight.
    Absolute(u32),
}

impl AgentWeight {
    /// `None` for text that is no weight.
    fn parse(text: &str) -> Option<Self> {
        let (digits, is_percent) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let number = number(digits)?;
        match is_percent {
            true => Some(Self::Percent(number.min(MOST_PERCENT))),
            false => (number <= MOST_WEIGHT).then_some(Self::Absolute(number)),
        }
    }

    /// The weight in hundredths, of a destination with this configured weight.
    pub(crate) fn hundredths(self, configured: u32) -> u32 {
        match self {
            Self::Percent(percent) => configured.saturating_mul(percent),
            Self::Absolute(weight) => weight * 100,
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Self::Percent(0) | Self::Absolute(0))
    }
}

impl fmt::Display for AgentWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Absolute(weight) => weight.fmt(f),
        }
    }
}

/// The administrative state of a destination by its agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AgentMode {
    /// The destination takes requests.
    #[default]
    Ready,
    /// The destination keeps clients with affinity, and gets no others.
    Drain,
    /// The destination gets no requests.
    Maintenance,
}

impl AgentMode {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Drain => "drain",
            Self::Maintenance => "maint",
        }
    }
}

/// The words of an agent that are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentWords {
    /// The last word for the health: `up`, `down`, `fail` or `stopped`.
    pub(crate) health: Option<&'static str>,
    pub(crate) mode: AgentMode,
    pub(crate) weight: Option<AgentWeight>,
    /// The most connections; 0 is no limit.
    pub(crate) max_connections: Option<u32>,
}

impl AgentWords {
    pub(crate) fn is_up(&self) -> bool {
        self.health == Some("up")
    }

    pub(crate) fn is_down(&self) -> bool {
        self.health.is_some() && !self.is_up()
    }

    pub(crate) fn is_in_maintenance(&self) -> bool {
        self.mode == AgentMode::Maintenance
    }

    /// True if the destination gets no clients but those that it has.
    pub(crate) fn drains(&self) -> bool {
        self.mode == AgentMode::Drain || self.weight.is_some_and(AgentWeight::is_zero)
    }
}

/// The content of one line of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) health: Option<&'static str>,
    pub(crate) mode: Option<AgentMode>,
    pub(crate) weight: Option<AgentWeight>,
    pub(crate) max_connections: Option<u32>,
    /// The text after `#`.
    pub(crate) reason: Option<String>,
    /// The first word that is none.
    pub(crate) unknown: Option<String>,
}

impl Announcement {
    /// Reads a line, which is without its end.
    pub(crate) fn parse(line: &[u8]) -> Self {
        let line = String::from_utf8_lossy(line);
        let mut said = Self::default();
        let mut rest = &*line;
        loop {
            rest = rest.trim_start_matches(SEPARATORS);
            if rest.is_empty() {
                return said;
            }
            // A `#` within a word is a part of it, as it is for HAProxy.
            if let Some(reason) = rest.strip_prefix('#') {
                said.reason = Some(shown(reason.trim())).filter(|reason| !reason.is_empty());
                return said;
            }
            let end = rest.find(SEPARATORS).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if !said.take(word) && said.unknown.is_none() {
                said.unknown = Some(shown(word));
            }
            rest = after;
        }
    }

    /// Returns false for a word that is none. The last of a kind counts.
    fn take(&mut self, word: &str) -> bool {
        const HEALTH: [&str; 4] = ["up", "down", "fail", "stopped"];
        const MODES: [AgentMode; 3] = [AgentMode::Ready, AgentMode::Drain, AgentMode::Maintenance];
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if let Some(health) = HEALTH.into_iter().find(|health| is(health)) {
            self.health = Some(health);
            return true;
        }
        if let Some(mode) = MODES.into_iter().find(|mode| is(mode.word())) {
            self.mode = Some(mode);
            return true;
        }
        if let Some(text) = after(word, "maxconn:") {
            // The last word counts, even if it has no meaning. So it does for HAProxy.
            self.max_connections = number(text);
            return self.max_connections.is_some();
        }
        let text = match after(word, "weight:") {
            Some(text) => text,
            // Without its name a weight needs the sign.
            None if word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('%') => word,
            None => return false,
        };
        self.weight = AgentWeight::parse(text);
        self.weight.is_some()
    }
}

const SEPARATORS: [char; 3] = [' ', '\t', ','];

/// The rest of a word that begins with `name`, whatever its case.
fn after<'w>(word: &'w str, name: &str) -> Option<&'w str> {
    let (begin, rest) = word.split_at_checked(name.len())?;
    begin.eq_ignore_ascii_case(name).then_some(rest)
}

/// The number of digits alone.
fn number(text: &str) -> Option<u32> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

/// The beginning of a text of an agent, without control characters.
fn shown(text: &str) -> String {
    let clean = text.chars().filter(|c| !c.is_control());
    clean.take(KEPT).collect()
}

/// A change of what counts, for the log.
#[derive(Clone, Debug)]
pub(crate) struct AgentChange {
    pub(crate) before: AgentWords,
    pub(crate) now: AgentWords,
    pub(crate) reason: Option<Arc<str>>,
}

/// The words of the agent of one destination, and the result of the last check.
#[derive(Debug)]
pub(crate) struct AgentState {
    record: Mutex<AgentRecord>,
    /// The most connections, for requests that need a new one: `NO_WORD` if the agent has said nothing of them.
    max_connections: AtomicU64,
}

const NO_WORD: u64 = u64::MAX;

impl Default for AgentState {
    fn default() -> Self {
        Self {
            record: Mutex::default(),
            max_connections: AtomicU64::new(NO_WORD),
        }
    }
}

/// The history behind the words of an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentRecord {
    pub(crate) words: AgentWords,
    /// The time of the last change.
    pub(crate) since: Option<Timestamp>,
    /// The text that came with the last word for the health.
    pub(crate) reason: Option<Arc<str>>,
    /// Number of checks that have ended.
    pub(crate) checks: u64,
    /// The line of the last check, or the reason why there is none.
    pub(crate) last: Option<Arc<str>>,
}

impl AgentState {
    pub(crate) fn words(&self) -> AgentWords {
        self.record.lock().words
    }

    pub(crate) fn record(&self) -> AgentRecord {
        self.record.lock().clone()
    }

    /// The most connections, if the agent has said a number; `u32::MAX` is no limit.
    pub(crate) fn max_connections(&self) -> Option<u32> {
        match self.max_connections.load(Ordering::Relaxed) {
            0 => Some(u32::MAX),
            number => u32::try_from(number).ok(),
        }
    }

    /// Records a line, and returns the change, if it is one.
    pub(crate) fn heard(&self, line: &[u8], said: Announcement) -> Option<AgentChange> {
        let mut record = self.record.lock();
        record.checks += 1;
        record.last = Some(shown(&String::from_utf8_lossy(line)).into());
        let before = record.words;
        let now = AgentWords {
            health: said.health.or(before.health),
            mode: said.mode.unwrap_or(before.mode),
            weight: said.weight.or(before.weight),
            max_connections: said.max_connections.or(before.max_connections),
        };
        if said.health.is_some() {
            record.reason = said.reason.map(Arc::from);
        }
        if now == before {
            return None;
        }
        record.words = now;
        record.since = Some(Timestamp::now());
        let limit = now.max_connections.map_or(NO_WORD, u64::from);
        self.max_connections.store(limit, Ordering::Relaxed);
        Some(AgentChange {
            before,
            now,
            reason: record.reason.clone(),
        })
    }

    /// Records a check without a line, which changes nothing.
    pub(crate) fn missed(&self, why: &str) {
        let mut record = self.record.lock();
        record.checks += 1;
        record.last = Some(shown(why).into());
    }
}

#[cfg(test)]
mod tests {
    use super::AgentMode::{Drain, Maintenance, Ready};
    use super::AgentWeight::{Absolute, Percent};
    use super::*;

    #[test]
    fn words_come_in_any_order_and_the_last_of_a_kind_counts() {
        let said = |health, mode, weight, max_connections| Announcement {
            health,
            mode,
            weight,
            max_connections,
            ..Announcement::default()
        };
        for (line, expected) in [
            ("", said(None, None, None, None)),
            (" \t,, ", said(None, None, None, None)),
            ("up", said(Some("up"), None, None, None)),
            ("UP Ready", said(Some("up"), Some(Ready), None, None)),
            (
                "ready,up\t75%",
                said(Some("up"), Some(Ready), Some(Percent(75)), None),
            ),
            ("maxconn:30 drain", said(None, Some(Drain), None, Some(30))),
            ("weight:20", said(None, None, Some(Absolute(20)), None)),
            ("Weight:120%", said(None, None, Some(Percent(120)), None)),
            ("99999%", said(None, None, Some(Percent(25_600)), None)),
            ("drain maint", said(None, Some(Maintenance), None, None)),
            (
                "up down 10% 0%",
                said(Some("down"), None, Some(Percent(0)), None),
            ),
            ("stopped", said(Some("stopped"), None, None, None)),
            ("MAXCONN:0", said(None, None, None, Some(0))),
        ] {
            assert_eq!(Announcement::parse(line.as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn a_reason_follows_a_sharp_and_unknown_words_are_left_out() {
        let said = Announcement::parse(b"down # disk, is \x07full ");
        assert_eq!(
            (said.health, said.reason.as_deref()),
            (Some("down"), Some("disk, is full"))
        );
        let said = Announcement::parse(b"fail #");
        assert_eq!((said.health, said.reason), (Some("fail"), None));
        for unknown in [
            "up#x",
            "75",
            "weight:",
            "weight:257",
            "weight:-1",
            "weight:5x",
            "maxconn:",
            "maxconn:-1",
            "maxconn:+1",
            "maxconn:4294967296",
            "%",
            "-5%",
            "+5%",
            "5%5",
            "drained",
            "weight",
            "\u{fffd}",
        ] {
            let said = Announcement::parse(format!("{unknown} ready other").as_bytes());
            assert_eq!(said.unknown.as_deref(), Some(unknown));
            let others = Announcement {
                unknown: None,
                ..said
            };
            let ready = Announcement {
                mode: Some(Ready),
                ..Announcement::default()
            };
            assert_eq!(others, ready, "{unknown}");
        }
        let said = Announcement::parse(b"50% 30%x maxconn:5 maxconn:x");
        assert_eq!((said.weight, said.max_connections), (None, None));
        assert_eq!(said.unknown.as_deref(), Some("30%x"));
        let said = Announcement::parse(format!("down #{}", "x".repeat(1000)).as_bytes());
        assert_eq!(said.reason.unwrap().len(), KEPT);
    }

    #[test]
    fn what_a_line_does_not_have_stays() {
        let state = AgentState::default();
        let hear = |line: &str| state.heard(line.as_bytes(), Announcement::parse(line.as_bytes()));
        assert_eq!(state.max_connections(), None);
        let change = hear("down 50% maxconn:3 drain #why").unwrap();
        assert_eq!(change.reason.as_deref(), Some("why"));
        let first = state.words();
        assert!(first.is_down() && first.drains());
        assert_eq!(state.max_connections(), Some(3));
        assert!(hear("").is_none() && hear("drain").is_none() && hear("nonsense").is_none());
        state.missed("connection refused");
        assert_eq!(state.words(), first);
        let record = state.record();
        assert_eq!(
            (record.checks, record.last.as_deref()),
            (5, Some("connection refused"))
        );
        hear("ready").unwrap();
        hear("up").unwrap();
        hear("0%").unwrap();
        hear("maxconn:0").unwrap();
        let words = state.words();
        assert!(words.is_up() && words.drains() && words.mode == Ready);
        assert_eq!(state.max_connections(), Some(u32::MAX));
        assert_eq!(state.record().reason, None);
    }
}
