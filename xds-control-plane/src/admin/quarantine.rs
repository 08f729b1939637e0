use serde::Serialize;

/// The services that are kept from being served, as reported by the maker of the snapshots.
pub trait Quarantine: Send + Sync + 'static {
    /// Returns the services that are not served as requested.
    fn entries(&self) -> Vec<QuarantineEntry>;

    /// Returns all findings that need attention.
    fn warnings(&self) -> Vec<WarningEntry> {
        Vec::new()
    }

    /// The sources without which nothing is served, and that have not been read yet.
    fn waiting_for(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A service that is not served as requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantineEntry {
    /// The owner: the source, and its name of the service.
    pub owner: String,
    /// All problems, with their corrections.
    pub reasons: Vec<String>,
    /// True if its last known good form is served meanwhile.
    #[serde(rename = "serves_last_good")]
    pub serves_last_known_good: bool,
}

/// A finding that needs attention: a service that is not served as requested, or a source that cannot be
/// read or has unusable content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WarningEntry {
    /// The owner: the source, and its name of the service if the finding is about one.
    pub owner: String,
    /// A code that does not change, for alarms.
    pub code: String,
    /// A description of the finding, and of the action taken.
    pub message: String,
}
