//! From the maps of a configuration to [`Transforms`].

use http::header::{CONTENT_LENGTH, FORWARDED, HOST, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Method};

use super::entry::Entry;
use super::forwarded::{Forwarded, ForwardedAction, NodeFormat, XForwarded, XForwardedPart};
use super::{
    HeaderChange, HeaderCopy, PathText, QueryChange, QueryValue, RequestTransform,
    ResponseCondition, ResponseTransform, SetOrAppend, TargetTransform, Transforms,
};
use crate::config::TransformConfig;
use crate::matching::PathTemplate;
use crate::problem::{Problem, Problems};
use crate::suggest::{did_you_mean, listed, shortened};

impl Transforms {
    /// Compiles a route's transforms. Every entry is looked at, and every problem is added to `problems` under
    /// `pointer`, the place of the list; `None` when one of them is an error.
    pub fn compile(
        configs: &[TransformConfig],
        pointer: &str,
        problems: &mut Problems,
    ) -> Option<Self> {
        let mut draft = Draft::default();
        let errors_before = problems.error_count();
        for (i, map) in configs.iter().enumerate() {
            if let Some(entry) = Entry::read(map, format!("{pointer}/{i}"), problems) {
                // Problems are reported where they are found; an entry that has one adds nothing.
                let _ = draft.add(&entry, problems);
            }
        }
        (problems.error_count() == errors_before).then(|| draft.finish())
    }
}

impl Default for Transforms {
    /// What is done without any configuration.
    fn default() -> Self {
        Draft::default().finish()
    }
}

/// What the entries so far ask for.
#[derive(Default)]
struct Draft {
    target: Vec<TargetTransform>,
    original_host: bool,
    request: Vec<RequestTransform>,
    request_copy: Copying,
    response: Vec<ResponseTransform>,
    response_copy: Copying,
    trailers: Vec<ResponseTransform>,
    trailers_copy: Copying,
    forwarders_chosen: bool,
}

/// Which headers are copied, by the last switch and by all lists.
#[derive(Default)]
struct Copying {
    off: bool,
    only: Option<Vec<HeaderName>>,
}

impl Copying {
    fn finish(self) -> HeaderCopy {
        match self {
            Self {
                only: Some(names), ..
            } => HeaderCopy::Only(names.into()),
            Self { off: true, .. } => HeaderCopy::None,
            Self { .. } => HeaderCopy::All,
        }
    }
}

impl Draft {
    fn add(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
        match entry.kind() {
            "PathSet" => self.target.push(TargetTransform::PathSet(path(entry))),
            "PathPrefix" => self.target.push(TargetTransform::PathPrefix(path(entry))),
            "PathRemovePrefix" => {
                let prefix = path(entry);
                check_removed_prefix(&prefix, entry, problems);
                self.target.push(TargetTransform::PathRemovePrefix(prefix));
            }
            "PathPattern" => self.path_pattern(entry, problems)?,
            "QueryValueParameter" | "QueryRouteParameter" | "QueryRemoveParameter" => {
                self.query(entry, problems)?;
            }
            "HttpMethodChange" => self.method(entry, problems)?,
            "RequestHeadersCopy" => self.request_copy.off = !switch(entry, problems)?,
            "RequestHeaderOriginalHost" => self.original_host = switch(entry, problems)?,
            "RequestHeadersAllowed" => allow(&mut self.request_copy, entry, problems)?,
            "RequestHeader" | "RequestHeaderRouteValue" | "RequestHeaderRemove" | "ClientCert" => {
                self.request_header(entry, problems)?;
            }
            "X-Forwarded" => self.x_forwarded(entry, problems)?,
            "Forwarded" => self.forwarded(entry, problems)?,
            "ResponseHeadersCopy" => self.response_copy.off = !switch(entry, problems)?,
            "ResponseHeadersAllowed" => allow(&mut self.response_copy, entry, problems)?,
            "ResponseHeader" | "ResponseHeaderRemove" => {
                self.response.push(response(entry, problems)?);
            }
            "ResponseTrailersCopy" => self.trailers_copy.off = !switch(entry, problems)?,
            "ResponseTrailersAllowed" => allow(&mut self.trailers_copy, entry, problems)?,
            "ResponseTrailer" | "ResponseTrailerRemove" => {
                self.trailers.push(response(entry, problems)?);
            }
            kind => unreachable!("{kind} is not in the table of transforms"),
        }
        Some(())
    }

    fn finish(mut self) -> Transforms {
        if !self.forwarders_chosen {
            for part in PARTS {
                self.request.push(RequestTransform::XForwarded(XForwarded {
                    name: default_name(part),
                    part,
                    action: ForwardedAction::Set,
                }));
            }
            self.request.push(RequestTransform::Remove(FORWARDED));
        }
        Transforms {
            target: self.target.into(),
            original_host: self.original_host,
            request_copy: self.request_copy.finish(),
            request: self.request.into(),
            response_copy: self.response_copy.finish(),
            response: self.response.into(),
            trailers_copy: self.trailers_copy.finish(),
            trailers: self.trailers.into(),
        }
    }

    fn path_pattern(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
        match PathTemplate::parse(entry.value()) {
            Ok(template) => {
                self.target.push(TargetTransform::PathPattern(template));
                Some(())
            }
            Err(error) => {
                let mut problem = entry.invalid(entry.kind(), error.to_string());
                problem.suggestion = error.suggestion().map(str::to_owned);
                problems.push(problem);
                None
            }
        }
    }

    fn query(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
        let name = Box::from(not_empty(entry, problems)?);
        let change = if entry.kind() == "QueryRemoveParameter" {
            QueryChange::Remove(name)
        } else {
            let (action, key, text) = entry.set_or_append(problems)?;
            let value = if entry.kind() == "QueryRouteParameter" {
                QueryValue::RouteValue(parameter(entry, key, text, problems)?)
            } else {
                QueryValue::Text(text.into())
            };
            QueryChange::Value {
                name,
                value,
                action,
            }
        };
        self.target.push(TargetTransform::Query(change));
        Some(())
    }

    fn method(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
        let from = method(entry, entry.kind(), entry.value(), problems);
        let to = entry
            .required("Set", problems)
            .and_then(|text| method(entry, "Set", text, problems));
        self.target.push(TargetTransform::Method {
            from: from?,
            to: to?,
        });
        Some(())
    }

    fn request_header(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
        let name = header_name(entry, entry.kind(), entry.value(), problems);
        let transform = match entry.kind() {
            "RequestHeaderRemove" => RequestTransform::Remove(name?),
            "ClientCert" => RequestTransform::ClientCert(name?),
            kind => {
                let (action, key, text) = entry.set_or_append(problems)?;
                let name = writable(name?, action, entry, problems)?;
                if kind == "RequestHeader" {
                    let value = header_value(entry, key, text, problems)?;
                    RequestTransform::Header {
                        name,
                        value,
                        action,
                    }
                } else {
                    RequestTransform::RouteValue {
                        name,
                        parameter: parameter(entry, key, text, problems)?,
                        action,
                    }
                }
            }
        };
        self.request.push(transform);
        Some(())
    }

    fn x_forwarded(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
        self.forwarders_chosen = true;
        let general = forwarded_action(entry, entry.kind(), entry.value(), problems);
        let mut any = false;
        for part in PARTS {
            let action = match entry.partner(part.name()) {
                Some(text) => forwarded_action(entry, part.name(), text, problems),
                None => general,
            };
            let name = match entry.partner("HeaderPrefix") {
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

    fn forwarded(&mut self, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
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
                    const WORDS: [&str; 4] = ["for", "by", "host", "proto"];
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
        if problems.error_count() > errors_before || !says_something {
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
}

/// In the order in which YARP writes them.
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

/// An action as it is written, of which `Off` leaves no trace in the compiled form.
#[derive(Clone, Copy)]
enum Action {
    On(ForwardedAction),
    Off,
}

fn forwarded_action(
    entry: &Entry<'_>,
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
    entry: &Entry<'_>,
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

fn response(entry: &Entry<'_>, problems: &mut Problems) -> Option<ResponseTransform> {
    const CONDITIONS: [(&str, ResponseCondition); 3] = [
        ("Success", ResponseCondition::Success),
        ("Failure", ResponseCondition::Failure),
        ("Always", ResponseCondition::Always),
    ];
    let condition = match entry.partner("When") {
        None => Some(ResponseCondition::default()),
        Some(text) => {
            let found = CONDITIONS
                .into_iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
            if found.is_none() {
                problems.push(unknown_name(
                    entry,
                    "When",
                    text,
                    CONDITIONS.map(|(name, _)| name),
                ));
            }
            found.map(|(_, condition)| condition)
        }
    };
    let name = header_name(entry, entry.kind(), entry.value(), problems);
    let change = if entry.kind().ends_with("Remove") {
        HeaderChange::Remove(name?)
    } else {
        let (action, key, text) = entry.set_or_append(problems)?;
        let value = header_value(entry, key, text, problems);
        let name = writable(name?, action, entry, problems)?;
        match action {
            SetOrAppend::Set => HeaderChange::Set(name, value?),
            SetOrAppend::Append => HeaderChange::Append(name, value?),
        }
    };
    Some(ResponseTransform {
        condition: condition?,
        change,
    })
}

fn path(entry: &Entry<'_>) -> PathText {
    PathText::new(entry.value())
}

fn check_removed_prefix(prefix: &PathText, entry: &Entry<'_>, problems: &mut Problems) {
    if prefix.as_str().len() > 1 && prefix.as_str().ends_with('/') {
        let text = entry.value();
        problems.push(
            Problem::warning(
                entry.place(entry.kind()),
                "trailing_slash",
                format!(
                    "`{}` is removed only where another `/` or the end follows it",
                    shortened(text)
                ),
            )
            .with_suggestion(format!("write `{}`", shortened(text.trim_end_matches('/')))),
        );
    }
}

fn switch(entry: &Entry<'_>, problems: &mut Problems) -> Option<bool> {
    let text = entry.value().trim();
    if text.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Some(false);
    }
    problems.push(unknown_name(entry, entry.kind(), text, ["true", "false"]));
    None
}

fn allow(copying: &mut Copying, entry: &Entry<'_>, problems: &mut Problems) -> Option<()> {
    let errors_before = problems.error_count();
    let names = entry.value().split(';').map(str::trim);
    let names: Vec<HeaderName> = names
        .filter(|name| !name.is_empty())
        .filter_map(|name| header_name(entry, entry.kind(), name, problems))
        .collect();
    if problems.error_count() > errors_before {
        return None;
    }
    copying.only.get_or_insert_default().extend(names);
    Some(())
}

fn method(entry: &Entry<'_>, key: &str, text: &str, problems: &mut Problems) -> Option<Method> {
    const KNOWN: [Method; 9] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    if let Some(known) = KNOWN
        .into_iter()
        .find(|known| known.as_str().eq_ignore_ascii_case(text))
    {
        return Some(known);
    }
    let method = Method::from_bytes(text.as_bytes());
    if method.is_err() {
        let message = format!(
            "`{}` is not a method (RFC 9110 section 9.1)",
            shortened(text)
        );
        problems.push(entry.invalid(key, message));
    }
    method.ok()
}

fn header_name(
    entry: &Entry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes());
    if name.is_err() {
        let message = format!(
            "`{}` is not a header name (RFC 9110 section 5.1)",
            shortened(text)
        );
        problems.push(entry.invalid(key, message));
    }
    name.ok()
}

fn header_value(
    entry: &Entry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<HeaderValue> {
    let value = HeaderValue::from_bytes(text.as_bytes());
    if value.is_err() {
        // The value is not shown: it may be a secret.
        let message = "a header value may not hold line breaks or other control characters";
        problems.push(entry.invalid(key, message.to_owned()));
    }
    value.ok()
}

/// `name`, unless the proxy writes that header itself or it cannot have a second value.
fn writable(
    name: HeaderName,
    action: SetOrAppend,
    entry: &Entry<'_>,
    problems: &mut Problems,
) -> Option<HeaderName> {
    if name == CONTENT_LENGTH || name == TRANSFER_ENCODING {
        // A body framed otherwise than its headers say is how requests are smuggled (RFC 9112 section 11.2).
        problems.push(Problem::warning(
            entry.place(entry.kind()),
            "framing_header",
            format!(
                "`{name}` says how the body is framed, which the proxy decides; this has no effect"
            ),
        ));
        return None;
    }
    if name == HOST && action == SetOrAppend::Append && entry.kind().starts_with("Request") {
        problems.push(
            entry
                .invalid(
                    "Append",
                    "a request has one `Host` (RFC 9112 section 3.2)".to_owned(),
                )
                .with_suggestion("use `Set`"),
        );
        return None;
    }
    Some(name)
}

fn not_empty<'a>(entry: &Entry<'a>, problems: &mut Problems) -> Option<&'a str> {
    if entry.value().is_empty() {
        problems.push(entry.invalid(entry.kind(), format!("`{}` is empty", entry.kind())));
        return None;
    }
    Some(entry.value())
}

/// The name of a route parameter.
fn parameter(
    entry: &Entry<'_>,
    key: &str,
    text: &str,
    problems: &mut Problems,
) -> Option<Box<str>> {
    if text.is_empty() {
        problems.push(entry.invalid(key, "the name of a route parameter is empty".to_owned()));
        return None;
    }
    Some(text.into())
}

fn unknown_name<const N: usize>(
    entry: &Entry<'_>,
    key: &str,
    text: &str,
    names: [&'static str; N],
) -> Problem {
    let message = format!("`{}` is not one of {}", shortened(text), listed(names));
    let mut problem = entry.invalid(key, message);
    problem.suggestion = did_you_mean(text, names);
    problem
}
