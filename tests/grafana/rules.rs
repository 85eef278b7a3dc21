//! Reads the alert rules, which keep to one form: a line per field, expressions folded.

/// One alert.
#[derive(Debug, Default)]
pub(crate) struct Alert {
    pub(crate) name: String,
    pub(crate) expression: String,
    pub(crate) severity: String,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) runbook_url: String,
    pub(crate) panel: String,
    pub(crate) dashboard_url: String,
}

/// All alerts of the file.
pub(crate) fn alerts() -> Vec<Alert> {
    let text = super::read("grafana/alerts.yaml");
    let mut alerts: Vec<Alert> = Vec::new();
    let mut is_folded = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            alerts.push(Alert { name: name.to_owned(), ..Alert::default() });
            continue;
        }
        let Some(alert) = alerts.last_mut() else { continue };
        let field =
            line.split_once(':').map(|(field, value)| (field, value.trim().trim_matches('"')));
        let place = match field {
            Some(("expr", value)) => {
                is_folded = value == ">-";
                if !is_folded {
                    value.clone_into(&mut alert.expression);
                }
                continue;
            }
            Some(("severity", value)) => Some((&mut alert.severity, value)),
            Some(("summary", value)) => Some((&mut alert.summary, value)),
            Some(("description", value)) => Some((&mut alert.description, value)),
            Some(("runbook_url", value)) => Some((&mut alert.runbook_url, value)),
            Some(("panel", value)) => Some((&mut alert.panel, value)),
            Some(("dashboard_url", value)) => Some((&mut alert.dashboard_url, value)),
            _ => None,
        };
        match place {
            Some((place, value)) => value.clone_into(place),
            None if is_folded && !line.ends_with(':') && !line.starts_with("for:") => {
                alert.expression.push_str(line);
                alert.expression.push(' ');
            }
            None => {}
        }
        is_folded &= !line.starts_with("labels") && !line.starts_with("for:");
    }
    alerts
}
