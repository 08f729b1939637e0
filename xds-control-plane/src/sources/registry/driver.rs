//! Drives a registry: what it says becomes what is known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{ParsedRegistry, Registry, RegistryError, Services};
use crate::sources::reading::Reading;
use crate::translate::RegistryService;

/// How long it lasts until it is believed that most services are gone.
const SETTLE: Duration = Duration::from_secs(5);

/// How many services have to be gone for that: more than half of them, and as many as these.
const MOST_GONE: usize = 2;

const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Follows a registry for as long as it is polled.
pub(in crate::sources) async fn follow(
    mut registry: Box<dyn Registry>,
    published: watch::Sender<Reading<Services>>,
) {
    let mut backoff = BACKOFF;
    let mut next = registry.next().await;
    loop {
        match next {
            Ok(parsed) => {
                backoff = BACKOFF;
                if is_shrunk(&published, &parsed) {
                    tracing::warn!(target: crate::sources::TARGET, "most services of the registry are gone; that is believed if it stays so");
                    if let Ok(newer) = timeout(SETTLE, registry.next()).await {
                        next = newer;
                        if next.is_err() {
                            // It is not known any more what is there: the next good answer begins again.
                            let failure = "most services were gone, and then it could not be read";
                            published.send_if_modified(|reading| reading.failed(failure));
                        }
                        continue;
                    }
                }
                take(&published, parsed);
            }
            Err(RegistryError(failure)) => {
                let failure = Arc::clone(&failure);
                published.send_if_modified(|reading| {
                    let is_news = reading.failed(Arc::clone(&failure));
                    if is_news {
                        tracing::warn!(target: crate::sources::TARGET, failure = &*failure, "the registry cannot be read; what was last good stays");
                    }
                    is_news
                });
                sleep(backoff.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                backoff = backoff.saturating_mul(2).min(BACKOFF_MAX);
            }
        }
        next = registry.next().await;
    }
}

fn is_shrunk(published: &watch::Sender<Reading<Services>>, parsed: &ParsedRegistry) -> bool {
    let reading = published.borrow();
    let Some(before) = &reading.value else {
        return false;
    };
    let is_there = |name: &Arc<str>| {
        parsed.bad.contains_key(name)
            || parsed
                .services
                .binary_search_by(|service| service.name.cmp(name))
                .is_ok()
    };
    let gone = before
        .iter()
        .filter(|service| !is_there(&service.name))
        .count();
    gone >= MOST_GONE && gone * 2 > before.len()
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
        // One that has become bad stays as it was.
        services.extend(
            parsed
                .bad
                .keys()
                .filter_map(|name| before.get(name).cloned()),
        );
        services.sort_by(|a, b| a.name.cmp(&b.name));
        services.dedup_by(|a, b| a.name == b.name);
        reading.read(services, parsed.problems)
    });
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::super::parse_registry;
    use super::*;

    /// One that says what it is told to.
    struct Scripted(mpsc::UnboundedReceiver<Result<ParsedRegistry, RegistryError>>);

    #[async_trait]
    impl Registry for Scripted {
        async fn next(&mut self) -> Result<ParsedRegistry, RegistryError> {
            match self.0.recv().await {
                Some(next) => next,
                None => std::future::pending().await,
            }
        }
    }

    type Script = mpsc::UnboundedSender<Result<ParsedRegistry, RegistryError>>;

    fn scripted() -> (Script, watch::Receiver<Reading<Services>>) {
        let (script, receiver) = mpsc::unbounded_channel();
        let (sender, readings) = watch::channel(Reading::default());
        tokio::spawn(follow(Box::new(Scripted(receiver)), sender));
        (script, readings)
    }

    fn services(names: &[&str]) -> Result<ParsedRegistry, RegistryError> {
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

    #[tokio::test(start_paused = true)]
    async fn that_most_are_gone_is_believed_when_it_stays_so() {
        let (script, mut readings) = scripted();
        script.send(services(&["a", "b", "c"])).unwrap();
        readings.changed().await.unwrap();
        readings.borrow_and_update();
        // It comes back before it is believed, and nobody has seen anything.
        script.send(services(&[])).unwrap();
        script.send(services(&["a", "b", "c"])).unwrap();
        sleep(SETTLE * 2).await;
        assert!(!readings.has_changed().unwrap());

        let gone_at = Instant::now();
        script.send(services(&["a"])).unwrap();
        readings.changed().await.unwrap();
        assert!(gone_at.elapsed() >= SETTLE);
        assert_eq!(names(&readings.borrow_and_update()), ["a"]);
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
    }
}
