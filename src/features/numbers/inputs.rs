//! The inputs of a number, as `next` and `preview` take them.

use std::sync::Arc;

use clap::Args;
use numbering::Inputs;

use crate::auth::COUNT_MAX;
use crate::auth::{Identity, LOCAL_USER};
use crate::engine::allocator::Request;
use crate::features::numbers::request::check_document_id;
use crate::terminal::session::refusal;
use crate::terminal::settings::{name_value, set_once};
use crate::terminal::user::UserArg;

/// What is to be numbered.
#[derive(Clone, Debug, Args)]
pub struct InputArgs {
    /// Document type
    #[arg(value_name = "TYPE")]
    pub type_code: String,
    /// Document date: 2025-12-02, or a date-time with offset; now without it
    #[arg(long)]
    pub date: Option<String>,
    /// Phase, where the series has phases
    #[arg(long)]
    pub phase: Option<String>,
    /// Project
    #[arg(long)]
    pub project: Option<String>,
    /// Id of the project, where the series has a table of projects
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    pub project_id: Option<String>,
    /// Value of a variable, or its id (`discipline_id=5`) where it has a table; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    pub set: Vec<(String, String)>,
}

impl InputArgs {
    /// The request for so many numbers.
    ///
    /// # Errors
    /// A variable that is set twice, a document id that cannot be one.
    pub(crate) fn request(self, document: Option<String>, count: u64) -> anyhow::Result<Request> {
        let InputArgs { type_code, date, phase, project, project_id, set } = self;
        let context = set_once("--set", set)?;
        let checked = |id: String| check_document_id("--document", id).map_err(refusal);
        let document_id = document.map(checked).transpose()?;
        Ok(Request {
            inputs: Inputs {
                type_code,
                project,
                project_id,
                date,
                phase,
                context,
                ..Inputs::default()
            },
            document_id,
            count,
            reserve_for: None,
            again: false,
            replaces: None,
            idempotency_key: None,
            identity: Arc::new(Identity::local(LOCAL_USER, COUNT_MAX)),
            user_id: UserArg::default().actor()?,
            ip_address: None,
        })
    }
}
