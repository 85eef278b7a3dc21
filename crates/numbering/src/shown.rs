//! What numbers show: the eras of their years, and of which scope they are unique.

use super::pattern::Era;
use super::series::{Dimension, Series};
use super::template::Part;

impl Series {
    /// The eras of the years that its numbers show, each once.
    #[must_use]
    pub fn eras(&self) -> Vec<Era> {
        let mut eras = Vec::new();
        for part in &self.parts {
            let era = if let Part::Date(field) = part { field.era() } else { None };
            eras.extend(era.filter(|era| !eras.contains(era)));
        }
        eras
    }

    /// Whether the scope of uniqueness has a dimension that the numbers do not show: two values of
    /// it, one of them perhaps mistyped, give the same texts.
    #[must_use]
    pub fn hides_its_scope(&self) -> bool {
        let shows = |dimension: &Dimension| {
            self.parts.iter().any(|part| match (part, *dimension) {
                (Part::Project, Dimension::Project) | (Part::Type(_), Dimension::Type) => true,
                (Part::Variable(shown), Dimension::Variable(index)) => *shown == index,
                _ => false,
            })
        };
        !self.scope.iter().all(shows)
    }
}
