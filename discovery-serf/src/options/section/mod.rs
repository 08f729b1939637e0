//! The section `SerfDiscovery` of a configuration.

mod lists;
mod services;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use proxy_model::Problem;
use proxy_model::json::ObjectReader;

use self::lists::{read_agents, read_networks, read_services};
use self::services::read_generate;
use super::{HoldOptions, KeyFileError, SerfOptions, read_key};
use crate::catalog::CatalogOptions;
use crate::client::AuthKey;
use crate::discoverer::SerfDiscoverer;

/// The allowed range of periods. Shorter ones would be a busy loop, longer ones have no use.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);

/// The allowed range of pauses, which may be zero.
const PAUSES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(86_400);

/// The section `SerfDiscovery`.
///
/// | key | sets |
/// |---|---|
/// | `Agents` | [`SerfOptions::agents`] |
/// | `AuthKey`, `AuthKeyFile` | what the agents demand: the key, or a file that has it |
/// | `ReconcileInterval`, `Debounce`, `DebounceMax`, `ConnectTimeout`, `RequestTimeout` | times of [`SerfOptions`] |
/// | `HoldDown.{Share, Settle, Recheck}` | [`HoldOptions`] |
/// | `PrefilterMembers`, `AllowStartBeforeDiscovery`, `Persist` | the same of [`SerfOptions`] |
/// | `MaxFrameSize` | [`SerfOptions::max_frame`], in bytes |
/// | `AllowedServices`, `AllowedNetworks`, `KeepEmptyServices`, `LegacyBackend` | [`CatalogOptions`] |
/// | `LoadBalancingPolicy`, `HealthCheck.{Enabled, Interval, Timeout, Path}` | [`GenerateOptions`] |
/// | `WeightStrategy`, `VersionHeader`, `RegionHeader`, `InformationalTags` | [`GenerateOptions`] |
///
/// [`GenerateOptions`]: crate::generate::GenerateOptions
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Section {
    /// The options of discovery.
    pub options: SerfOptions,
}

/// The reason why there is no discoverer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The file with the agents' key cannot be used.
    #[error("there is no key to show to the agents")]
    Key(#[from] KeyFileError),
}

impl Section {
    /// Reads the section. Invalid values are added to the reader's problems and stay at their default.
    pub fn read(section: &mut ObjectReader<'_, '_>) -> Self {
        let unset = SerfOptions::default();
        let (auth_key, auth_key_file) = read_auth(section);
        let options = SerfOptions {
            name: unset.name,
            agents: read_agents(section).unwrap_or(unset.agents),
            auth_key,
            auth_key_file,
            reconcile_interval: time(section, "ReconcileInterval", &PERIODS)
                .unwrap_or(unset.reconcile_interval),
            debounce: time(section, "Debounce", &PAUSES).unwrap_or(unset.debounce),
            debounce_max: time(section, "DebounceMax", &PAUSES).unwrap_or(unset.debounce_max),
            connect_timeout: time(section, "ConnectTimeout", &PERIODS)
                .unwrap_or(unset.connect_timeout),
            request_timeout: time(section, "RequestTimeout", &PERIODS)
                .unwrap_or(unset.request_timeout),
            max_frame: section
                .integer("MaxFrameSize", 65_536..=1_073_741_824_u32)
                .and_then(|bytes| bytes.try_into().ok())
                .unwrap_or(unset.max_frame),
            hold: section.object("HoldDown", read_hold).unwrap_or_default(),
            prefilter_members: section
                .boolean("PrefilterMembers")
                .unwrap_or(unset.prefilter_members),
            allow_start_before_discovery: section
                .boolean("AllowStartBeforeDiscovery")
                .unwrap_or(unset.allow_start_before_discovery),
            persist: section.text("Persist").map(PathBuf::from),
            catalog: read_catalog(section),
            generate: read_generate(section),
        };
        warn_of_what_does_nothing(section, &options);
        Self { options }
    }

    /// Creates a discoverer. The file with the key is read as a check, but no agent is polled yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the file with the key cannot be used.
    pub fn connect(&self) -> Result<SerfDiscoverer, ConnectError> {
        if let Some(path) = &self.options.auth_key_file {
            read_key(path)?;
        }
        Ok(SerfDiscoverer::new(self.options.clone()))
    }
}

fn read_auth(section: &mut ObjectReader<'_, '_>) -> (Option<AuthKey>, Option<PathBuf>) {
    let key = section.text("AuthKey");
    let file = section.text("AuthKeyFile");
    let mut report = |key: &str, code: &'static str, message: &str, suggestion: &str| {
        let problem = Problem::error(section.pointer_to(key), code, message);
        section
            .problems()
            .push(problem.with_suggestion(suggestion.to_owned()));
    };
    if key.as_deref().is_some_and(|key| key.trim().is_empty()) {
        let suggestion = "remove `AuthKey` if the agents demand none";
        report("AuthKey", "empty_key", "the key is empty", suggestion);
    }
    if file.as_deref().is_some_and(|file| file.trim().is_empty()) {
        let suggestion = "remove `AuthKeyFile` if the agents demand no key";
        report("AuthKeyFile", "empty_path", "no file is named", suggestion);
    }
    if key.is_some() && file.is_some() {
        let message = "the key comes from `AuthKey` or from `AuthKeyFile`, not from both";
        let suggestion = "keep `AuthKeyFile`, so that no secret is in the configuration";
        report("AuthKey", "conflicting_keys", message, suggestion);
    }
    (key.map(AuthKey::from), file.map(PathBuf::from))
}

fn read_hold(hold: &mut ObjectReader<'_, '_>) -> HoldOptions {
    let unset = HoldOptions::default();
    let share = hold.number("Share").filter(|share| {
        let is_share = *share > 0.0 && *share <= 1.0;
        if !is_share {
            let message = "`Share` is above 0 and up to 1, which is all instances";
            let problem = Problem::error(hold.pointer_to("Share"), "out_of_range", message);
            hold.problems().push(problem);
        }
        is_share
    });
    HoldOptions {
        share: share.unwrap_or(unset.share),
        settle: time(hold, "Settle", &PAUSES).unwrap_or(unset.settle),
        recheck: time(hold, "Recheck", &PERIODS).unwrap_or(unset.recheck),
    }
}

fn read_catalog(section: &mut ObjectReader<'_, '_>) -> CatalogOptions {
    let unset = CatalogOptions::default();
    CatalogOptions {
        allowed_services: read_services(section),
        allowed_networks: read_networks(section).unwrap_or_default(),
        keep_empty_services: section
            .boolean("KeepEmptyServices")
            .unwrap_or(unset.keep_empty_services),
        legacy_backend: section
            .boolean("LegacyBackend")
            .unwrap_or(unset.legacy_backend),
    }
}

/// Warns of settings that other settings make useless.
fn warn_of_what_does_nothing(section: &mut ObjectReader<'_, '_>, options: &SerfOptions) {
    let mut ineffective = Vec::new();
    if options.debounce_max < options.debounce {
        let message = "`DebounceMax` is shorter than `Debounce`, so it alone decides";
        ineffective.push(("DebounceMax", message));
    }
    let legacy = options.catalog.legacy_backend && section.peek("LegacyBackend").is_some();
    if options.prefilter_members && legacy {
        let message = "`PrefilterMembers` leaves out the members that `LegacyBackend` is about";
        ineffective.push(("LegacyBackend", message));
    }
    for (key, message) in ineffective {
        let problem = Problem::warning(section.pointer_to(key), "ineffective_setting", message);
        section.problems().push(problem);
    }
}

/// A length of time in a range.
fn time(
    section: &mut ObjectReader<'_, '_>,
    key: &'static str,
    range: &RangeInclusive<Duration>,
) -> Option<Duration> {
    let time = Duration::from(section.time_span(key)?);
    if range.contains(&time) {
        return Some(time);
    }
    let message = format!(
        "`{key}` is not between {:?} and {} days",
        range.start(),
        range.end().as_secs() / 86_400
    );
    let problem = Problem::error(section.pointer_to(key), "out_of_range", message);
    section.problems().push(problem);
    None
}

#[cfg(test)]
mod tests;
