use serde::Serialize;

/// What is kept from being served, as the maker of the snapshots knows it.
pub trait Quarantine: Send + Sync + 'static {
    /// The services that are not served as they want to be.
    fn entries(&self) -> Vec<QuarantineEntry>;

    /// All that somebody should look at.
    fn warnings(&self) -> Vec<WarningEntry> {
        Vec::new()
    }

    /// The sources without which nothing is served, and that have not been read yet.
    fn waiting_for(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A service that is not served as it wants to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantineEntry {
    /// Whose it is: the source, and what it calls the service.
    pub owner: String,
    /// All that is wrong, and how it can be mended.
    pub reasons: Vec<String>,
    /// Whether its last good form is served meanwhile.
    pub serves_last_good: bool,
}

/// Something that somebody should look at: a service that is not served as it wants to be, or a source that cannot be read, or says
/// what cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WarningEntry {
    /// Whose it is: the source, and what it calls the service if it is of one.
    pub owner: String,
    /// A word for it that does not change, for alarms.
    pub code: String,
    /// What it is, and what was done about it.
    pub message: String,
}
