mod failures;
mod options;
mod rows;
mod values;

use super::*;
use crate::member::{MemberStatus, Tags};

/// Tags in a test.
type Pairs<'t> = &'t [(&'t str, &'t str)];

/// A member that is alive.
fn alive(name: &str, address: &str, tags: Pairs<'_>) -> Member {
    let tags = tags.iter().copied().collect::<Tags>();
    Member::new(name, address.parse().unwrap(), tags)
}

/// A member with another status.
fn with_status(status: &str, name: &str, address: &str, tags: Pairs<'_>) -> Member {
    alive(name, address, tags).with_status(MemberStatus::parse(status))
}

/// An instance of `orders` on port 5000, with more tags.
fn orders(name: &str, address: &str, more: Pairs<'_>) -> Member {
    let mut member = alive(
        name,
        address,
        &[("service", "orders"), ("http-port", "5000")],
    );
    for (key, value) in more {
        member.tags.insert(*key, *value);
    }
    member
}

fn build(members: &[Member]) -> ServiceCatalog {
    ServiceCatalog::build(members, &CatalogOptions::default())
}

/// The services, each with its instances: `orders: o-1 http://10.0.0.1:5000, o-2 https://10.0.0.2:5000`.
fn services(catalog: &ServiceCatalog) -> Vec<String> {
    let services = catalog.services.iter();
    services
        .map(|(name, service)| format!("{name}: {}", destinations(service).join(", ")))
        .collect()
}

fn destinations(service: &Service) -> Vec<String> {
    let instances = service.instances.iter();
    instances
        .map(|instance| format!("{} {}", instance.key, instance.address()))
        .collect()
}

/// Returns all problems, in the order of the services: `/members/a/tags/weight invalid_weight`.
fn told(catalog: &ServiceCatalog) -> Vec<String> {
    let of_services = catalog.services.values().chain(&catalog.legacy);
    let all = [&catalog.problems]
        .into_iter()
        .chain(catalog.unusable.values())
        .chain(of_services.map(|service| &service.problems));
    all.flatten()
        .map(|problem| format!("{} {}", problem.pointer, problem.code))
        .collect()
}

/// The members that are left out, with the reasons.
fn left_out(catalog: &ServiceCatalog) -> Vec<String> {
    let members = catalog.left_out.iter();
    members
        .map(|left_out| format!("{} {}", left_out.member, left_out.reason))
        .collect()
}

/// Returns the instance made from one member, and its problems.
#[track_caller]
fn only(member: Member) -> (ServiceInstance, Vec<String>) {
    let catalog = build(&[member]);
    let told = told(&catalog);
    let mut services = catalog.services.into_values();
    let service = services.next().expect("there is a service");
    let [instance] = service.instances.try_into().expect("one instance");
    (instance, told)
}
