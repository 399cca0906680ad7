use std::path::Path;

use plotters::prelude::{
    ChartBuilder, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor, SVGBackend, WHITE,
};

use super::{Finish, Runner};

/// Colours that people with any eyes can tell apart (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
const SIZE: (u32, u32) = (900, 480);

/// Draws how much of the file each runner had when, as an SVG file.
pub fn draw(
    path: &Path,
    title: &str,
    size: u64,
    finishes: &[Finish],
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let longest = finishes.iter().filter_map(|finish| finish.course.last());
    let longest = longest.map(|(at, _)| *at).fold(0.1, f64::max);
    let whole = size as f64 / 1e6;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        area.fill(&WHITE).map_err(|error| failed(&error))?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18).into_font())
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..longest * 1.02, 0.0..whole * 1.05)
            .map_err(|error| failed(&error))?;
        let mesh = &mut chart.configure_mesh();
        let mesh = mesh.x_desc("seconds").y_desc("MB received").light_line_style(WHITE);
        mesh.draw().map_err(|error| failed(&error))?;
        for (finish, colour) in finishes.iter().zip(COLOURS.iter().cycle()) {
            let width = if finish.runner == Runner::Fontis { 3 } else { 2 };
            let style = plotters::style::ShapeStyle::from(colour).stroke_width(width);
            let course = finish.course.iter().map(|(at, bytes)| (*at, *bytes as f64 / 1e6));
            let line = LineSeries::new(course, style);
            let time = match finish.time {
                Ok(Some(time)) => format!("{:.1} s", time.as_secs_f64()),
                _ => "not there".to_owned(),
            };
            chart
                .draw_series(line)
                .map_err(|error| failed(&error))?
                .label(format!("{}: {time}", finish.runner))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        let mut labels = chart.configure_series_labels();
        let labels = labels.background_style(WHITE).border_style(RGBColor(180, 180, 180));
        labels.label_font(("sans-serif", 14).into_font());
        labels.draw().map_err(|error| failed(&error))?;
        area.present().map_err(|error| failed(&error))?;
    }
    Ok(std::fs::write(path, text)?)
}
