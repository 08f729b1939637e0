/// The gateway version to imitate where versions differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The format that clients of version 8.2 read: service types have a `Kind`, deployed ones are `Enabled`,
    /// and a quorum loss has `LastQuorumLossDuration`.
    #[default]
    Current,
    /// The format that gateways of version 6.4 write: service types have no `Kind`, deployed ones are
    /// `NotRegistered`, a quorum loss has `LastQuorumLossDurationInSeconds`, and code packages have a
    /// `HasSetupEntryPoint`.
    Runtime64,
}
