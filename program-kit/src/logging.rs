use std::io::{self, IsTerminal};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::sink::{self, EventLine};
use crate::{Failure, panics};

/// The environment variable that holds a log filter.
const VARIABLE: &str = "RUST_LOG";

/// The prefixes of this project's own log targets.
const OWN: [&str; 6] = [
    "azure",
    "discovery",
    "program",
    "proxy",
    "servicefabric",
    "xds",
];

/// Logging to standard error, so that standard output is for machines.
///
/// A separate thread writes: if standard error is read too slowly, lines are dropped and counted, and no
/// caller waits. An event is one line, whatever its values contain.
///
/// `info` and `warn` without a target apply to this project's own targets. Foreign crates are at `error`
/// then, since some log a line for each frame that a stranger sends. A filter that names their target, or
/// `debug` and `trace`, enables more.
#[derive(Clone, Debug)]
pub struct Logging {
    unset: &'static str,
    example: &'static str,
    filter: Option<String>,
    is_json: bool,
}

impl Logging {
    /// Creates logging as text. `unset` is the filter if neither [`with_filter`](Self::with_filter) nor
    /// `RUST_LOG` sets one; `example` is the filter that the message about an invalid one suggests.
    pub fn new(unset: &'static str, example: &'static str) -> Self {
        Self {
            unset,
            example,
            filter: None,
            is_json: false,
        }
    }

    /// Sets a filter that takes precedence over `RUST_LOG`. Default: none.
    #[must_use]
    pub fn with_filter(mut self, filter: Option<String>) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the format: with true, each event is a line of JSON. Default: false.
    #[must_use]
    pub fn with_json(mut self, is_json: bool) -> Self {
        self.is_json = is_json;
        self
    }

    /// Checks the filter without starting anything.
    ///
    /// # Errors
    ///
    /// A failure that names the filter if it cannot be parsed.
    pub fn check(&self) -> Result<(), Failure> {
        self.env_filter(std::env::var(VARIABLE).ok()).map(|_| ())
    }

    /// Starts logging for the life of the process. Returns what changes the filter while it runs. Call it
    /// once: a second call panics.
    ///
    /// # Errors
    ///
    /// A failure that names the filter if it cannot be parsed.
    pub fn start(self) -> Result<LogControl, Failure> {
        let filter = self.env_filter(std::env::var(VARIABLE).ok())?;
        let is_coloured = io::stderr().is_terminal() && !self.is_json;
        sink::start(self.is_json, is_coloured)
            .map_err(|error| Failure::new(format!("there is no thread for the log: {error}")))?;
        panics::report_in_log();
        let (filter, handle) = reload::Layer::new(filter);
        let filtered = tracing_subscriber::registry().with(filter);
        let lines = fmt::layer().with_writer(|| EventLine);
        if self.is_json {
            filtered.with(lines.json()).init();
        } else {
            filtered.with(lines.with_ansi(is_coloured)).init();
        }
        Ok(LogControl {
            logging: self,
            handle,
        })
    }

    /// The filter that applies, and where it is from.
    fn chosen(&self, variable: Option<String>) -> (String, &'static str) {
        match (&self.filter, variable) {
            (Some(filter), _) => (filter.clone(), "of the configuration"),
            (None, Some(filter)) => (filter, "in RUST_LOG"),
            (None, None) => (self.unset.to_owned(), "by default"),
        }
    }

    fn env_filter(&self, variable: Option<String>) -> Result<EnvFilter, Failure> {
        let (chosen, origin) = self.chosen(variable);
        let is_not_a_filter = |error: &dyn std::fmt::Display| {
            Failure::new(format!(
                "`{chosen}` {origin} is not a log filter: {error}; write for example `{}`",
                self.example
            ))
        };
        let chosen = without_spaces(&chosen);
        check_words(&chosen).map_err(|error| is_not_a_filter(&error))?;
        // Values of fields would be regular expressions, which can take any time and memory to compile.
        let filter = EnvFilter::builder().with_regex(false);
        filter
            .parse(of_this_project(&chosen))
            .map_err(|error| is_not_a_filter(&error))
    }
}

/// The log of this process, whose filter can be changed while it runs.
#[derive(Debug)]
pub struct LogControl {
    logging: Logging,
    handle: reload::Handle<EnvFilter, Registry>,
}

impl LogControl {
    /// Returns the filter that applies, as it was written.
    pub fn filter(&self) -> String {
        self.logging.chosen(std::env::var(VARIABLE).ok()).0
    }

    /// Checks a filter without applying it.
    ///
    /// # Errors
    ///
    /// As for [`set_filter`](Self::set_filter).
    pub fn check_filter(&self, filter: Option<String>) -> Result<(), Failure> {
        let logging = self.logging.clone().with_filter(filter);
        logging.env_filter(std::env::var(VARIABLE).ok()).map(drop)
    }

    /// Applies another filter; `None` stands for `RUST_LOG` or the program's own default.
    ///
    /// # Errors
    ///
    /// A failure that names the filter if it cannot be parsed. The filter before it stays.
    pub fn set_filter(&mut self, filter: Option<String>) -> Result<(), Failure> {
        let logging = self.logging.clone().with_filter(filter);
        let filter = logging.env_filter(std::env::var(VARIABLE).ok())?;
        self.handle
            .reload(filter)
            .map_err(|error| Failure::new(format!("the log filter cannot be changed: {error}")))?;
        self.logging = logging;
        Ok(())
    }
}

/// The levels of a log filter.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Levels of other loggers, and the level that they stand for here.
const FOREIGN_LEVELS: [(&str, &str); 10] = [
    ("none", "off"),
    ("critical", "error"),
    ("fatal", "error"),
    ("err", "error"),
    ("warning", "warn"),
    ("information", "info"),
    ("notice", "info"),
    ("inf", "info"),
    ("verbose", "trace"),
    ("all", "trace"),
];

/// Returns a filter without the spaces that people write behind commas. Values of fields may contain some.
fn without_spaces(filter: &str) -> String {
    match filter.contains('[') {
        true => filter.to_owned(),
        false => filter
            .split(',')
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(","),
    }
}

/// Rejects a word that is neither a level nor a target of this project.
///
/// `EnvFilter` takes any other word for a target whose lines are all logged, and logs nothing else: `warning`
/// would silence the program.
fn check_words(filter: &str) -> Result<(), String> {
    let directives = filter.split(',').map(str::trim);
    for directive in directives.filter(|directive| !directive.is_empty()) {
        // Spans and fields may contain nearly anything; the parser of the filter reads them.
        if directive.contains('[') {
            continue;
        }
        let (word, level) = match directive.split_once('=') {
            Some((target, level)) => (target, Some(level)),
            None => (directive, None),
        };
        if let Some(odd) = word.chars().find(|c| !is_of_target(*c)) {
            return Err(format!(
                "`{word}` contains {odd:?}; directives are separated by commas"
            ));
        }
        match level {
            // A number from 0 to 5 is a level, too.
            Some("") => return Err(format!("a level is missing in `{directive}`")),
            Some(level) if !is_level(level) => return Err(no_level(level)),
            None if !is_level(word) && !is_own(word) => {
                let whole = format!("for all lines of a target of that name write `{word}=trace`");
                return Err(format!("{}; {whole}", no_level(word)));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_of_target(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-:./".contains(character)
}

fn is_level(word: &str) -> bool {
    let is_number = matches!(word, "0" | "1" | "2" | "3" | "4" | "5");
    is_number || LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level))
}

fn is_own(target: &str) -> bool {
    let first = target.split("::").next().unwrap_or_default();
    OWN.contains(&first)
}

fn no_level(word: &str) -> String {
    let meant = FOREIGN_LEVELS
        .iter()
        .find(|(foreign, _)| word.eq_ignore_ascii_case(foreign));
    match meant {
        Some((_, level)) => format!("`{word}` is no level; did you mean `{level}`?"),
        None => format!("`{word}` is no level; levels are {}", LEVELS.join(", ")),
    }
}

/// Returns a filter whose plain `info` and `warn` apply to the targets of this project alone.
fn of_this_project(filter: &str) -> String {
    let is_capped = |directive: &&str| {
        let level = directive.trim();
        level.eq_ignore_ascii_case("info") || level.eq_ignore_ascii_case("warn")
    };
    let (capped, others): (Vec<_>, Vec<_>) = filter.split(',').partition(is_capped);
    // In any filter, the last of several levels without a target counts.
    let Some(level) = capped.last() else {
        return filter.to_owned();
    };
    let own = OWN.map(|target| format!("{target}={}", level.trim()));
    // A later directive takes precedence, so those for a single target come last.
    let mut directives = vec!["error".to_owned()];
    directives.extend(own);
    directives.extend(others.into_iter().map(str::to_owned));
    directives.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(logging: &Logging, variable: Option<&str>) -> Result<String, String> {
        logging
            .env_filter(variable.map(str::to_owned))
            .map(|filter| filter.to_string())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_configuration_goes_before_the_environment_and_that_before_the_default() {
        let logging = Logging::new("off", "info");
        assert_eq!(chosen(&logging, None).unwrap(), "off");
        assert_eq!(chosen(&logging, Some("debug")).unwrap(), "debug");
        let logging = logging.with_filter(Some("error".to_owned()));
        assert_eq!(chosen(&logging, Some("debug")).unwrap(), "error");
    }

    #[test]
    fn values_of_fields_are_no_regular_expressions() {
        // As an expression this one has more states than memory.
        let value = format!("(a|b)*a{}", "(a|b)".repeat(40));
        let logging =
            Logging::new("info", "info").with_filter(Some(format!("[{{f={value}}}]=debug")));
        chosen(&logging, None).unwrap();
    }

    #[test]
    fn foreign_crates_are_capped_unless_they_are_named() {
        let is_logged = |filter: &str, directive: &str| {
            let filter = EnvFilter::new(of_this_project(filter)).to_string();
            filter.split(',').any(|part| part == directive)
        };
        for filter in ["info", "INFO", "info,proxy::request=debug"] {
            assert!(is_logged(filter, "error"), "{filter}");
            assert!(is_logged(filter, "proxy=info"), "{filter}");
        }
        assert!(is_logged("info,h2=warn", "h2=warn"));
        assert!(is_logged("proxy=debug,info", "proxy=debug"));
        assert!(!is_logged("proxy=debug,info", "proxy=info"));
        for filter in ["debug", "trace", "off", "h2=warn"] {
            assert_eq!(of_this_project(filter), filter);
        }
    }

    #[test]
    fn words_that_would_silence_the_log_are_rejected() {
        let logging = Logging::new("info", "info,proxy=debug");
        for (filter, expected) in [
            ("warning", "`warning` is no level; did you mean `warn`?"),
            ("Information", "did you mean `info`?"),
            ("verbose", "did you mean `trace`?"),
            ("None", "did you mean `off`?"),
            ("inf", "did you mean `info`?"),
            ("info,Critical", "did you mean `error`?"),
            ("loud", "levels are off, error, warn, info, debug, trace"),
            (
                "hyper",
                "for all lines of a target of that name write `hyper=trace`",
            ),
            ("info;proxy=debug", "directives are separated by commas"),
            ("info proxy=debug", "directives are separated by commas"),
            ("proxy=Warning", "did you mean `warn`?"),
            ("proxy:debug", "`proxy:debug` is no level"),
        ] {
            let message = chosen(&logging, Some(filter)).unwrap_err();
            assert!(message.contains(expected), "{filter}: {message}");
        }
        for filter in [
            "info",
            "WARN",
            "Off",
            "proxy",
            "proxy::health",
            "xds::client=debug",
            "h2=warn",
            "3",
            "proxy=2",
            "info, proxy=debug",
            "info,",
            "",
            "proxy[request{id=\"a b\"}]=trace",
        ] {
            assert!(chosen(&logging, Some(filter)).is_ok(), "{filter}");
        }
    }

    #[test]
    fn a_wrong_filter_is_named_with_its_origin_and_an_example() {
        let logging = Logging::new("warn", "info,xds=debug");
        let message = chosen(&logging, Some("=x=")).unwrap_err();
        assert!(
            message.starts_with("`=x=` in RUST_LOG is not a log filter: "),
            "{message}"
        );
        assert!(
            message.ends_with("; write for example `info,xds=debug`"),
            "{message}"
        );
    }
}
