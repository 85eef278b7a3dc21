//! The user that runs this process, for the record of what commands do.
//!
//! Taken from the system: its user and its machine. The environment can claim anything, so its
//! claim is recorded separately, under its name.

use numbering::escaped;
use rustix::process::getuid;

use crate::node::host;

/// Where the system keeps the names of its users.
const USERS: &str = "/etc/passwd";

/// Variables that may name another user: the one that called `sudo`, or the login of a shell.
const CLAIMS: [&str; 3] = ["SUDO_USER", "USER", "LOGNAME"];

/// Characters of a claim that are kept.
const CLAIM_CHARS_MAX: usize = 64;

/// The user that runs this process: `maria@vm`; where the environment names another, `root@vm
/// (SUDO_USER=maria)`.
#[must_use]
pub fn operator() -> String {
    let user = user();
    with_claim(format!("{user}@{}", host()), &user, environment())
}

/// The same without the machine, as numbers name the user who took them: `maria`, or `root
/// (SUDO_USER=maria)`.
#[must_use]
pub fn login() -> String {
    let user = user();
    with_claim(user.clone(), &user, environment())
}

fn user() -> String {
    let users = std::fs::read_to_string(USERS).unwrap_or_default();
    name_of(&users, getuid().as_raw())
}

/// What the environment claims.
fn environment() -> impl Iterator<Item = (&'static str, String)> {
    CLAIMS.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)))
}

/// The name of a user; of one that the file does not have, its number.
fn name_of(users: &str, uid: u32) -> String {
    let number = uid.to_string();
    let mut named = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(&number)).then(|| name.to_owned())
    });
    named.next().unwrap_or_else(|| format!("uid {number}"))
}

/// What is known of a user, and beside it the first claim that names another one.
fn with_claim(
    known: String,
    user: &str,
    said: impl IntoIterator<Item = (&'static str, String)>,
) -> String {
    let claim = said.into_iter().find(|(_, claimed)| !claimed.is_empty() && claimed != user);
    let shown = claim.map(|(name, claimed)| {
        let kept: String = claimed.chars().take(CLAIM_CHARS_MAX).collect();
        format!(" ({name}={})", escaped(&kept.replace(['\n', '\t'], " ")))
    });
    known + &shown.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:Ann:/users/ann:/bin/sh\n";

    #[test]
    fn the_system_says_who_it_is_and_a_claim_stands_beside() {
        assert_eq!(name_of(PASSWD, 1000), "ann");
        assert_eq!(name_of(PASSWD, 100), "uid 100");
        let of = |said: &[(&'static str, &str)]| {
            let said = said.iter().map(|(name, said)| (*name, (*said).to_owned()));
            with_claim("root@vm".into(), "root", said)
        };
        assert_eq!(of(&[("USER", "root"), ("LOGNAME", "")]), "root@vm");
        assert_eq!(of(&[("SUDO_USER", "ann"), ("USER", "bob")]), "root@vm (SUDO_USER=ann)");
        assert_eq!(of(&[("USER", "root"), ("LOGNAME", "ann")]), "root@vm (LOGNAME=ann)");
        let long = of(&[("USER", &format!("a\u{1b}{}", "b".repeat(100)))]);
        assert!(!long.contains('\u{1b}') && long.len() < 100, "{long}");
    }
}
