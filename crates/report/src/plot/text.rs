//! Text on a bitmap, and its width.
//!
//! plotters can write on bitmaps with the system's fonts, which a container may lack, or with fonts that are
//! registered once for the whole program. Neither suits a library, so the bitmap is wrapped here in a backend
//! that writes with a font of our own (`fonts/README.md`). The same font's widths serve the layout of every
//! backend.

use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};
use plotters::backend::BitMapBackend;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};
use std::sync::LazyLock;

/// plotters' font sizes are lines' heights: its SVG divides by this to get the size of the letters, and so do
/// we.
pub(crate) const LINE: f64 = 1.24;
/// How far above the base line the middle of small letters lies, in sizes of letters.
const MIDDLE: f32 = 0.265;
/// How far above the base line capitals reach, in sizes of letters.
const CAPITAL: f32 = 0.71;

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| {
    let bytes = include_bytes!("../../fonts/roboto.ttf");
    FontRef::try_from_slice(bytes).expect("the font is part of the program, and a test writes with it")
});

/// The size at which letters have `size` pixels from the top of an ascender to the bottom of a descender and
/// a bit.
fn scale(size: f64) -> PxScale {
    let font = &*FONT;
    let em = font.units_per_em().unwrap_or(font.height_unscaled());
    PxScale::from(size as f32 * font.height_unscaled() / em)
}

/// How wide `text` is with letters of `size` pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let font = FONT.as_scaled(scale(size));
    text.chars().map(|c| f64::from(font.h_advance(font.glyph_id(c)))).sum()
}

/// `text`, or its beginning with an ellipsis where it is wider than `room`, as `wide` measures.
pub(crate) fn fit(text: &str, room: f64, wide: impl Fn(&str) -> f64) -> String {
    if wide(text) <= room {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while short.pop().is_some() {
        let with = format!("{}…", short.trim_end());
        if wide(&with) <= room {
            return with;
        }
    }
    String::new()
}

/// Breaks `text` between words into lines no wider than `room`, as `wide` measures; a longer word gets a line
/// of its own.
pub(crate) fn wrap(text: &str, room: f64, wide: impl Fn(&str) -> f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if wide(&format!("{line} {word}")) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A bitmap that writes with our font.
pub(crate) struct Written<'a>(pub(crate) BitMapBackend<'a>);

type Failed<'a> = DrawingErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>;

impl<'a> DrawingBackend for Written<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> Result<(), Failed<'a>> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> Result<(), Failed<'a>> {
        self.0.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Result<(), Failed<'a>> {
        self.0.draw_pixel(at, colour)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Result<(), Failed<'a>> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Result<(), Failed<'a>> {
        self.0.draw_rect(from, to, style, fill)
    }

    /// Each pixel as far as the circle covers it; plotters' own has corners where circles are as small as
    /// dots.
    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Result<(), Failed<'a>> {
        let (outer, colour) = (f64::from(radius), style.color());
        let half = if fill { 0.0 } else { f64::from(style.stroke_width()) / 2.0 };
        let reach = (outer + half).ceil() as i32 + 1;
        for (dx, dy) in (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dx, dy))) {
            let far = f64::from(dx * dx + dy * dy).sqrt();
            let inside = if fill { outer - far } else { half - (far - outer).abs() };
            let cover = (inside + 0.5).clamp(0.0, 1.0);
            if cover > 0.0 {
                self.0
                    .draw_pixel((x + dx, y + dy), BackendColor { alpha: colour.alpha * cover, ..colour })?;
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), Failed<'a>> {
        let size = style.size() / LINE;
        Ok((width(text, size).ceil() as u32, style.size().ceil() as u32))
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> Result<(), Failed<'a>> {
        let size = style.size() / LINE;
        let font = FONT.as_scaled(scale(size));
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width(text, size) / 2.0,
            HPos::Right => -width(text, size),
        };
        let base = match style.anchor().v_pos {
            VPos::Top => CAPITAL * size as f32,
            VPos::Center => MIDDLE * size as f32,
            VPos::Bottom => -MIDDLE * size as f32,
        };
        let (mut pen, colour, turned) = (left as f32, style.color(), style.transform());
        for c in text.chars() {
            let id = font.glyph_id(c);
            let glyph: Glyph = id.with_scale_and_position(font.scale(), point(pen, base));
            pen += font.h_advance(id);
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let (corner, mut drawn) = (outline.px_bounds().min, Ok(()));
            outline.draw(|x, y, cover| {
                let (x, y) = turned.transform(corner.x as i32 + x as i32, corner.y as i32 + y as i32);
                let ink = BackendColor { alpha: colour.alpha * f64::from(cover.clamp(0.0, 1.0)), ..colour };
                if drawn.is_ok() && ink.alpha > 0.0 {
                    drawn = self.0.draw_pixel((at.0 + x, at.1 + y), ink);
                }
            });
            drawn?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_pictures_say() {
        let said = "Az09 (µs) − ± σ ≤ ≥ · … – ×%+,;:äßλЖ\u{a0}";
        assert!(said.chars().all(|c| FONT.glyph_id(c).0 != 0), "a glyph is missing");
    }

    #[test]
    fn long_names_are_cut_to_their_room() {
        let wide = |text: &str| width(text, 12.0);
        assert_eq!(fit("short", 100.0, wide), "short");
        let cut = fit("a name that goes on and on and on", 100.0, wide);
        assert_eq!(fit("none", 1.0, wide), "");
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0 && width(&cut, 12.0) > 80.0, "{cut}");
    }

    #[test]
    fn lines_break_between_words() {
        let count = |line: &str| line.chars().count() as f64;
        assert_eq!(
            wrap("one two three extraordinarily four", 9.0, count),
            ["one two", "three", "extraordinarily", "four"]
        );
    }
}
