//! `X-Forwarded` and `Forwarded`.

use http::HeaderName;
use http::header::FORWARDED;

use super::Draft;
use super::values::{header_name, unknown_name};
use crate::problem::{Problem, Problems};
use crate::suggest::{did_you_mean, listed, shortened};
use crate::transform::entry::TransformEntry;
use crate::transform::{
    Forwarded, ForwardedAction, NodeFormat, RequestTransform, XForwarded, XForwardedPart,
};

impl Draft<'_> {
    pub(super) fn x_forwarded(
        &mut self,
        entry: &TransformEntry<'_>,
        problems: &mut Problems,
    ) -> Option<()> {
        self.forwarders_chosen = true;
        let general = forwarded_action(entry, entry.kind(), entry.value(), problems);
        let mut any = false;
        let prefix = entry.partner("HeaderPrefix");
        // All names are valid if one is.
        let prefix_is_valid = prefix.is_none_or(|prefix| {
            header_name(entry, "HeaderPrefix", &format!("{prefix}For"), problems).is_some()
        });
        for part in PARTS {
            let action = match entry.partner(part.name()) {
                Some(text) => forwarded_action(entry, part.name(), text, problems),
                None => general,
            };
            let name = match prefix {
                Some(_) if !prefix_is_valid => None,
                Some(prefix) => {
                    let name = format!("{prefix}{}", part.name());
                    header_name(entry, "HeaderPrefix", &name, problems)
                }
                None => Some(default_name(part)),
            };
            let (Some(action), Some(name)) = (action, name) else {
                continue;
            };
            let Action::On(action) = action else {
                continue;
            };
            any = true;
            self.request.push(RequestTransform::XForwarded(XForwarded {
                name,
                part,
                action,
            }));
        }
        if any {
            self.request.push(RequestTransform::Remove(FORWARDED));
        }
        Some(())
    }

    pub(super) fn forwarded(
        &mut self,
        entry: &TransformEntry<'_>,
        problems: &mut Problems,
    ) -> Option<()> {
        self.forwarders_chosen = true;
        let errors_before = problems.error_count();
        let mut told = Forwarded {
            proto: false,
            host: false,
            r#for: None,
            by: None,
            action: ForwardedAction::Set,
        };
        let words = entry
            .value()
            .split([',', ' '])
            .filter(|word| !word.is_empty());
        for word in words {
            match word.to_ascii_lowercase().as_str() {
                "for" => told.r#for = Some(NodeFormat::default()),
                "by" => told.by = Some(NodeFormat::default()),
                "host" => told.host = true,
                "proto" => told.proto = true,
                word => {
                    let message = format!("`{}` is not one of {}", shortened(word), listed(WORDS));
                    let mut problem = entry.invalid(entry.kind(), message);
                    problem.suggestion = did_you_mean(word, WORDS);
                    problems.push(problem);
                }
            }
        }
        node_format(entry, "ForFormat", "for", &mut told.r#for, problems);
        node_format(entry, "ByFormat", "by", &mut told.by, problems);
        let action = match entry.partner("Action") {
            Some(text) => forwarded_action(entry, "Action", text, problems)?,
            None => Action::On(ForwardedAction::Set),
        };
        let says_something = told.proto || told.host || told.r#for.is_some() || told.by.is_some();
        let Action::On(action) = action else {
            return Some(());
        };
        if problems.error_count() > errors_before {
            return None;
        }
        if !says_something {
            // YARP writes no header then, and no `X-Forwarded-…` either, which is surprising for an empty
            // list.
            problems.push(
                entry
                    .invalid(
                        entry.kind(),
                        format!("the list names none of {}", listed(WORDS)),
                    )
                    .with_suggestion(
                        "write `for,host,proto`, or `\"Action\": \"Off\"` for no header",
                    ),
            );
            return None;
        }
        told.action = action;
        self.request.push(RequestTransform::Forwarded(told));
        for part in PARTS {
            self.request
                .push(RequestTransform::Remove(default_name(part)));
        }
        Some(())
    }

    /// Adds the transforms that apply if the configuration does not mention forwarding headers.
    pub(super) fn default_forwarders(&mut self) {
        for part in PARTS {
            self.request.push(RequestTransform::XForwarded(XForwarded {
                name: default_name(part),
                part,
                action: ForwardedAction::Set,
            }));
        }
        self.request.push(RequestTransform::Remove(FORWARDED));
    }
}

/// The parameters of `Forwarded` (RFC 7239 section 4).
const WORDS: [&str; 4] = ["for", "by", "host", "proto"];

/// The parts, in the order in which YARP writes them.
const PARTS: [XForwardedPart; 4] = [
    XForwardedPart::For,
    XForwardedPart::Prefix,
    XForwardedPart::Host,
    XForwardedPart::Proto,
];

fn default_name(part: XForwardedPart) -> HeaderName {
    HeaderName::from_static(match part {
        XForwardedPart::For => "x-forwarded-for",
        XForwardedPart::Prefix => "x-forwarded-prefix",
        XForwardedPart::Host => "x-forwarded-host",
        XForwardedPart::Proto => "x-forwarded-proto",
    })
}

/// The action as written. `Off` is not kept in the compiled form.
#[derive(Clone, Copy)]
enum Action {
    On(ForwardedAction),
    Off,
}

fn forwarded_action(
    entry: &TransformEntry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<Action> {
    // As YARP does, these are compared with their case; `When` and the formats of nodes are not.
    const ACTIONS: [(&str, Action); 4] = [
        ("Set", Action::On(ForwardedAction::Set)),
        ("Append", Action::On(ForwardedAction::Append)),
        ("Remove", Action::On(ForwardedAction::Remove)),
        ("Off", Action::Off),
    ];
    let found = ACTIONS.into_iter().find(|(name, _)| *name == text.trim());
    if found.is_none() {
        problems.push(unknown_name(
            entry,
            key,
            text,
            ACTIONS.map(|(name, _)| name),
        ));
    }
    found.map(|(_, action)| action)
}

fn node_format(
    entry: &TransformEntry<'_>,
    key: &str,
    word: &str,
    format: &mut Option<NodeFormat>,
    problems: &mut Problems,
) {
    let Some(text) = entry.partner(key) else {
        return;
    };
    let named = NodeFormat::NAMED
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
    match (named, format) {
        (None, _) => {
            let names = NodeFormat::NAMED.map(|(name, _)| name);
            problems.push(unknown_name(entry, key, text, names));
        }
        (Some((_, named)), Some(format)) => *format = named,
        (Some(_), None) => problems.push(
            Problem::error(
                entry.place(key),
                "unexpected_transform_key",
                format!("`{key}` has no effect, since `Forwarded` does not name `{word}`"),
            )
            .with_suggestion(format!("add `{word}` to the list or remove `{key}`")),
        ),
    }
}
