//! Tests of paging: the pages together are the list.

use crate::cluster::testing::{cluster, name};
use crate::cluster::{Cluster, NodeStatusFilter, Page, PageRequest};

const MANY: &str = r#"
    cluster.nodes = 12
    [[application_types]]
    name = "T"
    service_types.S = {}
    service_types.D = { kind = "stateful" }
    [[application_types]]
    name = "T"
    version = "2"
    based_on = "1.0.0"
    [applications."A{n}"]
    type = "T"
    count = 11
    services."S{n}" = { type = "S", count = 7, instances = 5 }
    [applications.B]
    type = "T"
    services.Ranges = { type = "D", partitions = { ranges = { count = 13 } } }
"#;

/// Returns the keys of all pages of this size, and whether each page was as full as possible.
fn walk(size: usize, ask: impl Fn(&PageRequest) -> Page<String>) -> Vec<String> {
    let mut keys = Vec::new();
    let mut request = PageRequest::first(size);
    loop {
        let page = ask(&request);
        assert!(size == 0 || page.items.len() <= size);
        keys.extend(page.items);
        if page.continuation_token.is_empty() {
            return keys;
        }
        assert_eq!(
            keys.len() % size.max(1),
            0,
            "only the last page is not full"
        );
        request = PageRequest::first(size).after(page.continuation_token);
    }
}

fn keys<T>(page: Page<T>, key: impl Fn(&T) -> String) -> Page<String> {
    Page {
        items: page.items.iter().map(key).collect(),
        continuation_token: page.continuation_token,
    }
}

/// A list with pages.
type List = (
    &'static str,
    usize,
    fn(&Cluster, &PageRequest) -> Page<String>,
);

const LISTS: &[List] = &[
    ("nodes", 12, |c, page| {
        keys(c.nodes(NodeStatusFilter::All, page), |n| n.name.to_string())
    }),
    ("types", 2, |c, page| {
        keys(c.application_types(None, None, page).unwrap(), |t| {
            format!("{}:{}", t.name, t.version)
        })
    }),
    ("applications", 12, |c, page| {
        keys(c.applications(None, page), |a| a.name.to_string())
    }),
    ("services", 7, |c, page| {
        keys(c.services(&name("fabric:/A3"), None, page).unwrap(), |s| {
            s.name.to_string()
        })
    }),
    ("partitions", 13, |c, page| {
        keys(
            c.partitions(&name("fabric:/B/Ranges"), page).unwrap(),
            |p| p.id.to_string(),
        )
    }),
    ("replicas", 5, |c, page| {
        let id = *c
            .service(&name("fabric:/A1/S1"))
            .unwrap()
            .partitions
            .first()
            .unwrap();
        keys(c.replicas(id, page).unwrap(), |r| r.key.replica.to_string())
    }),
    ("sub names", 7, |c, page| {
        let found = c.sub_names(&name("fabric:/A1"), false, page).unwrap();
        Page {
            items: found.names.iter().map(ToString::to_string).collect(),
            continuation_token: found.continuation_token,
        }
    }),
];

#[test]
fn pages_of_any_size_make_the_whole_list() {
    let cluster = cluster(MANY);
    for (list, count, ask) in LISTS {
        let whole = walk(0, |request| ask(&cluster, request));
        assert_eq!(whole.len(), *count, "{list}");
        assert!(whole.is_sorted(), "{list}: {whole:?}");
        for size in 1..=count + 1 {
            assert_eq!(
                walk(size, |request| ask(&cluster, request)),
                whole,
                "{list} by {size}"
            );
        }
    }
}

#[test]
fn a_token_survives_the_deletion_of_its_item() {
    let mut cluster = cluster(MANY);
    let first = cluster.applications(None, &PageRequest::first(3));
    let last = first.items[2].name.clone();
    let token = first.continuation_token;
    cluster.delete_application(&last).unwrap();
    let second = cluster.applications(None, &PageRequest::first(3).after(token));
    assert!(second.items[0].name > last);
}

#[test]
fn filters_leave_no_holes_in_pages() {
    let mut cluster = cluster(MANY);
    for node in ["_Node_1", "_Node_10", "_Node_5"] {
        cluster.stop_node(node).unwrap();
    }
    let up = NodeStatusFilter::from_word("UP").unwrap();
    let page = cluster.nodes(up, &PageRequest::first(9));
    assert_eq!(
        (page.items.len(), page.continuation_token.as_str()),
        (9, "")
    );
    let none = NodeStatusFilter::from_word("removed").unwrap();
    assert!(
        cluster
            .nodes(none, &PageRequest::default())
            .items
            .is_empty()
    );
    assert!(NodeStatusFilter::from_word("nope").is_none());
}
