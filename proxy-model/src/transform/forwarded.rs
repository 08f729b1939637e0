//! `X-Forwarded-*` and `Forwarded`.

use http::HeaderName;

/// What is done to a header that tells where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardedAction {
    /// What the client sent is replaced; removed, when nothing is known.
    Set,
    /// A further header line follows those that the client sent.
    Append,
    /// What the client sent is removed.
    Remove,
}

/// Which part of where a request came from an `X-Forwarded-*` header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XForwardedPart {
    /// The client's IP address, without the port; IPv4-mapped IPv6 is written as IPv4.
    For,
    /// The path that the server had taken off before the proxy saw the request.
    Prefix,
    /// The host that the client asked for, with its port if it named one, in ASCII.
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

    /// What it tells.
    pub fn part(&self) -> XForwardedPart {
        self.part
    }

    /// What is done to it.
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
    /// Whether the scheme is told.
    pub fn proto(&self) -> bool {
        self.proto
    }

    /// Whether the host that the client asked for is told.
    pub fn host(&self) -> bool {
        self.host
    }

    /// How the client is told, if it is.
    pub fn r#for(&self) -> Option<NodeFormat> {
        self.r#for
    }

    /// How the proxy's own address is told, if it is.
    pub fn by(&self) -> Option<NodeFormat> {
        self.by
    }

    /// What is done to the header.
    pub fn action(&self) -> ForwardedAction {
        self.action
    }
}

/// How a node of `Forwarded` is written: `unknown:80`, `_SEVKISEK1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeFormat {
    /// What stands for the node.
    pub name: NodeName,
    /// What stands for its port.
    pub port: NodePort,
}

/// What stands for a node.
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

/// What stands for a node's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NodePort {
    /// Nothing.
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
