//! A control plane that begins while other datacenters cannot be read.

use super::*;
use crate::pipeline::PipelineOptions;

/// A Consul where `a` is in the own datacenter, `b` in both, and `c` and the tagged `j` in the other one only.
fn consul() -> FakeConsul {
    let consul = FakeConsul::new("sas");
    consul.add_datacenter("vla");
    consul.register("sas", "near", instance("a-http", 80));
    consul.register("sas", "near", instance("b-http", 81));
    consul.register("vla", "far", instance("b-http", 82));
    consul.register("vla", "far", instance("c-http", 83));
    let tagged = instance("j", 84).with_tag("domain-j.example");
    consul.register("vla", "far", tagged);
    consul
}

const THREE: &str = "services: [{name: a, provides: [{name: http}]}, {name: b, provides: [{name: http}]}, {name: c, provides: [{name: http}]}]";

fn start(consul: &FakeConsul, options: PipelineOptions) -> Pipeline {
    Pipeline::start(consul_says(consul, THREE), options)
}

fn endpoints(snapshots: &Snapshots, cluster: &str) -> Option<Vec<u32>> {
    let names = served(snapshots, ResourceType::Endpoint);
    let is_there = names.iter().any(|name| name == cluster);
    is_there.then(|| ports_of(snapshots, cluster))
}

/// Unknown does not mean removed: resources served before the restart stay, and known ones are up to date.
#[tokio::test(start_paused = true)]
async fn what_a_datacenter_had_stays_until_it_was_read() {
    type Break = fn(&FakeConsul);
    let faults: [Break; 4] = [
        |consul| consul.fail_in("vla", "", Fault::Status(500, "no path to datacenter")),
        // Some of it can be read.
        |consul| consul.fail_in("vla", "health/checks", Fault::Status(500, "boom")),
        |consul| consul.fail_in("vla", "", Fault::Slow(Duration::from_secs(25))),
        |consul| consul.fail("catalog/datacenters", Fault::Status(500, "boom")),
    ];
    for (nth, fail) in faults.into_iter().enumerate() {
        let kept = Kept::new();
        let consul = consul();
        kept.by(start(&consul, kept.options())).await;

        fail(&consul);
        consul.register("sas", "near", instance("a-http", 90));
        consul.set_check("sas", "b-http-81", HealthStatus::Critical);
        let second = start(&consul, kept.options());
        let mut snapshots = second.snapshots();
        until(&mut snapshots, |snapshots| {
            snapshots.borrow().is_some() && ports_of(snapshots, "a-http") == [80, 90]
        })
        .await;
        sleep(Duration::from_secs(20)).await;
        for (cluster, ports) in [
            ("a-http", &[80, 90][..]),
            ("b-http", &[82]),
            ("c-http", &[83]),
            ("j", &[84]),
        ] {
            assert_eq!(
                endpoints(&snapshots, cluster).as_deref(),
                Some(ports),
                "{nth}: {cluster}"
            );
        }
        assert!(hosts(&snapshots).contains(&"j".to_owned()), "{nth}");

        consul.heal();
        for id in ["c-http-83", "j-84"] {
            consul.deregister("vla", "far", id);
        }
        until(&mut snapshots, |snapshots| {
            endpoints(snapshots, "c-http") == Some(Vec::new())
                && endpoints(snapshots, "j").is_none()
        })
        .await;
        assert_eq!(endpoints(&snapshots, "b-http"), Some(vec![82]));
        assert!(!hosts(&snapshots).contains(&"j".to_owned()), "{nth}");
    }
}

/// A first start has no earlier snapshot to lose. The delay that other datacenters cause has a limit.
#[tokio::test(start_paused = true)]
async fn a_first_start_waits_for_other_datacenters_and_not_for_ever() {
    let consul = consul();
    consul.add_datacenter("iva");
    for (path, fault, least, most) in [
        ("", Fault::Status(500, "boom"), 5, 8),
        ("", Fault::Slow(Duration::from_secs(8)), 15, 40),
        ("", Fault::Hang, 5, 70),
    ] {
        consul.fail_in("iva", path, fault);
        let begun = Instant::now();
        let pipeline = start(&consul, PipelineOptions::default());
        let mut snapshots = pipeline.snapshots();
        timeout(
            Duration::from_secs(most),
            snapshots.wait_for(Option::is_some),
        )
        .await
        .unwrap()
        .unwrap();
        assert!(
            begun.elapsed() >= Duration::from_secs(least),
            "{:?}",
            begun.elapsed()
        );
        // What is known to live in one gets requests although another one is not known.
        assert_eq!(endpoints(&snapshots, "c-http"), Some(vec![83]));
        consul.heal();
    }
    consul.fail("catalog/datacenters", Fault::Status(500, "boom"));
    let begun = Instant::now();
    let pipeline = start(&consul, PipelineOptions::default());
    let mut snapshots = pipeline.snapshots();
    until(&mut snapshots, |snapshots| snapshots.borrow().is_some()).await;
    assert!(begun.elapsed() >= Duration::from_secs(5));
    assert_eq!(
        endpoints(&snapshots, "c-http"),
        None,
        "nobody is told that it has none"
    );
    consul.heal();
    until(&mut snapshots, |snapshots| {
        endpoints(snapshots, "c-http") == Some(vec![83])
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "the list is asked for again soon"
    );
}
