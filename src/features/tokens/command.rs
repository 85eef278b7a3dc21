//! `numerator token create | list | revoke | rotate`: bearer tokens, in the ledger; or lines for
//! the settings file. Only stdout carries a secret, once.

use anyhow::bail;
use clap::{Args, Subcommand};
use numbering::hexadecimal;
use serde::Serialize;

use crate::auth::{Secret, end_of};
use crate::config::Settings;
use crate::features::tokens::answer::{NewTokenAnswer, TokenAnswer};
use crate::features::tokens::order::{RotationRequest, TokenRequest, check_grace, new_token};
use crate::ledger::{StoredToken, TOKENS_MAX, TokenRevocation, TokenRights, TokenRotation};
use crate::terminal::output::{must_print, must_print_json, print, print_json, say};
use crate::terminal::session::{clock, open_ledger, operator, refusal, until_known};
use crate::terminal::words::{moment, table};
use crate::web::reason::check_reason;

/// Tokens read in one statement.
const PAGE: u32 = 1_000;

/// What to do with tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print its secret, once
    Create(CreateArgs),
    /// List the tokens of the ledger, revoked ones among them; never a secret
    List(TokensArgs),
    /// Revoke a token; every node refuses it within a second
    Revoke(RevokeArgs),
    /// Give a token a new secret and print it, once; the present one is accepted for a while
    Rotate(RotateArgs),
}

/// Whose token, and what it gives.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// The token.
    #[command(flatten)]
    pub token: TokenRequest,
    /// Keep it nowhere: stderr carries lines for the settings file. Asks no ledger
    #[arg(long)]
    pub for_settings: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How to list.
#[derive(Clone, Debug, Args)]
pub struct TokensArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which token, and why.
#[derive(Clone, Debug, Args)]
pub struct RevokeArgs {
    /// Name of the token
    pub name: String,
    /// Why, for the record
    #[arg(long)]
    pub reason: String,
}

/// Which token, and how.
#[derive(Clone, Debug, Args)]
pub struct RotateArgs {
    /// Name of the token
    pub name: String,
    /// How.
    #[command(flatten)]
    pub rotation: RotationRequest,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs a command on tokens.
///
/// # Errors
/// A name or right without a usable value, an unknown or revoked token, a ledger that cannot be
/// reached, a closed stdout.
pub async fn run(
    settings: impl FnOnce() -> anyhow::Result<Settings>,
    command: TokenCommand,
) -> anyhow::Result<()> {
    match command {
        TokenCommand::Create(args) if args.for_settings => args.print_lines(),
        TokenCommand::Create(args) => create(&settings()?, args).await,
        TokenCommand::List(args) => list(&settings()?, args.json).await,
        TokenCommand::Revoke(args) => revoke(&settings()?, args).await,
        TokenCommand::Rotate(args) => rotate(&settings()?, args).await,
    }
}

impl CreateArgs {
    /// Prints a token that is not stored anywhere, and its lines for the settings.
    fn print_lines(&self) -> anyhow::Result<()> {
        self.token.granted(&self.token.rights()).map_err(anyhow::Error::msg)?;
        let secret = Secret::draw();
        let sha256 = hexadecimal(&secret.sha256());
        if self.json {
            let (name, token) = (self.token.name.clone(), secret.show().to_owned());
            must_print_json(&UnkeptToken { name, token, sha256 })?;
            return Ok(());
        }
        let lines = self.lines(&sha256);
        say(format_args!("add to the settings file:\n{lines}{SENT}"));
        Ok(must_print([secret.show()])?)
    }

    /// Its section of a settings file.
    fn lines(&self, sha256: &str) -> String {
        let TokenRequest { name, expires, .. } = &self.token;
        let TokenRights { roles, series, projects, .. } = self.token.rights();
        let mut lines = format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{sha256}\"\n");
        let lists = [("roles", roles), ("series", series), ("projects", projects)];
        for (field, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            lines += &format!("{field} = {}\n", serde_json::json!(list));
        }
        if let Some(quota) = self.token.requests_per_minute {
            lines += &format!("requests_per_minute = {quota}\n");
        }
        if self.token.speaks_for_people {
            lines += "speaks_for_people = true\n";
        }
        if let Some(day) = expires {
            lines += &format!("expires = \"{day}\"\n");
        }
        if let Some(most) = self.token.count_max {
            lines += &format!("count_max = {most}\n");
        }
        lines
    }
}

/// The use of a secret.
const SENT: &str = "send it with each request as the header Authorization: Bearer <token>";

/// A new token that is kept nowhere.
#[derive(Serialize)]
struct UnkeptToken {
    name: String,
    token: String,
    sha256: String,
}

async fn create(settings: &Settings, args: CreateArgs) -> anyhow::Result<()> {
    let secret = Secret::draw();
    let new = new_token(args.token, &secret, &operator(), None).map_err(refusal)?;
    let ledger = open_ledger(settings).await?;
    let created = ledger.tokens().create(&new).await?;
    until_known(&ledger).await;
    show(settings, &secret, created, args.json)
}

async fn rotate(settings: &Settings, args: RotateArgs) -> anyhow::Result<()> {
    let RotateArgs { name, rotation: RotationRequest { grace, expires }, json } = args;
    let grace = check_grace(grace).map_err(refusal)?;
    let expires_at_us = expires.as_deref().map(end_of).transpose().map_err(anyhow::Error::msg)?;
    let secret = Secret::draw();
    let (sha256, rotated_by) = (secret.sha256(), operator());
    let shown = None;
    let rotation = TokenRotation { name, sha256, grace, expires_at_us, rotated_by, shown };
    let ledger = open_ledger(settings).await?;
    let rotated = ledger.tokens().rotate(&rotation).await?;
    until_known(&ledger).await;
    show(settings, &secret, rotated, json)
}

/// Prints a secret, once.
fn show(
    settings: &Settings,
    secret: &Secret,
    token: StoredToken,
    as_json: bool,
) -> anyhow::Result<()> {
    if !settings.asks_for_tokens {
        say("with these settings a service asks nobody for a token: auth.mode = \"on\" has it ask");
    }
    if as_json {
        let about = TokenAnswer::of(token, clock().now_us());
        must_print_json(&NewTokenAnswer { token: secret.show().to_owned(), about })?;
        return Ok(());
    }
    if let Some(until) = token.former_until_us {
        say(format_args!("the secret of before is let in until {}", moment(until)));
    }
    say(format_args!("every node knows it within a second; {SENT}"));
    Ok(must_print([secret.show()])?)
}

async fn revoke(settings: &Settings, args: RevokeArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal)?;
    let (name, shown) = (args.name, None);
    let revocation = TokenRevocation { name, revoked_by: operator(), reason, shown };
    let ledger = open_ledger(settings).await?;
    let revoked = ledger.tokens().revoke(&revocation).await?;
    until_known(&ledger).await;
    let since = revoked.revoked_at_us.map(moment).unwrap_or_default();
    Ok(print([format!("{} is revoked since {since}", revoked.name)])?)
}

async fn list(settings: &Settings, as_json: bool) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let mut tokens: Vec<TokenAnswer> = Vec::new();
    loop {
        let after = tokens.last().map(|token| token.name.clone()).unwrap_or_default();
        let page = ledger.tokens().list(&after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        let now_us = clock().now_us();
        tokens.extend(page.into_iter().map(|token| TokenAnswer::of(token, now_us)));
        if is_last {
            break;
        }
        // In force at the same time; revoked ones are added, a bounded number too.
        if tokens.len() > LISTED_MAX {
            bail!("more than {LISTED_MAX} tokens; read them page by page: GET …/tokens");
        }
    }
    if as_json {
        print_json(&tokens)?;
    } else if tokens.is_empty() {
        print(["no tokens"])?;
    } else {
        print([page(&tokens)])?;
    }
    Ok(())
}

/// Most tokens that are listed.
const LISTED_MAX: usize = 10 * TOKENS_MAX;

/// The tokens for people.
fn page(tokens: &[TokenAnswer]) -> String {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let mut table = table(["name", "roles", "series", "projects", "expires", "last use", "state"]);
    for token in tokens {
        let all_or = |list: &[String]| match list {
            [] => "all".to_owned(),
            codes => codes.join(" "),
        };
        table.add_row([
            token.name.clone(),
            token.roles.join(" "),
            all_or(&token.series),
            all_or(&token.projects),
            or_dash(&token.expires_at),
            or_dash(&token.last_used_at),
            token.state.to_owned(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn the_lines_for_the_settings_are_what_they_read() {
        let token = TokenRequest {
            name: "ci".into(),
            roles: Some(vec!["auditor".into(), "project-admin".into()]),
            series: vec!["S\"1".into()],
            projects: vec!["โครงการ".into()],
            expires: Some("2999-12-31".into()),
            count_max: Some(7),
            requests_per_minute: Some(600),
            speaks_for_people: true,
        };
        let args = CreateArgs { token, for_settings: true, json: false };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("numerator.toml");
        let secret = Secret::draw();
        let lines = args.lines(&hexadecimal(&secret.sha256()));
        std::fs::write(&file, lines + "[data]\ndir = \"/tmp\"\n").expect("written");
        let settings = Settings::load(&Sources { file: Some(file), ..Sources::default() });
        let settings = settings.expect("settings");
        let [token] = &settings.auth_tokens[..] else { panic!("one token") };
        assert_eq!(token.sha256, secret.sha256());
        assert_eq!(token.granted, args.token.granted(&args.token.rights()).expect("a grant"));
    }
}
