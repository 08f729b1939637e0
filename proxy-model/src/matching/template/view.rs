//! A public view of templates, for conversion to other pattern languages.

use super::multi_part::Piece;
use super::{Parameter, PathTemplate, Segment};

/// One segment of a [`PathTemplate`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateSegment<'t> {
    /// Literal text, decoded.
    Literal(&'t str),
    /// `{name}`: a segment that is not empty.
    Parameter(TemplateParameter<'t>),
    /// `{name}.{extension?}`: texts and parameters in turn, placed from the end of the segment.
    Parts(Vec<TemplatePart<'t>>),
    /// `{*name}` or `{**name}`: all that is left.
    CatchAll(TemplateParameter<'t>),
}

/// One part of a segment that has several.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplatePart<'t> {
    /// Literal text, decoded.
    Literal(&'t str),
    /// Text that is not empty.
    Parameter(TemplateParameter<'t>),
}

/// A parameter of a [`PathTemplate`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateParameter<'t> {
    /// The parameter's name.
    pub name: &'t str,
    /// True if the parameter is written with a `?`.
    pub optional: bool,
    /// The value when the path leaves it out.
    pub default: Option<&'t str>,
    /// The constraints that the value must meet, as written: `int`, `range(1,5)`.
    pub constraints: Vec<&'t str>,
}

impl PathTemplate {
    /// The segments, in order.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = TemplateSegment<'_>> {
        self.segments.iter().map(|segment| match segment {
            Segment::Literal(literal) => TemplateSegment::Literal(&literal.text),
            Segment::Parameter(parameter) => TemplateSegment::Parameter(view(parameter)),
            Segment::MultiPart(parts) => {
                TemplateSegment::Parts(parts.pieces().iter().map(part).collect())
            }
            Segment::CatchAll { parameter, .. } => TemplateSegment::CatchAll(view(parameter)),
        })
    }

    /// Minimum number of segments of a path. Later segments may be missing.
    pub fn required_segments(&self) -> usize {
        self.required
    }
}

fn part(piece: &Piece) -> TemplatePart<'_> {
    match piece {
        Piece::Literal(literal) => TemplatePart::Literal(&literal.text),
        Piece::Parameter(parameter) => TemplatePart::Parameter(view(parameter)),
    }
}

fn view(parameter: &Parameter) -> TemplateParameter<'_> {
    TemplateParameter {
        name: &parameter.name,
        optional: parameter.optional,
        default: parameter.default.as_deref(),
        constraints: (parameter.constraints.iter())
            .map(super::constraint::Constraint::as_str)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_shows_what_it_is_made_of() {
        let template: PathTemplate = "/Ä pi/{id:int:min(1)=7}/v{n}.{ext?}/{**rest}"
            .parse()
            .unwrap();
        let segments: Vec<_> = template.segments().collect();
        assert_eq!(template.required_segments(), 3);
        let [literal, parameter, parts, catch_all] = &segments[..] else {
            panic!("{segments:?}");
        };
        assert_eq!(*literal, TemplateSegment::Literal("Ä pi"));
        let TemplateSegment::Parameter(parameter) = parameter else {
            panic!("{parameter:?}");
        };
        assert_eq!((parameter.name, parameter.default), ("id", Some("7")));
        assert_eq!(parameter.constraints, ["int", "min(1)"]);
        let TemplateSegment::Parts(parts) = parts else {
            panic!("{parts:?}");
        };
        assert_eq!(parts[0], TemplatePart::Literal("v"));
        assert!(matches!(&parts[3], TemplatePart::Parameter(last) if last.optional));
        assert!(matches!(catch_all, TemplateSegment::CatchAll(rest) if rest.name == "rest"));
    }
}
