//! Measures the width of text in a picture, and shortens text to fit.
//!
//! Pictures are laid out without a font, by the widths of Roboto. The SVG names Roboto first; the other fonts
//! it names have similar widths.

use unicode_width::UnicodeWidthChar;

/// The widths of the characters from space to tilde, in 1/2048 of the size of the letters.
const ASCII: [u16; 95] = [
    508, 528, 656, 1261, 1151, 1500, 1274, 358, 701, 713, 882, 1162, 403, 566, 540, 845, 1151, 1151, 1151,
    1151, 1151, 1151, 1151, 1151, 1151, 1151, 496, 433, 1041, 1124, 1071, 968, 1839, 1336, 1276, 1333, 1344,
    1164, 1132, 1395, 1461, 557, 1130, 1285, 1103, 1788, 1461, 1409, 1292, 1409, 1262, 1216, 1222, 1328,
    1304, 1817, 1284, 1230, 1227, 543, 841, 543, 856, 924, 633, 1114, 1150, 1072, 1155, 1086, 712, 1150,
    1128, 498, 490, 1038, 498, 1796, 1131, 1168, 1150, 1164, 694, 1057, 670, 1129, 992, 1539, 1016, 969,
    1016, 693, 500, 693, 1393,
];
/// The width of any other character, for each column it takes.
const OTHER: u16 = 1200;

/// The width of `text` with letters of `size` pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let of = |c: char| match u32::from(c).checked_sub(u32::from(' ')).and_then(|at| ASCII.get(at as usize)) {
        Some(width) => usize::from(*width),
        None => usize::from(OTHER) * c.width().unwrap_or(0),
    };
    text.chars().map(of).sum::<usize>() as f64 * size / 2048.0
}

/// `text`, or its beginning with an ellipsis if it is wider than `room`, as measured by `wide`.
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

/// Breaks `text` between words into lines no wider than `room`, as measured by `wide`; a longer word gets its
/// own line.
pub(crate) fn wrap(text: &str, room: f64, wide: impl Fn(&str) -> f64) -> Vec<String> {
    if wide(text) <= room {
        return vec![text.to_owned()];
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(wrap("   a row", 9.0, count), ["   a row"]);
    }
}
