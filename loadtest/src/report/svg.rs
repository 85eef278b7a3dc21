//! Plots as SVG files that a page can show.

use std::path::Path;

use plotters::chart::LabelAreaPosition;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, Color as _, IntoDrawingArea as _, IntoLogRange as _, LineSeries,
    PathElement, RGBColor, SVGBackend, WHITE,
};

use super::Plot;
use super::table::figure;

/// Width and height, in pixels.
const SIZE: (u32, u32) = (760, 420);

/// Colours that are told apart by those who see few, and on paper.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// Writes a plot.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(plot: &Plot, folder: &Path) -> Result<(), String> {
    let file = folder.join(plot.file).with_extension("svg");
    let points = || plot.lines.iter().flat_map(|(_, points)| points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
    let (most_x, most_y) = (most(|point| point.0), most(|point| point.1));
    let least_x = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let y = 0.0..most_y * 1.1;
    let drawn = if plot.is_x_log {
        draw(plot, &file, (least_x..most_x * 1.1).log_scale(), y)
    } else {
        draw::<RangedCoordf64, _>(plot, &file, 0.0..most_x * 1.05, y)
    };
    drawn.map_err(|error| format!("{}: {error}", file.display()))
}

fn draw<X, R>(
    plot: &Plot,
    file: &Path,
    x: R,
    y: std::ops::Range<f64>,
) -> Result<(), Box<dyn std::error::Error>>
where
    R: plotters::coord::ranged1d::AsRangedCoord<CoordDescType = X, Value = f64>,
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(plot.title, ("sans-serif", 18))
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Left, 64)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(plot.x)
        .y_desc(plot.y)
        .x_label_formatter(&|value| figure(*value))
        .y_label_formatter(&|value| figure(*value))
        .light_line_style(BLACK.mix(0.06))
        .draw()?;
    for ((name, points), colour) in plot.lines.iter().zip(COLOURS.iter().cycle()) {
        let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
        let key = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2));
        chart.draw_series(line)?.label(name).legend(key);
        let dots = points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
        chart.draw_series(dots)?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_shows_its_lines_and_axes() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for is_x_log in [false, true] {
            let plot = Plot {
                file: "plot",
                title: "Latency",
                x: "numbers per second",
                y: "ms",
                is_x_log,
                lines: vec![("p50".to_owned(), vec![(10.0, 1.0), (1_000.0, 4.0)])],
            };
            write(&plot, folder.path()).expect("a file");
            let text = std::fs::read_to_string(folder.path().join("plot.svg")).expect("a file");
            for shown in ["<svg", "Latency", "numbers per second", "p50", "polyline"] {
                assert!(text.contains(shown), "{shown} is not in {text}");
            }
        }
    }
}
