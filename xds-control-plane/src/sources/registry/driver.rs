//! The driver of a registry, which publishes its results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use discovery_core::Backoff;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{ParsedRegistry, Registry, RegistryError, Services};
use crate::sources::reading::{LeftOut, Reading};
use crate::translate::RegistryService;

/// The time after which a doubtful change is read again.
const SETTLE: Duration = Duration::from_secs(5);

/// The time limit of the second read.
const PATIENCE: Duration = Duration::from_secs(30);

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// Follows a registry while it is polled. `served` are the services that are already served, from an
/// earlier run.
pub(in crate::sources) async fn follow(
    mut registry: Box<dyn Registry>,
    served: BTreeSet<Arc<str>>,
    published: watch::Sender<Reading<Services>>,
) {
    let mut failures = 0_u32;
    let mut next = registry.next().await;
    loop {
        let read = match next {
            Ok(parsed) => Ok(believed(&mut *registry, parsed, &served, &published).await),
            Err(error) => Err(error),
        };
        match read {
            Ok(parsed) => {
                failures = 0;
                take(&published, parsed);
            }
            Err(RegistryError(failure)) => {
                published.send_if_modified(|reading| {
                    let is_news = reading.failed(Arc::clone(&failure));
                    if is_news {
                        tracing::warn!(target: crate::sources::TARGET, failure = &*failure, "the registry cannot be read; the last known good content stays");
                    }
                    is_news
                });
                failures = failures.saturating_add(1);
                sleep(BACKOFF.wait(failures, fastrand::f64())).await;
            }
        }
        next = registry.next().await;
    }
}

/// Waits until a result can be trusted. If most services disappear, or there are none at first, every
/// result for a while has to confirm it, and at least two. The rest of the results may change meanwhile.
///
/// Silence confirms nothing: a registry that has just started reports that it has nothing, and must be read
/// again. If that fails, it is retried until it succeeds.
async fn believed(
    registry: &mut dyn Registry,
    mut parsed: ParsedRegistry,
    served: &BTreeSet<Arc<str>>,
    published: &watch::Sender<Reading<Services>>,
) -> ParsedRegistry {
    let mut doubted: Option<(Instant, Doubt)> = None;
    let mut failures = 0_u32;
    while let Some(doubt) = doubt(published, served, &parsed) {
        let since = match &doubted {
            Some((since, earlier)) if doubt.repeats(earlier) => *since,
            _ => {
                let why = doubt.why;
                tracing::warn!(target: crate::sources::TARGET, why, "the registry is polled again \
                    for confirmation");
                published.send_if_modified(|reading| reading.waits(why));
                let now = Instant::now();
                doubted = Some((now, doubt));
                now
            }
        };
        if since.elapsed() >= SETTLE {
            break;
        }
        parsed = loop {
            // What comes meanwhile counts in its place.
            let answer = match timeout_at(since + SETTLE, registry.next()).await {
                Ok(newer) => newer,
                Err(_) => {
                    let again = timeout(PATIENCE, registry.again()).await;
                    again.unwrap_or_else(|_| Err(RegistryError::new("there is no answer")))
                }
            };
            match answer {
                Ok(parsed) => break parsed,
                Err(RegistryError(failure)) => {
                    published.send_if_modified(|reading| reading.failed(failure));
                    failures = failures.saturating_add(1);
                    sleep(BACKOFF.limit(failures)).await;
                }
            }
        };
    }
    parsed
}

/// The reason to doubt a result.
struct Doubt {
    why: &'static str,
    gone: BTreeSet<Arc<str>>,
    is_empty: bool,
    /// Number of services before.
    before: usize,
}

impl Doubt {
    /// Returns true if a result confirms an earlier one: no service has come back, and the further losses
    /// alone would be accepted.
    fn repeats(&self, earlier: &Self) -> bool {
        let more = self.gone.difference(&earlier.gone).count();
        earlier.gone.is_subset(&self.gone)
            && more * 10 <= self.before
            && self.is_empty == earlier.is_empty
    }
}

fn doubt(
    published: &watch::Sender<Reading<Services>>,
    served: &BTreeSet<Arc<str>>,
    parsed: &ParsedRegistry,
) -> Option<Doubt> {
    let reading = published.borrow();
    let before: BTreeSet<&Arc<str>> = match &reading.value {
        Some(services) => services.iter().map(|service| &service.name).collect(),
        None => served.iter().collect(),
    };
    let is_empty = parsed.services.is_empty() && parsed.bad.is_empty();
    let is_there = |name: &Arc<str>| {
        parsed.bad.contains_key(name)
            || parsed
                .services
                .binary_search_by(|service| service.name.cmp(name))
                .is_ok()
    };
    let gone = before.iter().filter(|name| !is_there(name));
    let gone: BTreeSet<_> = gone.map(|name| Arc::clone(name)).collect();
    let why = if reading.value.is_none() && is_empty {
        "its first response has no services; a second one must confirm that"
    } else if gone.len() * 2 > before.len() {
        "most of its services are missing; a second response must confirm that"
    } else {
        return None;
    };
    Some(Doubt {
        why,
        gone,
        is_empty,
        before: before.len(),
    })
}

fn take(published: &watch::Sender<Reading<Services>>, parsed: ParsedRegistry) {
    published.send_if_modified(|reading| {
        let before: BTreeMap<_, _> = reading
            .value
            .iter()
            .flat_map(|services| services.iter())
            .map(|service| (Arc::clone(&service.name), Arc::clone(service)))
            .collect();
        let renew = |service: RegistryService| match before.get(&service.name) {
            Some(known) if **known == service => Arc::clone(known),
            _ => Arc::new(service),
        };
        let mut services: Services = parsed.services.into_iter().map(renew).collect();
        let left_out = parsed.bad.iter().map(|(name, why)| {
            let reasons = vec![why.clone()];
            LeftOut::new(&**name, reasons, before.contains_key(name))
        });
        let left_out = left_out.collect();
        // One that has become bad stays as it was.
        services.extend(
            parsed
                .bad
                .keys()
                .filter_map(|name| before.get(name).cloned()),
        );
        services.sort_by(|a, b| a.name.cmp(&b.name));
        services.dedup_by(|a, b| a.name == b.name);
        reading.read_in_part(services, parsed.problems, left_out)
    });
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tokio::sync::mpsc;

    use super::super::parse_registry;
    use super::*;

    type PolledServices = Result<ParsedRegistry, RegistryError>;

    /// A scripted registry, which repeats its last result.
    struct Scripted {
        script: mpsc::UnboundedReceiver<PolledServices>,
        last: PolledServices,
        asked_again: Arc<AtomicUsize>,
    }

    #[async_trait]
    impl Registry for Scripted {
        async fn next(&mut self) -> PolledServices {
            match self.script.recv().await {
                Some(next) => {
                    self.last = next.clone();
                    next
                }
                None => std::future::pending().await,
            }
        }

        async fn again(&mut self) -> PolledServices {
            self.asked_again.fetch_add(1, Ordering::Relaxed);
            if let Ok(next) = self.script.try_recv() {
                self.last = next;
            }
            self.last.clone()
        }
    }

    type Script = mpsc::UnboundedSender<PolledServices>;

    fn scripted() -> (Script, watch::Receiver<Reading<Services>>) {
        let (script, readings, _) = after(&[]);
        (script, readings)
    }

    /// One beside services that are served already.
    fn after(served: &[&str]) -> (Script, watch::Receiver<Reading<Services>>, Arc<AtomicUsize>) {
        let (script, receiver) = mpsc::unbounded_channel();
        let (sender, readings) = watch::channel(Reading::default());
        let asked_again = Arc::new(AtomicUsize::new(0));
        let registry = Scripted {
            script: receiver,
            last: Err(RegistryError::new("nothing yet")),
            asked_again: Arc::clone(&asked_again),
        };
        let served = served.iter().map(|name| Arc::from(*name)).collect();
        tokio::spawn(follow(Box::new(registry), served, sender));
        (script, readings, asked_again)
    }

    fn services(names: &[&str]) -> PolledServices {
        let listed: Vec<_> = names
            .iter()
            .map(|name| format!("{{name: {name}}}"))
            .collect();
        Ok(parse_registry(&format!("services: [{}]", listed.join(", "))).unwrap())
    }

    fn names(reading: &Reading<Services>) -> Vec<String> {
        let services = reading.value.iter().flat_map(|services| services.iter());
        services.map(|service| service.name.to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_changes_nothing_and_what_stays_the_same_is_the_same() {
        let (script, mut readings) = scripted();
        script.send(services(&["a", "b"])).unwrap();
        readings.changed().await.unwrap();
        let first = readings.borrow_and_update().value.clone().unwrap();
        script.send(Err(RegistryError::new("away"))).unwrap();
        readings.changed().await.unwrap();
        let reading = readings.borrow_and_update().clone();
        assert_eq!(
            (names(&reading), reading.failure.as_deref()),
            (vec!["a".into(), "b".into()], Some("away"))
        );
        script.send(services(&["a", "b", "c"])).unwrap();
        readings.changed().await.unwrap();
        let reading = readings.borrow_and_update().clone();
        assert_eq!((names(&reading).len(), &reading.failure), (3, &None));
        assert!(Arc::ptr_eq(&first[0], &reading.value.unwrap()[0]));
    }

    async fn value(readings: &mut watch::Receiver<Reading<Services>>, expected: &[&str]) {
        let is_so = |reading: &Reading<Services>| {
            reading.value.is_some() && reading.failure.is_none() && names(reading) == expected
        };
        let wait = timeout(Duration::from_secs(120), readings.wait_for(is_so)).await;
        let _ = wait.expect("it becomes so").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn that_most_are_gone_is_believed_when_it_is_said_again() {
        let (script, mut readings, asked_again) = after(&[]);
        script.send(services(&["a", "b", "c"])).unwrap();
        value(&mut readings, &["a", "b", "c"]).await;
        // It comes back before it is believed.
        script.send(services(&[])).unwrap();
        script.send(services(&["a", "b", "c"])).unwrap();
        sleep(SETTLE * 2).await;
        assert_eq!(names(&readings.borrow()), ["a", "b", "c"]);
        assert_eq!(asked_again.load(Ordering::Relaxed), 0);

        let gone_at = Instant::now();
        script.send(services(&["a"])).unwrap();
        value(&mut readings, &["a"]).await;
        assert!(gone_at.elapsed() >= SETTLE);
        assert_eq!(
            asked_again.load(Ordering::Relaxed),
            1,
            "silence is no answer"
        );
        // The last one, too.
        script.send(services(&[])).unwrap();
        value(&mut readings, &[]).await;
        assert_eq!(asked_again.load(Ordering::Relaxed), 2);
    }

    /// A second look that fails, or that sees something else, confirms nothing.
    #[tokio::test(start_paused = true)]
    async fn nothing_but_the_same_answer_confirms() {
        struct Torn(VecDeque<PolledServices>, VecDeque<PolledServices>);

        #[async_trait]
        impl Registry for Torn {
            async fn next(&mut self) -> PolledServices {
                match self.0.pop_front() {
                    Some(next) => next,
                    None => std::future::pending().await,
                }
            }

            async fn again(&mut self) -> PolledServices {
                let next = self.1.pop_front();
                next.unwrap_or_else(|| Err(RegistryError::new("away")))
            }
        }

        let (sender, mut readings) = watch::channel(Reading::default());
        let news = [services(&["a", "b", "c"]), services(&[])];
        let again = [services(&["a"]), services(&["a", "b", "c", "d"])];
        let registry = Torn(news.into(), again.into());
        tokio::spawn(follow(Box::new(registry), BTreeSet::new(), sender));
        value(&mut readings, &["a", "b", "c", "d"]).await;

        let (sender, readings) = watch::channel(Reading::default());
        let news = [services(&["a", "b", "c"]), services(&[])];
        let registry = Torn(news.into(), VecDeque::new());
        tokio::spawn(follow(Box::new(registry), BTreeSet::new(), sender));
        sleep(Duration::from_secs(600)).await;
        assert_eq!(names(&readings.borrow()), ["a", "b", "c"]);
        assert_eq!(readings.borrow().failure.as_deref(), Some("away"));
    }

    /// A registry that really has lost most services goes on to change.
    #[tokio::test(start_paused = true)]
    async fn that_most_are_gone_is_believed_although_the_rest_changes() {
        let (script, mut readings, _) = after(&[]);
        script.send(services(&["a", "b", "c"])).unwrap();
        value(&mut readings, &["a", "b", "c"]).await;
        let saying = tokio::spawn(async move {
            for nth in 0.. {
                let others = format!("d{nth}");
                script.send(services(&["a", &others])).unwrap();
                sleep(Duration::from_secs(4)).await;
            }
        });
        let gone_at = Instant::now();
        let is_believed = |reading: &Reading<Services>| names(reading).len() == 2;
        let wait = timeout(Duration::from_secs(60), readings.wait_for(is_believed)).await;
        let _ = wait.expect("it is believed").unwrap();
        assert!(gone_at.elapsed() >= SETTLE);
        saying.abort();
    }

    /// A registry that returns only changes would never return again.
    #[tokio::test(start_paused = true)]
    async fn one_that_could_not_be_asked_again_is_asked_once_more() {
        struct Silent(VecDeque<PolledServices>, usize);

        #[async_trait]
        impl Registry for Silent {
            async fn next(&mut self) -> PolledServices {
                match self.0.pop_front() {
                    Some(next) => next,
                    None => std::future::pending().await,
                }
            }

            async fn again(&mut self) -> PolledServices {
                self.1 += 1;
                match self.1 {
                    1 | 2 => Err(RegistryError::new("away")),
                    _ => services(&["a"]),
                }
            }
        }

        let (sender, mut readings) = watch::channel(Reading::default());
        let registry = Silent([services(&["a", "b", "c"]), services(&["a"])].into(), 0);
        tokio::spawn(follow(Box::new(registry), BTreeSet::new(), sender));
        value(&mut readings, &["a"]).await;
    }

    /// A registry that starts together with the control plane has nothing yet.
    #[tokio::test(start_paused = true)]
    async fn a_first_answer_that_is_empty_or_lacks_most_of_what_is_served_is_not_believed_at_once()
    {
        for (served, first) in [(&[][..], &[][..]), (&["a", "b", "c"], &["a"])] {
            let (script, mut readings, asked_again) = after(served);
            script.send(services(first)).unwrap();
            sleep(SETTLE / 2).await;
            assert!(readings.borrow().value.is_none());
            script.send(services(&["a", "b", "c"])).unwrap();
            value(&mut readings, &["a", "b", "c"]).await;
            assert_eq!(asked_again.load(Ordering::Relaxed), 0);

            let (script, mut readings, asked_again) = after(served);
            script.send(services(first)).unwrap();
            value(&mut readings, first).await;
            assert_eq!(asked_again.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_becomes_bad_stays_as_it_was() {
        let (script, mut readings) = scripted();
        script.send(services(&["a", "b"])).unwrap();
        readings.changed().await.unwrap();
        readings.borrow_and_update();
        let bad = parse_registry("services: [{name: a}, {name: b, provides: 5}]").unwrap();
        script.send(Ok(bad)).unwrap();
        readings.changed().await.unwrap();
        let reading = readings.borrow_and_update().clone();
        assert_eq!(names(&reading), ["a", "b"]);
        assert!(
            reading.problems[0].contains("/services/1/provides"),
            "{:?}",
            reading.problems
        );
        let [left_out] = &reading.left_out[..] else {
            panic!("{:?}", reading.left_out);
        };
        assert_eq!(
            (&*left_out.service, left_out.serves_last_known_good),
            ("b", true)
        );
    }
}
