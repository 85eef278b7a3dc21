//! `numerator preview`: the number that would come next. Takes nothing.

use clap::Args;

use crate::config::Settings;
use crate::features::numbers::answer::PreviewAnswer;
use crate::features::numbers::inputs::InputArgs;
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::{refusal, with_onlooker};

/// What to preview.
#[derive(Clone, Debug, Args)]
pub struct PreviewArgs {
    /// What would be numbered.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Print everything about the number, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the number.
///
/// # Errors
/// A refusal, with its slug; a service that cannot start; a closed stdout.
pub async fn run(settings: &Settings, args: PreviewArgs) -> anyhow::Result<()> {
    let request = args.inputs.request(None, 1)?;
    let preview = with_onlooker(settings, async |service| {
        service.allocator.preview(request).await.map_err(refusal)
    })
    .await?;
    if args.json {
        print_json(&PreviewAnswer::of(&preview))?;
    } else {
        print([&preview.number])?;
        let counters = preview.record.counter_keys.iter().zip(&preview.nexts);
        for (key, _) in counters.filter(|(_, next)| next.is_new_counter) {
            say(format_args!("the first number of a new counter: {key}"));
        }
    }
    Ok(())
}
