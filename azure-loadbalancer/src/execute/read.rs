//! Reading of the current resources with as few calls as possible.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::arm::{ArmClient, ArmError, ArmErrorKind};
use crate::config::Config;
use crate::plan::{Reads, Snapshot, is_certainly_of};
use crate::resources::{ArmId, LoadBalancer, PublicIpAddress, ScaleSet, ScaleSetInstance};
use crate::service::Service;

/// Reads the resources that a plan for these services starts from: load balancers, public addresses and, if
/// needed, the security group and the virtual network. That is at most five calls, whatever the number of
/// services. If network interfaces are members of pools, machines take three more, and one for each scale
/// set. An identity that may not list the public addresses of the subscription takes one call for each
/// resource group that services name.
///
/// # Errors
///
/// A call fails.
///
/// # Cancel safety
///
/// Cancel safe: it only reads.
pub async fn read_snapshot(
    client: &ArmClient,
    config: &Config,
    services: &[Service],
) -> Result<Snapshot, ArmError> {
    let mut groups = BTreeSet::new();
    read_again(client, config, services, &mut groups).await
}

/// Reads again. `groups` are those in which public addresses were before: without the subscription's list,
/// they are the only way to find an address whose group no service names any more.
pub(super) async fn read_again(
    client: &ArmClient,
    config: &Config,
    services: &[Service],
    groups: &mut BTreeSet<String>,
) -> Result<Snapshot, ArmError> {
    let group = GroupReads {
        client,
        subscription: &config.subscription_id,
        name: &config.resource_group,
    };
    // Load balancers come first: they tell which other resources are needed.
    let of_load_balancers = GroupReads {
        name: config.load_balancer_group(),
        ..group
    };
    let load_balancers: Vec<LoadBalancer> = of_load_balancers
        .list("Microsoft.Network/loadBalancers")
        .await?;
    let mut reads = Reads::of(config, services, &load_balancers);
    let named = reads.public_ip_groups.clone();
    // Groups of earlier reads may have addresses that no service names any more.
    reads.public_ip_groups.append(groups);
    let security_group = async {
        match config.security_group_id().filter(|_| reads.security_group) {
            Some(id) => client.get_resource(&id).await,
            None => Ok(None),
        }
    };
    let virtual_network = async {
        match reads.virtual_network {
            true => client.get_resource(&config.virtual_network_id()).await,
            false => Ok(None),
        }
    };
    let machines = async {
        match reads.machines {
            true => group.machines().await,
            false => Ok(Snapshot::default()),
        }
    };
    let (public_ips, security_group, virtual_network, machines) = tokio::try_join!(
        public_ips(client, config, &reads),
        security_group,
        virtual_network,
        machines
    )?;
    // Groups that no service names, and that have no address of this cluster, are forgotten.
    groups.extend(named);
    let still_used = public_ips
        .iter()
        .filter(|address| is_certainly_of(config, address))
        .filter_map(|address| address.id.as_ref()?.resource_group());
    groups.extend(still_used.map(str::to_ascii_lowercase));
    Ok(Snapshot {
        load_balancers,
        public_ips,
        security_group,
        virtual_network,
        ..machines
    })
}

async fn public_ips(
    client: &ArmClient,
    config: &Config,
    reads: &Reads,
) -> Result<Vec<PublicIpAddress>, ArmError> {
    const KIND: &str = "Microsoft.Network/publicIPAddresses";
    let subscription = &config.subscription_id;
    let all = format!("/subscriptions/{subscription}/providers/{KIND}");
    match client.list::<PublicIpAddress>(&all).await {
        Ok(mut all) => {
            all.retain(|address| reads.keeps(config, address));
            return Ok(all);
        }
        // The identity may have rights for groups alone.
        Err(error) if error.kind() == ArmErrorKind::Forbidden => {}
        Err(error) => return Err(error),
    }
    let mut found = Vec::new();
    for name in &reads.public_ip_groups {
        let group = GroupReads {
            client,
            subscription,
            name,
        };
        match group.list::<PublicIpAddress>(KIND).await {
            Ok(addresses) => found.extend(addresses),
            // A service may name another owner's group, which is that service's error in the plan.
            Err(error)
                if matches!(
                    error.kind(),
                    ArmErrorKind::Forbidden | ArmErrorKind::Rejected | ArmErrorKind::NotFound
                ) && !name.eq_ignore_ascii_case(&config.resource_group) =>
            {
                tracing::warn!(%error, group = name, "public addresses of a resource group cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[derive(Clone, Copy)]
struct GroupReads<'a> {
    client: &'a ArmClient,
    subscription: &'a str,
    name: &'a str,
}

impl GroupReads<'_> {
    async fn list<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<T>, ArmError> {
        let Self {
            client,
            subscription,
            name,
        } = self;
        let path = format!("/subscriptions/{subscription}/resourceGroups/{name}/providers/{kind}");
        client.list(&path).await
    }

    /// Reads machines, network interfaces and scale sets, and nothing else of a snapshot.
    async fn machines(&self) -> Result<Snapshot, ArmError> {
        let (virtual_machines, network_interfaces, scale_sets) = tokio::try_join!(
            self.list("Microsoft.Compute/virtualMachines"),
            self.list("Microsoft.Network/networkInterfaces"),
            self.list::<ScaleSet>("Microsoft.Compute/virtualMachineScaleSets"),
        )?;
        let mut scale_set_instances: Vec<ScaleSetInstance> = Vec::new();
        for id in scale_sets
            .iter()
            .filter_map(|scale_set| scale_set.id.as_ref())
        {
            let path = format!("{}/virtualMachines", ArmId::as_str(id));
            scale_set_instances.extend(self.client.list(&path).await?);
        }
        Ok(Snapshot {
            virtual_machines,
            network_interfaces,
            scale_sets,
            scale_set_instances,
            ..Snapshot::default()
        })
    }
}
