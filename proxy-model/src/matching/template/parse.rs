//! The parser of route templates.
//!
//! The grammar, with its corner cases, is that of ASP.NET Core: the same templates are accepted, with the
//! same meaning, and the same are rejected. Constraints are checked too, which ASP.NET Core does only when
//! it begins to route.

use std::collections::HashSet;
use std::ops::Range;

use super::constraint::Constraint;
use super::error::{TemplateError, TemplateErrorKind as Kind};
use super::expressions::Expressions;
use super::multi_part::{MultiPart, Piece};
use super::parameter::Parameter;
use super::{Literal, MAX_LENGTH, MAX_PARAMETERS, MAX_PARTS, MAX_SEGMENTS, Segment};
use crate::matching::text::folded;

/// The segments, and how many parameters they have.
pub(super) fn parse(
    text: &str,
    expressions: &mut Expressions,
) -> Result<(Vec<Segment>, usize), TemplateError> {
    if text.len() > MAX_LENGTH {
        return Err(TemplateError::new(0, Kind::TooLong));
    }
    let start = match text.as_bytes() {
        [b'~', b'/', ..] => 2,
        [b'/', ..] => 1,
        [b'~', ..] => return Err(TemplateError::new(0, Kind::Tilde)),
        _ => 0,
    };
    let mut parser = Parser {
        text,
        at: start,
        names: HashSet::new(),
        expressions,
    };
    let segments = parser.segments()?;
    Ok((segments, parser.names.len()))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Folded.
    names: HashSet<Box<str>>,
    expressions: &'a mut Expressions,
}

/// A part of a segment before it is known whether the segment has others.
enum Token {
    Literal(String),
    Parameter { parsed: Parsed, offset: usize },
}

/// The content of the braces of a parameter.
struct Parsed {
    parameter: Parameter,
    kind: ParameterKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ParameterKind {
    Plain,
    CatchAll { keeps_slashes: bool },
}

impl Parser<'_> {
    fn segments(&mut self) -> Result<Vec<Segment>, TemplateError> {
        let mut segments = Vec::new();
        let mut catch_all: Option<(usize, String)> = None;
        while let Some(byte) = self.peek() {
            if byte == b'/' {
                return Err(TemplateError::new(self.at, Kind::EmptySegment));
            }
            if let Some((offset, name)) = catch_all {
                return Err(TemplateError::new(offset, Kind::CatchAllNotLast { name }));
            }
            let offset = self.at;
            if segments.len() == MAX_SEGMENTS {
                return Err(TemplateError::new(offset, Kind::TooManySegments));
            }
            let segment = self.segment()?;
            catch_all = match &segment {
                Segment::CatchAll { parameter, .. } => Some((offset, (*parameter.name).into())),
                _ => None,
            };
            segments.push(segment);
            // The `/` after the segment, if this is not the end.
            self.at += 1;
        }
        Ok(segments)
    }

    fn segment(&mut self) -> Result<Segment, TemplateError> {
        let mut tokens = Vec::new();
        let offset = self.at;
        while let Some(byte) = self.peek() {
            if byte != b'/' && tokens.len() == MAX_PARTS {
                return Err(TemplateError::new(offset, Kind::TooManyParts));
            }
            let token = match byte {
                b'/' => break,
                b'{' if self.byte(self.at + 1) != Some(b'{') => self.parameter()?,
                _ => self.literal()?,
            };
            tokens.push(token);
        }
        if tokens.len() == 1 {
            let token = tokens.pop().expect("there is one");
            return Ok(match token {
                Token::Literal(text) => Segment::Literal(Literal::new(text)),
                Token::Parameter { parsed, .. } => match parsed.kind {
                    ParameterKind::Plain => Segment::Parameter(parsed.parameter),
                    ParameterKind::CatchAll { keeps_slashes } => Segment::CatchAll {
                        parameter: parsed.parameter,
                        keeps_slashes,
                    },
                },
            });
        }
        check_parts(&tokens)?;
        let pieces = tokens.into_iter().map(|token| match token {
            Token::Literal(text) => Piece::Literal(Literal::new(text)),
            Token::Parameter { parsed, .. } => Piece::Parameter(parsed.parameter),
        });
        Ok(Segment::MultiPart(MultiPart::new(pieces.collect())))
    }

    fn literal(&mut self) -> Result<Token, TemplateError> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            let doubled = self.byte(self.at + 1) == Some(byte);
            match byte {
                b'/' => break,
                b'{' | b'}' if doubled => self.at += 1,
                b'{' => break,
                b'}' => return Err(TemplateError::new(self.at, Kind::StrayBrace)),
                b'?' => return Err(TemplateError::new(self.at, Kind::QuestionMark)),
                _ => {}
            }
            self.at += 1;
        }
        Ok(Token::Literal(unescaped(&self.text[start..self.at])))
    }

    fn parameter(&mut self) -> Result<Token, TemplateError> {
        let offset = self.at;
        let inside = self.braces()?;
        let text = unescaped(&self.text[inside]);
        let error = |kind| TemplateError::new(offset, kind);
        if self.names.len() == MAX_PARAMETERS {
            return Err(error(Kind::TooManyParameters));
        }
        let parsed = parse_parameter(&text, self.names.len(), self.expressions).map_err(error)?;
        let name = &parsed.parameter.name;
        if name.is_empty() {
            return Err(error(Kind::EmptyName));
        }
        if let Some(character) = name.chars().find(|c| "/{}?*".contains(*c)) {
            let name = (**name).into();
            return Err(error(Kind::InvalidName { name, character }));
        }
        if !self.names.insert(folded(name)) {
            let name = (**name).into();
            return Err(error(Kind::DuplicateName { name }));
        }
        Ok(Token::Parameter { parsed, offset })
    }

    /// Skips a parameter, and returns the range of the text between its braces.
    fn braces(&mut self) -> Result<Range<usize>, TemplateError> {
        let offset = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            let next = self.byte(self.at + 1);
            match byte {
                b'{' | b'}' if next == Some(byte) => self.at += 1,
                b'{' if next.is_some() => {
                    return Err(TemplateError::new(self.at, Kind::BraceInParameter));
                }
                b'}' => {
                    self.at += 1;
                    return Ok(offset + 1..self.at - 1);
                }
                _ => {}
            }
            self.at += 1;
        }
        Err(TemplateError::new(offset, Kind::UnclosedBrace))
    }

    fn peek(&self) -> Option<u8> {
        self.byte(self.at)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }
}

fn unescaped(text: &str) -> String {
    text.replace("}}", "}").replace("{{", "{")
}

/// Checks the parts of a segment that has several.
fn check_parts(tokens: &[Token]) -> Result<(), TemplateError> {
    let mut before: Option<&Token> = None;
    for (index, token) in tokens.iter().enumerate() {
        if let Token::Parameter { parsed, offset } = token {
            let name = || parsed.parameter.name.as_ref().into();
            let is_last = index + 1 == tokens.len();
            let error = match (parsed.kind, before) {
                (ParameterKind::CatchAll { .. }, _) => Some(Kind::CatchAllInPart { name: name() }),
                (_, Some(Token::Parameter { .. })) => {
                    Some(Kind::AdjacentParameters { name: name() })
                }
                _ if !parsed.parameter.optional => None,
                _ if !is_last => Some(Kind::OptionalNotLast { name: name() }),
                (_, Some(Token::Literal(text))) if text == "." => None,
                _ => Some(Kind::OptionalWithoutPeriod { name: name() }),
            };
            if let Some(kind) = error {
                return Err(TemplateError::new(*offset, kind));
            }
        }
        before = Some(token);
    }
    Ok(())
}

/// Parses the text between the braces, with braces no longer doubled.
fn parse_parameter(
    text: &str,
    index: usize,
    expressions: &mut Expressions,
) -> Result<Parsed, Kind> {
    let (kind, rest) = match text.strip_prefix('*') {
        None => (ParameterKind::Plain, text),
        Some(one) => match one.strip_prefix('*') {
            None => (
                ParameterKind::CatchAll {
                    keeps_slashes: false,
                },
                one,
            ),
            Some(two) => (
                ParameterKind::CatchAll {
                    keeps_slashes: true,
                },
                two,
            ),
        },
    };
    let (rest, optional) = match rest.strip_suffix('?') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    // A name may begin with `:` or `=`, strange as that looks.
    let name_end = rest
        .char_indices()
        .skip(1)
        .find(|(_, c)| matches!(c, ':' | '='))
        .map_or(rest.len(), |(at, _)| at);
    let (name, rest) = rest.split_at(name_end);
    let (constraints, default) = split_constraints(rest);
    if optional && kind != ParameterKind::Plain {
        return Err(Kind::OptionalCatchAll { name: name.into() });
    }
    if optional && default.is_some() {
        return Err(Kind::OptionalDefault { name: name.into() });
    }
    let constraints = constraints
        .into_iter()
        .filter(|constraint| !constraint.is_empty())
        .map(|constraint| Constraint::parse(constraint, expressions))
        .collect::<Result<_, _>>()?;
    Ok(Parsed {
        parameter: Parameter {
            name: name.into(),
            index,
            optional,
            default: default.map(Into::into),
            constraints,
        },
        kind,
    })
}

/// Splits `:a:b(c)=d` into the constraints `a` and `b(c)` and the default value `d`.
fn split_constraints(text: &str) -> (Vec<&str>, Option<&str>) {
    let mut constraints = Vec::new();
    let mut rest = text;
    while let Some(constraint) = rest.strip_prefix(':') {
        let end = constraint_end(constraint);
        constraints.push(&constraint[..end]);
        rest = &constraint[end..];
    }
    (constraints, rest.strip_prefix('='))
}

/// Returns the end of the constraint that `text` begins with: a `:`, a `=` or the end of the text.
///
/// Within parentheses, only a `)` before one of these ends it, and a `:` or `=` takes everything up to the
/// next `)` with it, so that expressions can contain all three.
fn constraint_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_end = |at: usize| matches!(bytes.get(at), None | Some(b':' | b'='));
    let mut at = 0;
    while !is_end(at) && bytes[at] != b'(' {
        at += 1;
    }
    if is_end(at) {
        return at;
    }
    at += 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b')' if is_end(at + 1) => return at + 1,
            b':' | b'=' => match text[at..].find(')') {
                Some(closing) => at += closing,
                None => return at,
            },
            _ => {}
        }
        at += 1;
    }
    at
}
