use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::Failure;

/// The environment variable that holds a log filter.
const VARIABLE: &str = "RUST_LOG";

/// Logging to standard error, so that standard output is for machines.
#[derive(Clone, Debug)]
pub struct Logging {
    unset: &'static str,
    example: &'static str,
    filter: Option<String>,
    is_json: bool,
}

impl Logging {
    /// Creates logging as text. `unset` is the filter when neither [`with_filter`](Self::with_filter) nor `RUST_LOG` gives
    /// one; `example` is the filter that the message about a wrong one suggests.
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

    /// Sets whether each event is a line of JSON. Default: false.
    #[must_use]
    pub fn with_json(mut self, is_json: bool) -> Self {
        self.is_json = is_json;
        self
    }

    /// Starts logging for the life of the process. Call it once: a second call panics.
    ///
    /// # Errors
    ///
    /// A failure that names the filter if it cannot be parsed.
    pub fn start(self) -> Result<(), Failure> {
        let filter = self.env_filter(std::env::var(VARIABLE).ok())?;
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr);
        if self.is_json {
            subscriber.json().init();
        } else {
            subscriber.with_ansi(io::stderr().is_terminal()).init();
        }
        Ok(())
    }

    fn env_filter(&self, variable: Option<String>) -> Result<EnvFilter, Failure> {
        let (chosen, origin) = match (&self.filter, variable) {
            (Some(filter), _) => (filter.clone(), "of the configuration"),
            (None, Some(filter)) => (filter, "in RUST_LOG"),
            (None, None) => (self.unset.to_owned(), "by default"),
        };
        EnvFilter::try_new(&chosen).map_err(|error| {
            Failure::new(format!(
                "`{chosen}` {origin} is not a log filter: {error}; write for example `{}`",
                self.example
            ))
        })
    }
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
        let logging = Logging::new("warn", "info");
        assert_eq!(chosen(&logging, None).unwrap(), "warn");
        assert_eq!(chosen(&logging, Some("debug")).unwrap(), "debug");
        let logging = logging.with_filter(Some("error".to_owned()));
        assert_eq!(chosen(&logging, Some("debug")).unwrap(), "error");
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
