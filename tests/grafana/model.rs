//! What a dashboard is made of, and its JSON as Grafana reads it (classic model, schema 39).

use serde_json::{Value, json};

/// Columns of a dashboard.
const COLUMNS: u64 = 24;
/// Height of a panel, in Grafana's units.
const HEIGHT: u64 = 8;
/// Height of a panel that shows one value.
const STAT_HEIGHT: u64 = 4;

/// A dashboard.
pub(crate) struct Dashboard {
    /// Its identity; also the name of its file.
    pub(crate) uid: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// Panels under a heading.
pub(crate) struct Row {
    pub(crate) title: &'static str,
    pub(crate) panels: Vec<Panel>,
}

/// How a panel draws.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// One value, on a coloured background.
    Stat,
    /// Lines over time.
    Lines,
    /// A bar per series.
    Bars,
}

/// A panel.
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) drawing: Drawing,
    /// Grafana's word for the unit.
    pub(crate) unit: &'static str,
    /// The value from which a colour applies; below the first it is green, or what `base` says.
    pub(crate) thresholds: &'static [(f64, &'static str)],
    pub(crate) base: &'static str,
    /// Part of the runbook that helps, if there is one.
    pub(crate) runbook: Option<&'static str>,
    /// Expressions and their legends.
    pub(crate) queries: Vec<(String, &'static str)>,
}

impl Panel {
    /// Lines over time, with a unit.
    pub(crate) fn lines(
        title: &'static str,
        unit: &'static str,
        queries: Vec<(String, &'static str)>,
        description: &'static str,
    ) -> Self {
        Panel {
            title,
            description,
            drawing: Drawing::Lines,
            unit,
            thresholds: &[],
            base: "green",
            runbook: None,
            queries,
        }
    }

    /// One value.
    pub(crate) fn stat(
        title: &'static str,
        unit: &'static str,
        query: String,
        description: &'static str,
    ) -> Self {
        Panel {
            drawing: Drawing::Stat,
            ..Self::lines(title, unit, vec![(query, title)], description)
        }
    }

    /// A bar for each series of the answer.
    pub(crate) fn bars(
        title: &'static str,
        unit: &'static str,
        query: (String, &'static str),
        description: &'static str,
    ) -> Self {
        Panel { drawing: Drawing::Bars, ..Self::lines(title, unit, vec![query], description) }
    }

    /// Green below the first of these values, then in their colours.
    pub(crate) fn above(self, thresholds: &'static [(f64, &'static str)]) -> Self {
        Panel { thresholds, ..self }
    }

    /// Red below the first of these values, then in their colours.
    pub(crate) fn below(self, thresholds: &'static [(f64, &'static str)]) -> Self {
        Panel { thresholds, base: "red", ..self }
    }

    /// Leads to a part of the runbook.
    pub(crate) fn see(self, anchor: &'static str) -> Self {
        Panel { runbook: Some(anchor), ..self }
    }
}

impl Dashboard {
    /// Every panel with its id, in the order of the page.
    pub(crate) fn panels(&self) -> impl Iterator<Item = (usize, &Panel)> {
        // A row is a panel to Grafana, with an id of its own.
        let ids = self
            .rows
            .iter()
            .flat_map(|row| std::iter::once(None).chain(row.panels.iter().map(Some)));
        ids.enumerate().filter_map(|(index, panel)| Some((index + 1, panel?)))
    }

    /// Whether an expression uses a variable.
    fn uses(&self, variable: &str) -> bool {
        self.panels().any(|(_, panel)| {
            panel.queries.iter().any(|(expression, _)| expression.contains(variable))
        })
    }

    /// Its JSON, with a line feed at the end.
    pub(crate) fn render(&self) -> String {
        let text = serde_json::to_string_pretty(&self.to_json()).expect("JSON");
        text + "\n"
    }

    fn to_json(&self) -> Value {
        json!({
            "annotations": { "list": [] },
            "description": self.description,
            "editable": true,
            "graphTooltip": 1,
            "links": [{
                "asDropdown": false, "includeVars": true, "keepTime": true, "tags": ["numerator"],
                "title": "numerator", "type": "dashboards", "url": "",
            }],
            "panels": self.panels_json(),
            "refresh": "30s",
            "schemaVersion": 39,
            "tags": ["numerator"],
            "templating": { "list": self.variables() },
            "time": { "from": "now-1h", "to": "now" },
            "timezone": "browser",
            "title": self.title,
            "uid": self.uid,
        })
    }

    fn panels_json(&self) -> Vec<Value> {
        let (mut panels, mut y) = (Vec::new(), 0);
        for row in &self.rows {
            let id = panels.len() + 1;
            panels.push(json!({
                "collapsed": false, "gridPos": { "h": 1, "w": COLUMNS, "x": 0, "y": y },
                "id": id, "panels": [], "title": row.title, "type": "row",
            }));
            y += 1;
            let is_stat = |panel: &Panel| panel.drawing == Drawing::Stat;
            let (stats, rest) =
                row.panels.split_at(row.panels.iter().take_while(|p| is_stat(p)).count());
            for (group, width, height) in [
                (stats, COLUMNS / u64::try_from(stats.len().max(4)).expect("few"), STAT_HEIGHT),
                (rest, COLUMNS / if rest.len() == 1 { 1 } else { 2 }, HEIGHT),
            ] {
                let mut x = 0;
                for panel in group {
                    if x + width > COLUMNS {
                        (x, y) = (0, y + height);
                    }
                    let place = json!({ "h": height, "w": width, "x": x, "y": y });
                    panels.push(panel.to_json(panels.len() + 1, &place));
                    x += width;
                }
                y += if group.is_empty() { 0 } else { height };
            }
        }
        panels
    }

    fn variables(&self) -> Vec<Value> {
        let labels = |name: &str, label: &str, metric: &str| {
            let query = format!("label_values({metric}, {name})");
            json!({
                "allValue": ".*", "current": { "selected": true, "text": "All", "value": "$__all" },
                "datasource": source(), "definition": query, "includeAll": true, "label": label,
                "multi": true, "name": name,
                "query": { "query": query, "refId": "variable" }, "refresh": 2, "sort": 1,
                "type": "query",
            })
        };
        let mut list = vec![
            json!({
                "label": "Data source", "name": "datasource", "query": "prometheus",
                "refresh": 1, "type": "datasource",
            }),
            labels("instance", "Process", "numerator_build_info"),
        ];
        if self.uses("$series") {
            list.push(labels("series", "Series", "numerator_issued_total"));
        }
        let runbook =
            json!({ "selected": true, "text": "docs/runbook.md", "value": "docs/runbook.md" });
        list.push(json!({
            "current": runbook, "label": "Runbook at", "name": "runbook", "options": [runbook],
            "query": "docs/runbook.md", "type": "textbox",
        }));
        list
    }
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

impl Panel {
    fn to_json(&self, id: usize, place: &Value) -> Value {
        let mut steps = vec![json!({ "color": self.base, "value": null })];
        let further = |(value, color): &(f64, &str)| json!({ "color": color, "value": value });
        steps.extend(self.thresholds.iter().map(further));
        let is_instant = self.drawing != Drawing::Lines;
        let targets: Vec<Value> = ('A'..='Z')
            .zip(&self.queries)
            .map(|(name, (expression, legend))| {
                json!({
                    "datasource": source(), "editorMode": "code", "expr": expression,
                    "instant": is_instant, "legendFormat": legend, "range": !is_instant,
                    "refId": name.to_string(),
                })
            })
            .collect();
        let links: Vec<Value> = self
            .runbook
            .iter()
            .map(|anchor| {
                let url = format!("${{runbook}}#{anchor}");
                json!({ "targetBlank": true, "title": "Runbook", "url": url })
            })
            .collect();
        let (kind, options, custom) = self.drawn();
        json!({
            "datasource": source(),
            "description": self.description,
            "fieldConfig": {
                "defaults": {
                    "color": { "mode": if is_instant { "thresholds" } else { "palette-classic" } },
                    "custom": custom,
                    "min": 0,
                    "thresholds": { "mode": "absolute", "steps": steps },
                    "unit": self.unit,
                },
                "overrides": [],
            },
            "gridPos": place,
            "id": id,
            "links": links,
            "options": options,
            "targets": targets,
            "title": self.title,
            "type": kind,
        })
    }

    /// Kind of the panel, its options, and how its fields are drawn.
    fn drawn(&self) -> (&'static str, Value, Value) {
        let last = json!({ "calcs": ["lastNotNull"], "fields": "", "values": false });
        match self.drawing {
            Drawing::Stat => (
                "stat",
                json!({
                    "colorMode": "background", "graphMode": "none", "justifyMode": "auto",
                    "orientation": "auto", "reduceOptions": last, "textMode": "value",
                }),
                json!({}),
            ),
            Drawing::Bars => (
                "bargauge",
                json!({
                    "displayMode": "basic", "orientation": "horizontal", "reduceOptions": last,
                }),
                json!({}),
            ),
            Drawing::Lines => {
                let style = if self.thresholds.is_empty() { "off" } else { "dashed" };
                (
                    "timeseries",
                    json!({
                        "legend": { "calcs": ["lastNotNull", "max"], "displayMode": "table",
                            "placement": "bottom", "showLegend": true },
                        "tooltip": { "mode": "multi", "sort": "desc" },
                    }),
                    json!({
                        "drawStyle": "line", "fillOpacity": 10, "lineWidth": 1,
                        "showPoints": "never", "spanNulls": false,
                        "thresholdsStyle": { "mode": style },
                    }),
                )
            }
        }
    }
}
