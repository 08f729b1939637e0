//! `X-Forwarded-*` and `Forwarded`.

use http::HeaderName;

/// The change of a header that describes where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardedAction {
    /// Replaces the client's header. Removes it if there is no value.
    Set,
    /// A further header line follows those that the client sent.
    Append,
    /// Removes the client's header.
    Remove,
}

/// The part of a request's origin that an `X-Forwarded-*` header holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XForwardedPart {
    /// The client's IP address, without the port; IPv4-mapped IPv6 is written as IPv4.
    For,
    /// The path that the server removed before the proxy saw the request.
    Prefix,
    /// The requested host, with its port if it has one, in ASCII.
    Host,
    /// `http` or `https`.
    Proto,
}

impl XForwardedPart {
    /// The last part of the header's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::For => "For",
            Self::Prefix => "Prefix",
            Self::Host => "Host",
            Self::Proto => "Proto",
        }
    }
}

/// One `X-Forwarded-*` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XForwarded {
    pub(super) name: HeaderName,
    pub(super) part: XForwardedPart,
    pub(super) action: ForwardedAction,
}

impl XForwarded {
    /// The header.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The part of the origin that the header holds.
    pub fn part(&self) -> XForwardedPart {
        self.part
    }

    /// The change of the header.
    pub fn action(&self) -> ForwardedAction {
        self.action
    }
}

/// The header `Forwarded` (RFC 7239), whose parts are written in the order proto, host, for, by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded {
    pub(super) proto: bool,
    pub(super) host: bool,
    pub(super) r#for: Option<NodeFormat>,
    pub(super) by: Option<NodeFormat>,
    pub(super) action: ForwardedAction,
}

impl Forwarded {
    /// Returns true if the scheme is included.
    pub fn proto(&self) -> bool {
        self.proto
    }

    /// Returns true if the requested host is included.
    pub fn host(&self) -> bool {
        self.host
    }

    /// The format of the client's address, if it is included.
    pub fn r#for(&self) -> Option<NodeFormat> {
        self.r#for
    }

    /// The format of the proxy's own address, if it is included.
    pub fn by(&self) -> Option<NodeFormat> {
        self.by
    }

    /// The change of the header.
    pub fn action(&self) -> ForwardedAction {
        self.action
    }
}

/// The format of a node in `Forwarded`: `unknown:80`, `_SEVKISEK1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeFormat {
    /// The form of the node's name.
    pub name: NodeName,
    /// The form of the node's port.
    pub port: NodePort,
}

/// The form of a node's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NodeName {
    /// `_` and nine random characters, other ones in each request.
    #[default]
    Random,
    /// `unknown`
    Unknown,
    /// The IP address, or `unknown` when it is not known.
    Ip,
}

/// The form of a node's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NodePort {
    /// No port.
    #[default]
    Absent,
    /// The port, if it is known.
    Port,
    /// `_` and nine random characters.
    Random,
}

impl NodeFormat {
    /// The formats by their names in the configuration.
    pub(super) const NAMED: [(&'static str, Self); 9] = [
        ("Random", Self::new(NodeName::Random, NodePort::Absent)),
        ("RandomAndPort", Self::new(NodeName::Random, NodePort::Port)),
        (
            "RandomAndRandomPort",
            Self::new(NodeName::Random, NodePort::Random),
        ),
        ("Unknown", Self::new(NodeName::Unknown, NodePort::Absent)),
        (
            "UnknownAndPort",
            Self::new(NodeName::Unknown, NodePort::Port),
        ),
        (
            "UnknownAndRandomPort",
            Self::new(NodeName::Unknown, NodePort::Random),
        ),
        ("Ip", Self::new(NodeName::Ip, NodePort::Absent)),
        ("IpAndPort", Self::new(NodeName::Ip, NodePort::Port)),
        ("IpAndRandomPort", Self::new(NodeName::Ip, NodePort::Random)),
    ];

    const fn new(name: NodeName, port: NodePort) -> Self {
        Self { name, port }
    }
}
