//! `numerator token create`: makes a bearer token. Keeps none: settings hold its hash alone.

use crate::node::system_random;
use anyhow::bail;
use clap::{Args, Subcommand};
use numbering::hexadecimal;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::output::{print, print_json, say};
use crate::access::is_identity_name;

/// What to do with tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; stdout carries the token, stderr the lines for the settings file
    Create(CreateArgs),
}

/// Whose token.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// Name of the caller; the journal keeps it as `user_id`
    pub name: String,
    /// Print name, token and hash as JSON
    #[arg(long)]
    pub json: bool,
}

/// A new token.
#[derive(Serialize)]
struct NewToken {
    name: String,
    token: String,
    sha256: String,
}

impl NewToken {
    fn create(name: String) -> Self {
        // Two random ids of 122 bits each from a cryptographic generator: beyond guessing, so a
        // plain hash is as good as a slow one.
        let token = format!("nbr_{}{}", system_random().simple(), system_random().simple());
        let hash = Sha256::digest(token.as_bytes());
        let sha256 = hexadecimal(&hash);
        NewToken { name, token, sha256 }
    }
}

/// Prints a new token.
///
/// # Errors
/// A name that the settings would refuse, a closed stdout.
pub fn run(command: TokenCommand) -> anyhow::Result<()> {
    let TokenCommand::Create(CreateArgs { name, json }) = command;
    if !is_identity_name(&name) {
        bail!("{name:?} is not a name for a token; write 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    let new = NewToken::create(name);
    if json {
        print_json(&new)?;
        return Ok(());
    }
    say(format_args!(
        "add to the settings file:\n[[auth.tokens]]\nname = \"{}\"\nsha256 = \"{}\"\n\
         and send the token with each request as the header Authorization: Bearer <token>",
        new.name, new.sha256
    ));
    print([new.token])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_new_each_time_and_its_hash_fits_the_settings() {
        let (one, other) = (NewToken::create("ci".into()), NewToken::create("ci".into()));
        assert_ne!(one.token, other.token);
        assert_eq!(one.token.len(), "nbr_".len() + 64);
        let flags = format!("[{{name = \"ci\", sha256 = \"{}\"}}]", one.sha256);
        let settings = crate::config::Settings::load(&crate::config::Sources {
            flags: vec![("auth.tokens".into(), flags), ("data.dir".into(), "/tmp".into())],
            ..Default::default()
        })
        .expect("settings");
        assert_eq!(settings.auth_tokens[0].sha256[..], Sha256::digest(one.token.as_bytes())[..]);
    }
}
