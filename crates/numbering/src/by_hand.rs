//! Which series may have numbers that were given by hand.

use super::SeriesDefinition;
use super::field::at;
use super::template_error::{FieldFlaw, TemplateError};

/// Refuses numbers by hand where a number has no value that a person could have chosen, or several:
/// nobody writes an id or the value of a source, and of two serials one might leave a gap that the
/// other does not.
pub(super) fn check(
    definition: &SeriesDefinition,
    has_identity: bool,
) -> Result<(), TemplateError> {
    let remedy = match definition.serials.len() {
        _ if !definition.by_hand => return Ok(()),
        _ if has_identity => "take the id or the source out of the series",
        0 | 1 => return Ok(()),
        _ => "leave one serial",
    };
    at("by_hand", FieldFlaw::ByHand { remedy })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{definition, serial};
    use super::super::{Series, SeriesDefinition};

    fn compiled(edit: impl FnOnce(&mut SeriesDefinition)) -> Result<Series, String> {
        let mut definition = definition();
        definition.by_hand = true;
        edit(&mut definition);
        Series::compile(definition).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_by_hand_need_one_serial_that_tells_them_apart() {
        assert!(compiled(|_| ()).is_ok());
        let two = compiled(|it| {
            it.template = "{SEQ:3}-{SEQ:3:B}".into();
            it.serials.push(serial("B"));
        });
        assert!(two.is_err_and(|said| said.contains("leave one serial")));
        let id = compiled(|it| it.template = "{SEQ:3}-{SNOWFLAKE}".into());
        assert!(id.is_err_and(|said| said.contains("take the id")));
    }
}
