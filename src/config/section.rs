//! How the sections of the settings are declared.

/// Declares one section: a struct whose fields are the section's settings with their defaults.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$meaning:meta])* $field:ident: $kind:ty = $default:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$meaning])* pub(crate) $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }
    };
}
