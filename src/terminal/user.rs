//! The user of a command that takes numbers or labels, as the journal names it. Authenticates
//! nobody: a user who runs a command with the settings of the ledger may do everything.

use anyhow::bail;
use clap::Args;
use numbering::{Lines, check_printable};
use numerator_runtime::actor::through;

use crate::auth::LOCAL_USER;
use crate::engine::node::login;

/// Longest name that is claimed, in characters, as of a person for whom a service asks.
const NAME_CHARS_MAX: usize = 128;

/// For whom the command is run.
#[derive(Clone, Debug, Default, Args)]
pub struct UserArg {
    /// Note this name beside the login name of the system, as claimed
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
}

impl UserArg {
    /// The user, as the journal keeps it: `local/maria`; with a name, `local/ann (claimed by
    /// maria)`.
    ///
    /// # Errors
    /// A name that is blank, too long or not printable.
    pub(crate) fn actor(&self) -> anyhow::Result<String> {
        let Some(claimed) = &self.user else { return Ok(through(LOCAL_USER, &login())) };
        let claimed = claimed.trim();
        let is_name = (1..=NAME_CHARS_MAX).contains(&claimed.chars().count())
            && check_printable(claimed, Lines::One).is_ok();
        if !is_name {
            bail!(
                "--user: must be 1 to {NAME_CHARS_MAX} printable characters; leave it out to have \
                 the login name of the system alone"
            );
        }
        Ok(through(LOCAL_USER, &format!("{claimed} (claimed by {})", login())))
    }
}
