//! A picture as a PNG file: plotters' bitmap, our font, the `png` crate's encoder.

use super::PlotError;
use super::picture::Picture;
use super::text::Written;
use super::vector::{self, Layout};
use plotters::backend::BitMapBackend;

/// Pixels for each unit of the SVG, so that text is sharp on today's screens.
const SCALE: i32 = 2;

pub(super) fn png(picture: &Picture) -> Result<Vec<u8>, PlotError> {
    let layout = Layout::new(picture);
    let (width, height) = (layout.width * SCALE, layout.height * SCALE);
    let (width, height) = (width.unsigned_abs(), height.unsigned_abs());
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    let mut bitmap = Written(BitMapBackend::with_buffer(&mut pixels, (width, height)));
    let failed = |error: &dyn std::fmt::Display| PlotError::Png(error.to_string());
    vector::draw(picture, &layout, &mut bitmap, SCALE).map_err(|error| failed(&error))?;
    drop(bitmap);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| failed(&error))?;
    writer.write_image_data(&pixels).map_err(|error| failed(&error))?;
    writer.finish().map_err(|error| failed(&error))?;
    Ok(file)
}
