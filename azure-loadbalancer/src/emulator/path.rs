//! The paths of the resource manager. Segments are compared ignoring case.

use http::StatusCode;
use percent_encoding::percent_decode_str;

use super::json::check_name;
use super::rejection::Rejection;

/// A type of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    LoadBalancer,
    PublicIp,
    SecurityGroup,
    VirtualNetwork,
    Interface,
    Machine,
    ScaleSet,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::LoadBalancer,
        Self::PublicIp,
        Self::SecurityGroup,
        Self::VirtualNetwork,
        Self::Interface,
        Self::Machine,
        Self::ScaleSet,
    ];

    /// The provider of the type.
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::Machine | Self::ScaleSet => "Microsoft.Compute",
            Self::LoadBalancer
            | Self::PublicIp
            | Self::SecurityGroup
            | Self::VirtualNetwork
            | Self::Interface => "Microsoft.Network",
        }
    }

    /// The type's segment of a path.
    pub(super) fn segment(self) -> &'static str {
        match self {
            Self::LoadBalancer => "loadBalancers",
            Self::PublicIp => "publicIPAddresses",
            Self::SecurityGroup => "networkSecurityGroups",
            Self::VirtualNetwork => "virtualNetworks",
            Self::Interface => "networkInterfaces",
            Self::Machine => "virtualMachines",
            Self::ScaleSet => "virtualMachineScaleSets",
        }
    }

    fn of(provider: &str, segment: &str) -> Result<Self, Rejection> {
        let found = Self::ALL.into_iter().find(|kind| {
            kind.provider().eq_ignore_ascii_case(provider)
                && kind.segment().eq_ignore_ascii_case(segment)
        });
        found.ok_or_else(|| {
            let known: Vec<_> = Self::ALL
                .iter()
                .map(|kind| format!("{}/{}", kind.provider(), kind.segment()))
                .collect();
            let message = format!(
                "The resource type `{provider}/{segment}` is not emulated. These are: {}.",
                known.join(", ")
            );
            Rejection::new(StatusCode::NOT_FOUND, "InvalidResourceType", message)
        })
    }
}

/// The place of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourcePath {
    pub(super) subscription: String,
    pub(super) group: String,
    pub(super) kind: Kind,
    pub(super) name: String,
}

impl ResourcePath {
    /// Returns the id, with the names as written here.
    pub(super) fn id(&self) -> String {
        format!(
            "{}/{}",
            collection_id(&self.subscription, &self.group, self.kind),
            self.name
        )
    }

    /// Returns the key: the id in lower case.
    pub(super) fn key(&self) -> String {
        self.id().to_ascii_lowercase()
    }
}

/// Returns the path of a kind's resources.
pub(super) fn collection_id(subscription: &str, group: &str, kind: Kind) -> String {
    format!(
        "{}/providers/{}/{}",
        group_id(subscription, group),
        kind.provider(),
        kind.segment()
    )
}

/// The id of a resource group.
pub(super) fn group_id(subscription: &str, group: &str) -> String {
    format!("/subscriptions/{subscription}/resourceGroups/{group}")
}

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestTarget {
    /// All resource groups of a subscription.
    Groups { subscription: String },
    /// One resource group.
    Group { subscription: String, group: String },
    /// All resources of a kind in a subscription, regardless of group.
    Everywhere { subscription: String, kind: Kind },
    /// All resources of a kind in a group.
    Collection {
        subscription: String,
        group: String,
        kind: Kind,
    },
    /// One resource.
    Resource(ResourcePath),
    /// A part of a resource: the path after the resource's name.
    Inside {
        parent: ResourcePath,
        rest: Vec<String>,
    },
    /// The result of a write.
    Operation { id: String, is_result: bool },
}

impl RequestTarget {
    /// Parses a path.
    ///
    /// # Errors
    ///
    /// 404 for a path of unknown form, 400 for an invalid name.
    pub(super) fn parse(path: &str) -> Result<Self, Rejection> {
        let mut segments = Vec::new();
        for segment in path.trim_matches('/').split('/') {
            let text = percent_decode_str(segment).decode_utf8().map_err(|_| {
                Rejection::bad("InvalidUri", "The path has bytes that are no UTF-8.")
            })?;
            segments.push(text.into_owned());
        }
        let texts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let is = |text: &str, word: &str| text.eq_ignore_ascii_case(word);
        let unknown = || {
            let message = format!("No resource manager has the path `{path}`.");
            Err(Rejection::new(
                StatusCode::NOT_FOUND,
                "InvalidRequestUri",
                message,
            ))
        };
        let [subscriptions, subscription, rest @ ..] = texts.as_slice() else {
            return unknown();
        };
        if !is(subscriptions, "subscriptions") || subscription.is_empty() {
            return unknown();
        }
        let subscription = (*subscription).to_owned();
        match rest {
            [groups] if is(groups, "resourceGroups") => Ok(Self::Groups { subscription }),
            [groups, group] if is(groups, "resourceGroups") => Ok(Self::Group {
                subscription,
                group: (*group).to_owned(),
            }),
            [providers, _, locations, _, operations, id]
                if is(providers, "providers") && is(locations, "locations") =>
            {
                let is_result = is(operations, "operationResults");
                if !is_result && !is(operations, "operations") {
                    return unknown();
                }
                Ok(Self::Operation {
                    id: (*id).to_owned(),
                    is_result,
                })
            }
            [providers, provider, segment] if is(providers, "providers") => Ok(Self::Everywhere {
                subscription,
                kind: Kind::of(provider, segment)?,
            }),
            [groups, group, providers, provider, segment, rest @ ..]
                if is(groups, "resourceGroups") && is(providers, "providers") =>
            {
                let kind = Kind::of(provider, segment)?;
                let group = (*group).to_owned();
                let [name, inside @ ..] = rest else {
                    return Ok(Self::Collection {
                        subscription,
                        group,
                        kind,
                    });
                };
                check_name(name)?;
                let place = ResourcePath {
                    subscription,
                    group,
                    kind,
                    name: (*name).to_owned(),
                };
                if inside.is_empty() {
                    return Ok(Self::Resource(place));
                }
                let rest = inside.iter().map(|text| (*text).to_owned()).collect();
                Ok(Self::Inside {
                    parent: place,
                    rest,
                })
            }
            _ => unknown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_things_ignoring_case() {
        let lb = ResourcePath {
            subscription: "s".to_owned(),
            group: "RG".to_owned(),
            kind: Kind::LoadBalancer,
            name: "lb".to_owned(),
        };
        let path =
            "/Subscriptions/s/resourcegroups/RG/providers/microsoft.network/LOADBALANCERS/lb";
        assert_eq!(
            RequestTarget::parse(path).unwrap(),
            RequestTarget::Resource(lb.clone())
        );
        assert_eq!(
            lb.id(),
            "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/loadBalancers/lb"
        );
        assert_eq!(
            RequestTarget::parse(&format!("{path}/backendAddressPools/p%2E1")).unwrap(),
            RequestTarget::Inside {
                parent: lb,
                rest: vec!["backendAddressPools".to_owned(), "p.1".to_owned()],
            }
        );
        assert_eq!(
            RequestTarget::parse("/subscriptions/s/providers/Microsoft.Network/publicIPAddresses")
                .unwrap(),
            RequestTarget::Everywhere {
                subscription: "s".to_owned(),
                kind: Kind::PublicIp
            }
        );
        let operation =
            "/subscriptions/s/providers/Microsoft.Network/locations/westus/operationResults/7";
        assert_eq!(
            RequestTarget::parse(operation).unwrap(),
            RequestTarget::Operation {
                id: "7".to_owned(),
                is_result: true
            }
        );
    }

    #[test]
    fn what_is_no_path_is_rejected() {
        for (path, code) in [
            ("", "InvalidRequestUri"),
            ("/", "InvalidRequestUri"),
            ("/subscriptions", "InvalidRequestUri"),
            ("/subscriptions//resourceGroups", "InvalidRequestUri"),
            (
                "/subscriptions/s/resourceGroups/g/providers/A.B/things/n",
                "InvalidResourceType",
            ),
            (
                "/subscriptions/s/providers/Microsoft.Network/locations/l/answers/7",
                "InvalidRequestUri",
            ),
            ("/subscriptions/%ff", "InvalidUri"),
        ] {
            assert_eq!(RequestTarget::parse(path).unwrap_err().code, code, "{path}");
        }
        let lb = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers";
        for name in ["-a", "a-", "a%20b", &"x".repeat(81)] {
            let rejection = RequestTarget::parse(&format!("{lb}/{name}")).unwrap_err();
            assert_eq!(rejection.code, "InvalidResourceName", "{name}");
        }
    }
}
