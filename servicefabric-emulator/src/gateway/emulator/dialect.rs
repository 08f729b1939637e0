/// Which gateway is spoken like, where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// As the clients of version 8.2 read it: service types have a `Kind`, deployed ones are `Enabled`, and a quorum loss lasts
    /// `LastQuorumLossDuration`.
    #[default]
    Current,
    /// As gateways of version 6.4 write it: service types have no `Kind`, deployed ones are `NotRegistered`, a quorum
    /// loss lasts `LastQuorumLossDurationInSeconds`, and code packages have a `HasSetupEntryPoint`.
    Runtime64,
}
