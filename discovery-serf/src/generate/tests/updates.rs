//! The rows of the table of updates, by their numbers, through the runner that publishes: what counts is how often that
//! changes.

use std::sync::Arc;
use std::time::Duration;

use discovery_core::testing::ScriptedDiscoverer;
use discovery_core::{DiscoveryProvider, ProviderState, Runner};

use super::*;

/// A guard against hanging, in virtual time.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// A runner whose source returns the catalog of members.
struct Publishing {
    source: ScriptedDiscoverer,
    provider: DiscoveryProvider,
    options: GenerateOptions,
}

impl Publishing {
    fn new(options: GenerateOptions) -> Self {
        let source = ScriptedDiscoverer::new("serf");
        let provider = Runner::new(source.clone()).start();
        Self {
            source,
            provider,
            options,
        }
    }

    /// The state after a cycle in which the agent lists these.
    async fn list(&self, members: &[Member]) -> Arc<ProviderState> {
        let catalog = ServiceCatalog::build(members, &CatalogOptions::default());
        self.source
            .answer_with(discovery_of(&catalog, &self.options));
        let reports = self.source.reports().len();
        self.source.trigger();
        let waited = async {
            loop {
                // A cycle may have been running from before the response.
                let known = self.source.wait_for_reports(reports + 1).await;
                let state = self.provider.state();
                let report = known.last().expect("there is one");
                if report.cycle == state.status.cycles {
                    return state;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let state = tokio::time::timeout(LONG, waited).await;
        let state = state.expect("cycles go on");
        // Only a service of which nothing can be served is quarantined.
        let services = state.status.quarantined.iter();
        let serving = services.filter(|service| service.last_known_good.is_some());
        assert_eq!(serving.count(), 0, "{:?}", state.problems);
        state
    }
}

/// Returns true if the change from some members to others is published, once and with the new members.
async fn pushes(before: &[Member], after: &[Member]) -> bool {
    pushes_with(GenerateOptions::default(), before, after).await
}

async fn pushes_with(options: GenerateOptions, before: &[Member], after: &[Member]) -> bool {
    let publishing = Publishing::new(options);
    let first = publishing.list(before).await;
    let second = publishing.list(after).await;
    let changes = second.status.changes - first.status.changes;
    assert_eq!(changes > 0, first.revision != second.revision);
    assert!(changes <= 1, "one push");
    changes == 1
}

/// `n1` as given, beside a second instance of `orders` and a service `payments`.
fn cluster_with(first: Member) -> Vec<Member> {
    vec![
        first,
        member("n2", "10.0.0.2", "orders", &[("host", "orders.local")]),
        member("n3", "10.0.0.3", "payments", &[("route-path", "/pay")]),
    ]
}

#[tokio::test(start_paused = true)]
async fn rows_67_and_68_the_same_again_is_not_published() {
    let members = cluster_with(orders(&[("weight", "3"), ("version", "v1")]));
    assert!(!pushes(&members, &members).await);
    let mut turned = members.clone();
    turned.reverse();
    assert!(!pushes(&members, &turned).await);
    let publishing = Publishing::new(GenerateOptions::default());
    let first = publishing.list(&members).await;
    for _ in 0..5 {
        let again = publishing.list(&turned).await;
        assert_eq!(again.revision, first.revision);
        assert_eq!(again.status.changes, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn rows_69_to_72_and_74_what_a_destination_or_a_route_is() {
    let before = orders(&[("instance", "0")]);
    // Row 69: one more, one less.
    let (one, two) = (
        cluster_with(before.clone()),
        cluster_with(before.clone())[1..].to_vec(),
    );
    assert!(pushes(&one, &two).await);
    assert!(pushes(&two, &one).await);
    for (row, key, value) in [
        (70, "weight", "2"),
        (70, "weight", "0"),
        (70, "health-path", "/other"),
        (71, "http-port", "5001"),
        (71, "scheme", "https"),
        (72, "instance", "1"),
        (72, "host", "other.local"),
        (72, "service", "payments"),
        (74, "version", "v2"),
        (74, "region", "us"),
    ] {
        let mut after = before.clone();
        after.tags.insert(key, value);
        let pushed = pushes(&cluster_with(before.clone()), &cluster_with(after)).await;
        assert!(pushed, "row {row}: {key}={value}");
    }
    let mut moved = before.clone();
    moved.address = Some("10.0.0.9".parse().unwrap());
    assert!(
        pushes(&cluster_with(before), &cluster_with(moved)).await,
        "row 71"
    );
}

#[tokio::test(start_paused = true)]
async fn row_72_the_path_of_a_route() {
    let at = |path| vec![member("n1", "10.0.0.1", "web", &[("route-path", path)])];
    assert!(pushes(&at("/a/{**rest}"), &at("/b/{**rest}")).await);
    assert!(pushes(&at("/a/{**rest}"), &at("")).await);
    assert!(!pushes(&at("/a/{**rest}"), &at("a/{**rest}")).await);
}

#[tokio::test(start_paused = true)]
async fn row_73_defaults_that_are_said_or_not_are_the_same() {
    let bare = cluster_with(orders(&[]));
    for more in [
        ("weight", "1"),
        ("weight", " 01 "),
        ("weight", "heavy"),
        ("health-path", "/health"),
        ("health-path", "health"),
        ("scheme", "HTTP"),
        ("instance", "10.0.0.1:5000"),
        ("version", " "),
        ("route-path", "/ignored"),
    ] {
        assert!(
            !pushes(&cluster_with(orders(&[more])), &bare).await,
            "{more:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn row_74_informational_tags_can_be_ignored() {
    let options = GenerateOptions::default().with_informational_tags(false);
    let of = |version| cluster_with(orders(&[("version", version), ("region", version)]));
    assert!(!pushes_with(options.clone(), &of("v1"), &of("v2")).await);
    // A version that requests can select is part of the routes.
    let options = options.with_version_header("X-Version");
    assert!(pushes_with(options, &of("v1"), &of("v2")).await);
}

#[tokio::test(start_paused = true)]
async fn rows_75_and_76_what_is_no_part_of_the_configuration() {
    let before = cluster_with(orders(&[]));
    // Row 75: other tags, and what cannot be used.
    for more in [("role", "x"), ("weight", "x"), ("route-path", "/{")] {
        assert!(
            !pushes(&before, &cluster_with(orders(&[more]))).await,
            "{more:?}"
        );
    }
    // Row 76: the node's name, its gossip port, and nodes that are no part of a service.
    let mut renamed = before.clone();
    renamed[0].name = "elsewhere".into();
    renamed[1].port = 7;
    renamed.push(Member::new(
        "plain",
        "10.0.0.99".parse().unwrap(),
        Tags::new(),
    ));
    renamed.push(failed(member("gone", "10.0.0.98", "orders", &[])));
    assert!(!pushes(&before, &renamed).await);
}

#[tokio::test(start_paused = true)]
async fn rows_77_and_78_what_happens_between_two_snapshots() {
    let publishing = Publishing::new(GenerateOptions::default());
    let members = cluster_with(orders(&[]));
    let first = publishing.list(&members).await;
    // Row 77: it failed and came back before the poll.
    let second = publishing.list(&members).await;
    assert_eq!(second.revision, first.revision);
    // Row 78: it is back with another port, without an event. The next poll is enough.
    let moved = cluster_with(orders(&[("http-port", "5001")]));
    let third = publishing.list(&moved).await;
    assert_eq!(third.status.changes, 2);
}

#[tokio::test(start_paused = true)]
async fn rows_79_80_and_81_who_goes_takes_nobody_along() {
    let publishing = Publishing::new(GenerateOptions::default());
    let payments = member("n3", "10.0.0.3", "payments", &[("route-path", "/pay")]);
    let first = publishing.list(&[orders(&[]), payments.clone()]).await;
    // Row 80: what leaves gets nothing new.
    let leaving = orders(&[]).with_status(MemberStatus::Leaving);
    let second = publishing.list(&[leaving, payments.clone()]).await;
    assert_eq!(second.status.changes, 2);
    let (before, after) = (
        first.config.as_ref().unwrap(),
        second.config.as_ref().unwrap(),
    );
    assert_eq!(clusters(after), ["service:payments"]);
    assert_eq!(routes(after), ["route:payments /pay"]);
    // Row 79: the other service is as it was.
    let id = ClusterId::from("service:payments");
    assert_eq!(before.clusters[&id], after.clusters[&id]);
    // That it has left by now changes nothing.
    let left = orders(&[]).with_status(MemberStatus::Left);
    let third = publishing.list(&[left, payments.clone()]).await;
    assert_eq!(third.status.changes, 2);
    // Row 81: it is back, and is what it was.
    let fourth = publishing.list(&[orders(&[]), payments]).await;
    assert_eq!(fourth.status.changes, 3);
    assert_eq!(fourth.revision, first.revision);
}

#[tokio::test(start_paused = true)]
async fn row_62_the_first_service_replaces_the_legacy_one_at_once() {
    let publishing = Publishing::new(GenerateOptions::default());
    let plain = member("n2", "10.0.0.2", "", &[]);
    let first = publishing.list(std::slice::from_ref(&plain)).await;
    assert_eq!(
        clusters(first.config.as_ref().unwrap()),
        ["backend-cluster"]
    );
    let second = publishing.list(&[orders(&[]), plain.clone()]).await;
    assert_eq!(second.status.changes, 2, "one push");
    let config = second.config.as_ref().unwrap();
    assert_eq!(clusters(config), ["service:orders"]);
    assert_eq!(routes(config), ["route:orders host orders.local"]);
    // When it fails nothing serves, and the pool of all does not come back.
    let third = publishing.list(&[failed(orders(&[])), plain]).await;
    assert_eq!(**third.config.as_ref().unwrap(), ProxyConfig::default());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_becomes_unusable_is_not_kept_in_its_old_form() {
    let publishing = Publishing::new(GenerateOptions::default());
    publishing.list(&cluster_with(orders(&[]))[..1]).await;
    let bad = publishing.list(&[orders(&[("http-port", "x")])]).await;
    assert_eq!(**bad.config.as_ref().unwrap(), ProxyConfig::default());
    let told: Vec<_> = bad.problems.iter().map(|p| p.pointer.as_str()).collect();
    assert_eq!(told, ["/Services/orders/members/n1/tags/http-port"]);
    // The overview tells that something is wrong, and not that nothing is configured.
    assert!(bad.problems.has_errors());
    let [quarantined] = &bad.status.quarantined[..] else {
        panic!("{:?}", bad.status.quarantined);
    };
    assert_eq!(&*quarantined.service, "orders");
    assert_eq!(quarantined.serves(), "nothing serves");
    let good = publishing.list(&[orders(&[])]).await;
    assert!(good.status.quarantined.is_empty() && !good.problems.has_errors());
}
