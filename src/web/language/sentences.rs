//! The sentence of each problem, in Thai, in Chinese (simplified and traditional), and in English.
//! No two problems have the same sentence. A problem without a sentence does not compile.
//!
//! All sentences of problems that are worth a retry begin with the established one.

mod numbers;
mod requests;

use super::Sentence;
use crate::web::problem::Slug;
use numbers::with_numbers;
use requests::with_requests;

/// Declares the sentence of every slug.
macro_rules! sentences {
    ($($slug:ident $thai:literal $simplified:literal $traditional:literal $english:literal,)*) => {
        /// The user's text for a problem: its meaning for them, and what they can do.
        pub(super) const fn sentence(slug: Slug) -> Sentence {
            match slug { $(Slug::$slug => [$thai, $simplified, $traditional, $english],)* }
        }
    };
}

with_requests! { with_numbers sentences }
