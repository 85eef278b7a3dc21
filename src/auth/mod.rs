//! Principals and what they may do: identities, their roles, and the series and projects to which
//! they are restricted.
//!
//! Decides from its arguments; knows no request and no settings, and never calls the ledger. What
//! it refuses is refused on every route: the middleware asks before a handler runs, the allocator
//! before a number is taken.

mod grant;
mod identity;
pub mod jwt;
pub mod limits;
pub mod rate;
mod role;
pub mod scope;
mod secret;
mod shared;
pub mod tokens;

pub use grant::{Grant, GrantMistake, WrittenGrant, end_of, written_roles};
pub use identity::{
    IDENTITY_NAME_CHARS_MAX, Identity, LOCAL_USER, LetIn, is_identity_name, jwt_identity_name,
};

pub use role::{Act, Role, Roles, Whose};
pub use secret::{SECRET_PREFIX, Secret, hash_of};
pub use shared::Shared;

/// Most numbers in one range.
pub const COUNT_MAX: u64 = 1_000_000;
