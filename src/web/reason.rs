//! Why something is changed: an auditor will read it.

use numbering::{Lines, check_printable};
use serde::Deserialize;
use utoipa::ToSchema;

use super::problem::Problem;

/// Longest reason, in characters.
pub(crate) const REASON_CHARS_MAX: usize = 500;

/// Why a series is activated or deactivated.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonRequest {
    /// Why.
    pub(crate) reason: String,
}

/// Checks a reason: an auditor will read it.
pub(crate) fn check_reason(reason: &str) -> Result<String, Problem> {
    let reason = reason.trim();
    let chars = reason.chars().count();
    if !(1..=REASON_CHARS_MAX).contains(&chars) {
        let wanted = format!("must say why, in 1 to {REASON_CHARS_MAX} characters, not {chars}");
        return Err(Problem::field("reason", wanted));
    }
    if let Err(flaw) = check_printable(reason, Lines::One) {
        return Err(Problem::field("reason", flaw.to_string()));
    }
    Ok(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_something() {
        assert_eq!(check_reason(" คำสั่ง 7 ").ok().as_deref(), Some("คำสั่ง 7"));
        for wrong in ["", "  ", "a\u{0}b", "a\nb", "a\u{202e}b", &"x".repeat(REASON_CHARS_MAX + 1)]
        {
            assert!(check_reason(wrong).is_err(), "{wrong:?}");
        }
    }
}
