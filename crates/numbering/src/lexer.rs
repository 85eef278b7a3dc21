//! Cuts a template into literal text and tokens. Knows no token by name.

use super::error::excerpt;
use super::template_error::{Place, TemplateError, TokenFlaw};

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Text that every number shows, braces already unescaped.
    Literal {
        /// The text.
        text: String,
        /// Where it begins.
        at: Place,
    },
    /// `{NAME}` or `{NAME:arguments}`.
    Token(Token<'t>),
}

/// A token as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// The text before the first colon.
    pub(super) name: &'t str,
    /// The text after it; colons are kept, because a date pattern may hold some.
    pub(super) arguments: Option<&'t str>,
    /// The token with its braces.
    pub(super) source: &'t str,
    /// Where it begins.
    pub(super) at: Place,
}

impl Token<'_> {
    /// An error at this token.
    pub(super) fn error(&self, flaw: TokenFlaw) -> TemplateError {
        TemplateError::Token { token: excerpt(self.source), at: self.at, flaw }
    }
}

/// Cuts a template into pieces; neighbouring literals are one piece.
pub(super) fn lex(template: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut literal_from = 0;
    let mut offset = 0;
    while let Some(next) = template[offset..].chars().next() {
        if literal.is_empty() {
            literal_from = offset;
        }
        let rest = &template[offset..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            literal.push(next);
            offset += 2;
        } else if next == '{' {
            if !literal.is_empty() {
                let at = Place::of(template, literal_from);
                pieces.push(Piece::Literal { text: std::mem::take(&mut literal), at });
            }
            let token = token(template, offset)?;
            offset += token.source.len();
            pieces.push(Piece::Token(token));
        } else if next == '}' {
            return Err(error(template, offset, "}", TokenFlaw::Stray));
        } else {
            literal.push(next);
            offset += next.len_utf8();
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal { text: literal, at: Place::of(template, literal_from) });
    }
    Ok(pieces)
}

/// The token that begins at `offset`.
fn token(template: &str, offset: usize) -> Result<Token<'_>, TemplateError> {
    let rest = &template[offset..];
    let inner = &rest[1..];
    let Some(end) = inner.find('}') else {
        return Err(error(template, offset, rest, TokenFlaw::Unclosed));
    };
    let (source, inner) = (&rest[..end + 2], &inner[..end]);
    if inner.contains('{') {
        return Err(error(template, offset, source, TokenFlaw::Nested));
    }
    let (name, arguments) = match inner.split_once(':') {
        Some((name, arguments)) => (name, Some(arguments)),
        None => (inner, None),
    };
    Ok(Token { name, arguments, source, at: Place::of(template, offset) })
}

fn error(template: &str, offset: usize, token: &str, flaw: TokenFlaw) -> TemplateError {
    TemplateError::Token { token: excerpt(token), at: Place::of(template, offset), flaw }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(template: &str) -> Vec<String> {
        let shape = |piece: &Piece<'_>| match piece {
            Piece::Literal { text, at } => format!("{}'{text}'", at.position),
            Piece::Token(t) => format!("{}<{}|{:?}>", t.at.position, t.name, t.arguments),
        };
        lex(template).unwrap().iter().map(shape).collect()
    }

    fn flaw(template: &str) -> (usize, TokenFlaw) {
        match lex(template).unwrap_err() {
            TemplateError::Token { at, flaw, .. } => (at.position, flaw),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn literals_and_tokens_alternate_and_know_their_place() {
        assert_eq!(
            shapes("ก-{SEQ:4:x}{DATE:HH:mm}"),
            ["1'ก-'", "3<SEQ|Some(\"4:x\")>", "12<DATE|Some(\"HH:mm\")>"]
        );
        assert!(shapes("").is_empty());
    }

    #[test]
    fn doubled_braces_are_literal_braces() {
        assert_eq!(shapes("{{a}}{SEQ}}}"), ["1'{a}'", "6<SEQ|None>", "11'}'"]);
    }

    #[test]
    fn unbalanced_braces_are_refused_at_their_place() {
        assert_eq!(flaw("ab{SEQ"), (3, TokenFlaw::Unclosed));
        assert_eq!(flaw("ab}c"), (3, TokenFlaw::Stray));
        assert_eq!(flaw("{SEQ{X}}"), (1, TokenFlaw::Nested));
    }
}
