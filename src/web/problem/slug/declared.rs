//! How the kinds of problems are declared. Owns no kind.

/// Declares the slugs: variant, slug, status, whether a retry is useful, whether a number may have
/// been taken, title, meaning and remedy.
macro_rules! slugs {
    ($($variant:ident $name:literal $status:ident $retryable:literal $taken:literal
       $title:literal $meaning:literal,)*) => {
        /// The kind of a problem: a stable word that programs may rely on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Slug { $(#[doc = $title] $variant,)* }

        impl Slug {
            /// Every slug.
            pub const ALL: &[Slug] = &[$(Slug::$variant,)*];

            /// The slug as sent.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Slug::$variant => $name,)* }
            }

            /// The page of the problem on the service itself: a reference relative to the request.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self { $(Slug::$variant => concat!("/problems/", $name),)* }
            }

            /// Its meaning, for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Slug::$variant => $title,)* }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Slug::$variant => StatusCode::$status,)* }
            }

            /// Whether the same request may succeed later: `yes`, `no`, or `yes or no` if each
            /// problem states it itself.
            pub(crate) const fn retryable(self) -> &'static str {
                match self { $(Slug::$variant => $retryable,)* }
            }

            /// Whether a number may have been taken: `no`, `maybe`, or `no or maybe`.
            pub(crate) const fn number_taken(self) -> &'static str {
                match self { $(Slug::$variant => $taken,)* }
            }

            /// Its full meaning, and what to do.
            pub(crate) const fn meaning(self) -> &'static str {
                match self { $(Slug::$variant => $meaning,)* }
            }
        }
    };
}
