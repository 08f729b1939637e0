//! Lists in pages.

use super::{Gateway, builder, text};

/// Reads a list like a client. Returns the names of its items, and the number of pages.
async fn walk(gateway: &Gateway, path: &str) -> (Vec<String>, usize) {
    let (mut names, mut pages, mut token) = (Vec::new(), 0, String::new());
    let separator = if path.contains('?') { '&' } else { '?' };
    loop {
        // The SDK sends tokens with `:` and `/` unescaped, and spaces escaped.
        let sent = token.replace(' ', "%20").replace('+', "%2B");
        let page = gateway
            .get(&format!("{path}{separator}ContinuationToken={sent}"))
            .await;
        assert_eq!(page.status, 200, "{path} {token}: {}", page.json);
        pages += 1;
        assert!(pages < 50, "{path} never ends");
        let items = ["Items", "Properties", "SubNames"]
            .into_iter()
            .find_map(|key| page.json[key].as_array())
            .unwrap_or_else(|| panic!("{}", page.json));
        names.extend(items.iter().map(|item| {
            let name = ["/Name", "/PartitionInformation/Id", "/ReplicaId"]
                .into_iter()
                .find_map(|place| item.pointer(place))
                .unwrap_or(item);
            let version = item.get("Version").map(text).unwrap_or_default();
            text(name) + &version
        }));
        let next = text(&page.json["ContinuationToken"]);
        if next.is_empty() {
            return (names, pages);
        }
        assert!(next > token, "{next} does not come after {token}");
        token = next;
    }
}

#[tokio::test]
async fn a_forced_size_cuts_every_list() {
    let whole = Gateway::start().await;
    let cut = Gateway::of(builder().page_size(1)).await;
    let cart = whole.partition("Shop~Cart").await;
    for (path, count) in [
        ("/Nodes", 3),
        ("/Applications", 2),
        ("/ApplicationTypes", 3),
        ("/Applications/Shop/$/GetServices", 4),
        ("/Services/Shop~Cart/$/GetPartitions", 2),
        (&*format!("/Partitions/{cart}/$/GetReplicas"), 3),
        (
            "/Nodes/_Node_0/$/GetApplications?IncludeHealthState=true",
            1,
        ),
    ] {
        let (expected, pages) = walk(&whole, path).await;
        assert_eq!(pages, 1, "{path}");
        assert!(expected.len() >= count, "{path}: {expected:?}");
        let (names, pages) = walk(&cut, path).await;
        assert_eq!(names, expected, "{path}");
        assert_eq!(pages, expected.len(), "{path}");
    }
}

#[tokio::test]
async fn callers_say_how_long_pages_are() {
    let gateway = Gateway::start().await;
    for (path, pages) in [
        ("/Nodes?MaxResults=2", 2),
        ("/Nodes?MaxResults=3", 1),
        ("/Nodes?MaxResults=0", 1),
        ("/Applications/Shop/$/GetServices?MaxResults=3", 2),
        // These calls ignore the argument.
        ("/Services/Shop~Cart/$/GetPartitions?MaxResults=1", 1),
    ] {
        let (_, found) = walk(&gateway, path).await;
        assert_eq!(found, pages, "{path}");
    }
}

#[tokio::test]
async fn tokens_are_lower_bounds() {
    let gateway = Gateway::start().await;
    // The entity that the token names need not exist any more.
    let nodes = gateway.items("/Nodes?ContinuationToken=_Node_0x").await;
    assert_eq!(nodes.len(), 2);
    let services = gateway
        .items("/Applications/Shop/$/GetServices?ContinuationToken=fabric:/Shop/Admin/Web%20x")
        .await;
    assert_eq!(services.len(), 3);
    let applications = gateway
        .items("/Applications?ContinuationToken=fabric:/Z")
        .await;
    assert!(applications.is_empty());
}

#[tokio::test]
async fn the_size_can_be_changed_while_it_runs() {
    let gateway = Gateway::start().await;
    gateway.emulator.faults().set_page_size(Some(2));
    assert_eq!(gateway.items("/Nodes").await.len(), 2);
    gateway.emulator.faults().set_page_size(None);
    assert_eq!(gateway.items("/Nodes").await.len(), 3);
}
