//! Default labels of services, from a key.

use std::sync::Arc;

use discovery_core::Labels;
use futures_util::FutureExt;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::labels::strip_prefix;
use crate::client::{ConsulClient, FollowOptions, Followed, Follower, KvPair, Query};

/// Default labels of services.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Defaults {
    /// The last known good labels, with their prefix.
    pub(super) labels: Labels,
    /// The reason why the current value of the key cannot be used.
    pub(super) problem: Option<Arc<str>>,
    /// True if the key has been read.
    pub(super) is_known: bool,
}

impl Defaults {
    /// Adds the default labels that are missing.
    pub(super) fn complete(&self, labels: &mut Labels) {
        for (key, value) in &self.labels {
            let is_said = labels.keys().any(|said| said.eq_ignore_ascii_case(key));
            if !is_said {
                labels.insert(key.clone(), value.clone());
            }
        }
    }

    /// Applies the key's value. After an unusable value, the last known good labels stay.
    fn take(&mut self, pair: Option<&KvPair>, prefix: &str) {
        self.is_known = true;
        match pair.map_or_else(|| Ok(Labels::new()), |pair| read(&pair.value, prefix)) {
            Ok(labels) => {
                self.labels = labels;
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem.into()),
        }
    }
}

/// An object of labels, with or without the prefix.
fn read(value: &[u8], prefix: &str) -> Result<Labels, String> {
    let value = match value.is_empty() {
        true => Ok(Map::new()),
        false => serde_json::from_slice::<Map<String, Value>>(value),
    };
    let object = value.map_err(|error| {
        format!(
            "the defaults are not a JSON object, and those that were last known good apply: {error}"
        )
    })?;
    let labels = object.into_iter().map(|(key, value)| {
        let text = match value {
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                let key = discovery_core::text::shortened(&key, 100);
                return Err(format!(
                    "the default `{key}` is no text, number or boolean, so those that were last known good apply"
                ));
            }
        };
        match strip_prefix(&key, prefix) {
            Some(_) => Ok((key, text)),
            None => Ok((format!("{prefix}{key}"), text)),
        }
    });
    labels.collect()
}

/// Follows the key while it is polled.
pub(super) async fn follow(
    client: ConsulClient,
    options: FollowOptions,
    key: String,
    prefix: String,
    published: watch::Sender<Arc<Defaults>>,
) {
    let token = client.clone();
    let mut follower = Follower::new(options, Query::new(), move |query| {
        let (client, key) = (client.clone(), key.clone());
        async move { client.kv_get(&key, &query).await }.boxed()
    })
    .woken_by(move || token.token_changed());
    let mut defaults = Defaults::default();
    loop {
        match follower.next().await {
            Followed::Changed { answer, .. } => {
                defaults.take(answer.value.as_ref().as_ref(), &prefix)
            }
            Followed::Failed(error) => {
                defaults.is_known = true;
                defaults.problem = Some(error.explained().into());
            }
            // The same value as before, after a failure perhaps.
            Followed::Woken { .. } | Followed::Quiet => {
                if let Some(last) = follower.last() {
                    defaults.take((*last).as_ref(), &prefix);
                }
            }
        }
        published.send_if_modified(|published| {
            let is_news = **published != defaults;
            if is_news {
                *published = Arc::new(defaults.clone());
            }
            is_news
        });
    }
}
