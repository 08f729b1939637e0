//! The store of resource groups and resources, which are found ignoring case.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use serde_json::Value;

use super::json::{children, id_of, key, name};
use super::path::{Kind, ResourcePath, collection_id, group_id};
use super::references::References;
use super::rejection::Rejection;

/// The provisioning state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProvisioningPhase {
    Succeeded,
    Updating,
    Deleting,
    Failed,
    Canceled,
}

impl ProvisioningPhase {
    /// Returns the text of `provisioningState`.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Updating => "Updating",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

/// A resource.
#[derive(Clone, Debug)]
pub(super) struct StoredResource {
    /// The path of the resource, in the case in which it was first written.
    pub(super) place: ResourcePath,
    /// The body that clients wrote, with defaults and allocated values, but without parts derived from other
    /// resources.
    pub(super) body: Value,
    /// The version, which changes with every change and is the etag.
    pub(super) version: u64,
    /// The provisioning state.
    pub(super) state: ProvisioningPhase,
}

impl StoredResource {
    /// Returns the etag, which is weak like Azure's.
    pub(super) fn etag(&self) -> String {
        format!("W/\"00000000-0000-4000-8000-{:012x}\"", self.version)
    }

    /// Returns the id of a child.
    pub(super) fn child_id(&self, collection: &str, name: &str) -> String {
        format!("{}/{collection}/{name}", self.place.id())
    }
}

/// A resource group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) subscription: String,
    pub(super) name: String,
    pub(super) location: String,
}

/// The first public address. The range belongs to Azure, so it clashes with nothing else.
const FIRST_PUBLIC: u32 = u32::from_be_bytes([20, 0, 0, 1]);
/// The number of public addresses that can be allocated.
const PUBLIC_ADDRESSES: u32 = 1 << 24;
/// The number of addresses at the start of a subnet that Azure reserves, besides the last one.
const RESERVED: usize = 4;

/// The resource groups and resources.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    groups: BTreeMap<String, Group>,
    resources: BTreeMap<String, StoredResource>,
    versions: u64,
    public_addresses: u32,
}

impl Store {
    pub(super) fn group(&self, subscription: &str, name: &str) -> Option<&Group> {
        self.groups.get(&key(&group_id(subscription, name)))
    }

    pub(super) fn groups<'a>(&'a self, subscription: &'a str) -> impl Iterator<Item = &'a Group> {
        let is_in = |group: &&Group| group.subscription.eq_ignore_ascii_case(subscription);
        self.groups.values().filter(is_in)
    }

    pub(super) fn add_group(&mut self, group: Group) {
        let id = group_id(&group.subscription, &group.name);
        self.groups.entry(key(&id)).or_insert(group);
    }

    pub(super) fn get(&self, key: &str) -> Option<&StoredResource> {
        self.resources.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut StoredResource> {
        self.resources.get_mut(key)
    }

    /// Returns the resource with an id.
    pub(super) fn find(&self, id: &str) -> Option<&StoredResource> {
        self.get(&key(id))
    }

    /// All resources, by id.
    pub(super) fn all(&self) -> impl Iterator<Item = &StoredResource> {
        self.resources.values()
    }

    pub(super) fn len(&self) -> usize {
        self.resources.len()
    }

    /// The resources of a kind in a group, by name.
    pub(super) fn collection(
        &self,
        subscription: &str,
        group: &str,
        kind: Kind,
    ) -> impl Iterator<Item = &StoredResource> {
        let prefix = key(&collection_id(subscription, group, kind)) + "/";
        let range = self.resources.range(prefix.clone()..);
        range
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(_, resource)| resource)
    }

    /// Returns the next version.
    pub(super) fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    /// Stores a resource with a new version.
    pub(super) fn put(&mut self, place: &ResourcePath, body: Value, state: ProvisioningPhase) {
        let version = self.next_version();
        let key = place.key();
        // The letter case of its creation stays.
        let place = self
            .get(&key)
            .map_or_else(|| place.clone(), |old| old.place.clone());
        let resource = StoredResource {
            place,
            body,
            version,
            state,
        };
        self.resources.insert(key, resource);
    }

    /// Removes a resource, and its memberships.
    pub(super) fn remove(&mut self, key: &str) {
        let Some(removed) = self.resources.remove(key) else {
            return;
        };
        if removed.place.kind == Kind::LoadBalancer {
            self.leave_pools(key);
        }
    }

    /// Removes network interfaces from the pools of a deleted load balancer.
    fn leave_pools(&mut self, balancer: &str) {
        let prefix = format!("{balancer}/");
        let mut changed = Vec::new();
        for (key, resource) in &mut self.resources {
            if resource.place.kind != Kind::Interface {
                continue;
            }
            let configurations = resource.body["properties"]["ipConfigurations"].as_array_mut();
            for configuration in configurations.into_iter().flatten() {
                let pools = configuration["properties"].get_mut("loadBalancerBackendAddressPools");
                let Some(pools) = pools.and_then(Value::as_array_mut) else {
                    continue;
                };
                let before = pools.len();
                pools.retain(|pool| {
                    !id_of(pool).is_some_and(|id| super::json::key(id).starts_with(&prefix))
                });
                if pools.len() != before {
                    changed.push(key.clone());
                }
            }
        }
        for key in changed {
            self.touch(&key);
        }
    }

    /// Gives a resource a new version, because a reference to it has changed.
    pub(super) fn touch(&mut self, key: &str) {
        let version = self.next_version();
        if let Some(resource) = self.resources.get_mut(key) {
            resource.version = version;
        }
    }

    /// Returns a public address that is not in use.
    pub(super) fn allocate_public(&mut self) -> Option<Ipv4Addr> {
        let taken: BTreeSet<&str> = self
            .all()
            .filter_map(|resource| resource.body["properties"]["ipAddress"].as_str())
            .collect();
        let mut next = self.public_addresses;
        let address = loop {
            if next >= PUBLIC_ADDRESSES {
                return None;
            }
            let address = Ipv4Addr::from(FIRST_PUBLIC + next);
            next += 1;
            if !taken.contains(address.to_string().as_str()) {
                break address;
            }
        };
        // A released address is not allocated again.
        self.public_addresses = next;
        Some(address)
    }

    /// Returns the subnet with an id, and its virtual network.
    pub(super) fn subnet(&self, id: &str) -> Option<(&StoredResource, &Value)> {
        let id = key(id);
        let (network, subnet) = id.rsplit_once("/subnets/")?;
        let network = self.get(network)?;
        let found = children(&network.body, "subnets")
            .iter()
            .find(|one| name(one).eq_ignore_ascii_case(subnet))?;
        Some((network, found))
    }

    /// The networks of a subnet.
    pub(super) fn prefixes(subnet: &Value) -> Vec<IpNet> {
        let properties = &subnet["properties"];
        let one = properties["addressPrefix"].as_str();
        let many = properties["addressPrefixes"].as_array();
        let many = many.into_iter().flatten().filter_map(Value::as_str);
        one.into_iter()
            .chain(many)
            .filter_map(|text| text.parse().ok())
            .collect()
    }

    /// Returns the private addresses of a subnet that are in use, except those of one resource.
    pub(super) fn taken(
        &self,
        subnet: &str,
        references: &References,
        but: &str,
    ) -> BTreeSet<IpAddr> {
        let of_other = |id: &&String| !key(id).starts_with(&format!("{but}/"));
        let sources = references.to(&key(subnet)).iter().filter(of_other);
        sources.filter_map(|id| self.private_address(id)).collect()
    }

    /// Returns the private address of a frontend or an IP configuration.
    fn private_address(&self, id: &str) -> Option<IpAddr> {
        let id = key(id);
        let (rest, child) = id.rsplit_once('/')?;
        let (owner, collection) = rest.rsplit_once('/')?;
        let collection = match collection {
            "frontendipconfigurations" => "frontendIPConfigurations",
            _ => "ipConfigurations",
        };
        let owner = self.get(owner)?;
        let found = children(&owner.body, collection)
            .iter()
            .find(|one| name(one).eq_ignore_ascii_case(child))?;
        found["properties"]["privateIPAddress"]
            .as_str()?
            .parse()
            .ok()
    }

    /// Returns the first free address of a subnet.
    pub(super) fn free_address(
        subnet: &Value,
        taken: &BTreeSet<IpAddr>,
    ) -> Result<IpAddr, Rejection> {
        let prefixes = Self::prefixes(subnet);
        // Reserved addresses come first; `hosts` already omits the network's own address.
        let hosts = |net: &IpNet| {
            net.hosts()
                .skip(RESERVED - 1)
                .take(taken.len() + 1)
                .collect::<Vec<_>>()
        };
        let free = prefixes
            .iter()
            .flat_map(hosts)
            .find(|address| !taken.contains(address));
        free.ok_or_else(|| {
            let message = format!("Subnet {} does not have enough capacity.", name(subnet));
            Rejection::bad("SubnetIsFull", message)
        })
    }
}
