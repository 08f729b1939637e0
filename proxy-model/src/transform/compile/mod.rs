//! The compilation of the maps of a configuration to [`Transforms`].

mod forwarded;
mod values;

use std::sync::Arc;

use http::HeaderName;

use self::values::{
    allow, check_removed_prefix, check_variable, header_name, header_value, method, not_empty,
    own_header, parameter, path, response, switch, writable,
};
use super::entry::TransformEntry;
use super::{
    HeaderCopy, OwnTransforms, Parts, QueryChange, QueryValue, RequestTransform, ResponseTransform,
    TargetTransform, Transforms,
};
use crate::config::TransformConfig;
use crate::foreign;
use crate::id::same_id;
use crate::matching::{Expressions, PathTemplate};
use crate::problem::{Problem, Problems};
use crate::suggest::{did_you_mean, listed, shortened};

impl Transforms {
    /// Compiles a route's transforms. Every entry is checked, and every problem is added to `problems`
    /// under `pointer`, the place of the list. Returns `None` if one of them is an error.
    pub fn compile(
        configs: &[TransformConfig],
        pointer: &str,
        problems: &mut Problems,
    ) -> Option<Self> {
        Self::compile_for(
            None,
            configs,
            pointer,
            (&mut Expressions::default(), &OwnTransforms::default()),
            problems,
        )
    }

    /// Like [`compile`](Self::compile), but also warns of route parameters that the route's template does
    /// not have.
    pub(crate) fn compile_for(
        template: Option<&PathTemplate>,
        configs: &[TransformConfig],
        pointer: &str,
        (expressions, own): (&mut Expressions, &OwnTransforms),
        problems: &mut Problems,
    ) -> Option<Self> {
        let mut draft = Draft::new(template, expressions);
        let errors_before = problems.error_count();
        for (i, map) in configs.iter().enumerate() {
            let place = format!("{pointer}/{i}");
            if let Some((key, check)) = own.of(map) {
                match check(map) {
                    Ok(()) => draft.own.push(i),
                    Err(reason) => problems.push(Problem::error(
                        place,
                        "invalid_transform_value",
                        format!("`{key}` of the program: {reason}"),
                    )),
                }
                continue;
            }
            if let Some(entry) = TransformEntry::read(map, place, own, problems) {
                // Problems are reported where they are found; an entry that has one adds nothing.
                let _ = draft.add(&entry, problems);
            }
        }
        draft.warn_of_conflicts(problems);
        (problems.error_count() == errors_before).then(|| draft.finish())
    }
}

impl Default for Transforms {
    /// Returns the transforms that apply without any configuration.
    fn default() -> Self {
        Draft::new(None, &mut Expressions::default()).finish()
    }
}

/// The transforms of the entries read so far.
struct Draft<'t> {
    /// The route's, if it is known.
    template: Option<&'t PathTemplate>,
    /// Shared by all routes.
    expressions: &'t mut Expressions,
    target: Vec<TargetTransform>,
    original_host: bool,
    request: Vec<RequestTransform>,
    request_copy: Copying,
    response: Vec<ResponseTransform>,
    response_copy: Copying,
    trailers: Vec<ResponseTransform>,
    trailers_copy: Copying,
    forwarders_chosen: bool,
    /// The positions of entries that are transforms of the program.
    own: Vec<usize>,
}

/// The selection of copied headers, by the last switch and by all lists.
#[derive(Default)]
struct Copying {
    off: bool,
    only: Option<Vec<HeaderName>>,
    /// The place where copying was enabled explicitly.
    on_at: Option<String>,
}

impl Copying {
    fn switch(&mut self, entry: &TransformEntry<'_>, problems: &mut Problems) -> Option<()> {
        let is_on = switch(entry, problems)?;
        self.off = !is_on;
        self.on_at = is_on.then(|| entry.place(entry.kind()));
        Some(())
    }

    fn warn_of_conflict(&self, problems: &mut Problems) {
        if let (Some(_), Some(place)) = (&self.only, &self.on_at) {
            problems.push(Problem::warning(
                place.as_str(),
                "conflicting_transforms",
                "a list of allowed headers turns copying off, so this has no effect",
            ));
        }
    }

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

impl<'t> Draft<'t> {
    fn new(template: Option<&'t PathTemplate>, expressions: &'t mut Expressions) -> Self {
        Self {
            template,
            expressions,
            target: Vec::new(),
            original_host: false,
            request: Vec::new(),
            request_copy: Copying::default(),
            response: Vec::new(),
            response_copy: Copying::default(),
            trailers: Vec::new(),
            trailers_copy: Copying::default(),
            forwarders_chosen: false,
            own: Vec::new(),
        }
    }

    fn add(&mut self, entry: &TransformEntry<'_>, problems: &mut Problems) -> Option<()> {
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
            "RequestHeadersCopy" => self.request_copy.switch(entry, problems)?,
            "RequestHeaderOriginalHost" => self.original_host = switch(entry, problems)?,
            "RequestHeadersAllowed" => allow(&mut self.request_copy, entry, problems)?,
            "RequestHeader" | "RequestHeaderRouteValue" | "RequestHeaderRemove" | "ClientCert" => {
                self.request_header(entry, problems)?;
            }
            "X-Forwarded" => self.x_forwarded(entry, problems)?,
            "Forwarded" => self.forwarded(entry, problems)?,
            "ResponseHeadersCopy" => self.response_copy.switch(entry, problems)?,
            "ResponseHeadersAllowed" => allow(&mut self.response_copy, entry, problems)?,
            "ResponseHeader" | "ResponseHeaderRemove" => {
                self.response.push(response(entry, problems)?);
            }
            "ResponseTrailersCopy" => self.trailers_copy.switch(entry, problems)?,
            "ResponseTrailersAllowed" => allow(&mut self.trailers_copy, entry, problems)?,
            "ResponseTrailer" | "ResponseTrailerRemove" => {
                self.trailers.push(response(entry, problems)?);
            }
            kind => unreachable!("{kind} is not in the table of transforms"),
        }
        Some(())
    }

    fn warn_of_conflicts(&self, problems: &mut Problems) {
        for copying in [&self.request_copy, &self.response_copy, &self.trailers_copy] {
            copying.warn_of_conflict(problems);
        }
    }

    /// Warns of a parameter that no request of the route has a value for.
    fn check_parameter(
        &self,
        name: &str,
        key: &str,
        entry: &TransformEntry<'_>,
        problems: &mut Problems,
    ) {
        let Some(template) = self.template else {
            return;
        };
        if template.parameter_names().any(|known| same_id(known, name)) {
            return;
        }
        let known = match template.parameter_names().next() {
            Some(_) => format!("it has {}", listed(template.parameter_names())),
            None => "it has none".to_owned(),
        };
        let mut problem = Problem::warning(
            entry.place(key),
            "unknown_route_parameter",
            format!(
                "the route's path has no parameter `{}`; {known}",
                shortened(name)
            ),
        );
        problem.suggestion = did_you_mean(name, template.parameter_names());
        problems.push(problem);
    }

    fn finish(mut self) -> Transforms {
        if !self.forwarders_chosen {
            self.default_forwarders();
        }
        Transforms(Arc::new(Parts {
            target: self.target.into(),
            original_host: self.original_host,
            request_copy: self.request_copy.finish(),
            request: self.request.into(),
            response_copy: self.response_copy.finish(),
            response: self.response.into(),
            trailers_copy: self.trailers_copy.finish(),
            trailers: self.trailers.into(),
            own: self.own.into(),
        }))
    }

    fn path_pattern(&mut self, entry: &TransformEntry<'_>, problems: &mut Problems) -> Option<()> {
        match PathTemplate::parse_with(entry.value(), self.expressions) {
            Ok(template) => {
                for name in template.parameter_names() {
                    self.check_parameter(name, entry.kind(), entry, problems);
                }
                let place = entry.place(entry.kind());
                problems.extend(foreign::path(entry.value(), place));
                self.target.push(TargetTransform::PathPattern(template));
                Some(())
            }
            Err(error) => {
                let mut problem = entry.invalid(entry.kind(), error.to_string());
                if error.kind().is_too_large() {
                    problem.code = "regex_too_large".into();
                }
                problem.suggestion = error.suggestion().map(str::to_owned);
                problems.push(problem);
                None
            }
        }
    }

    fn query(&mut self, entry: &TransformEntry<'_>, problems: &mut Problems) -> Option<()> {
        let name = not_empty(entry, problems).map(Box::from);
        let change = if entry.kind() == "QueryRemoveParameter" {
            QueryChange::Remove(name?)
        } else {
            let (action, key, text) = entry.set_or_append(problems)?;
            let value = if entry.kind() == "QueryRouteParameter" {
                self.check_parameter(text, key, entry, problems);
                QueryValue::RouteValue(parameter(entry, key, text, problems)?)
            } else {
                check_variable(entry, key, text, problems);
                QueryValue::Text(text.into())
            };
            QueryChange::Value {
                name: name?,
                value,
                action,
            }
        };
        self.target.push(TargetTransform::Query(change));
        Some(())
    }

    fn method(&mut self, entry: &TransformEntry<'_>, problems: &mut Problems) -> Option<()> {
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

    fn request_header(
        &mut self,
        entry: &TransformEntry<'_>,
        problems: &mut Problems,
    ) -> Option<()> {
        let name = header_name(entry, entry.kind(), entry.value(), problems);
        let transform = match entry.kind() {
            "RequestHeaderRemove" => RequestTransform::Remove(name?),
            "ClientCert" => RequestTransform::ClientCert(own_header(name?, entry, problems)?),
            kind => {
                let (action, key, text) = entry.set_or_append(problems)?;
                let name = name.and_then(|name| writable(name, action, entry, problems));
                if kind == "RequestHeader" {
                    let value = header_value(entry, key, text, problems);
                    RequestTransform::Header {
                        name: name?,
                        value: value?,
                        action,
                    }
                } else {
                    self.check_parameter(text, key, entry, problems);
                    let parameter = parameter(entry, key, text, problems);
                    RequestTransform::RouteValue {
                        name: name?,
                        parameter: parameter?,
                        action,
                    }
                }
            }
        };
        self.request.push(transform);
        Some(())
    }
}
