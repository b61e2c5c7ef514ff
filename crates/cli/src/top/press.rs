//! Decodes key presses from the bytes that a terminal sends.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Press {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Escape,
    Interrupt,
    Char(char),
}

/// Sequences after the escape character, in the forms of xterm and compatible terminals.
const SEQUENCES: [(&[u8], Press); 18] = [
    (b"[A", Press::Up),
    (b"[B", Press::Down),
    (b"[C", Press::Right),
    (b"[D", Press::Left),
    (b"[H", Press::Home),
    (b"[F", Press::End),
    (b"OA", Press::Up),
    (b"OB", Press::Down),
    (b"OC", Press::Right),
    (b"OD", Press::Left),
    (b"OH", Press::Home),
    (b"OF", Press::End),
    (b"[5~", Press::PageUp),
    (b"[6~", Press::PageDown),
    (b"[1~", Press::Home),
    (b"[7~", Press::Home),
    (b"[4~", Press::End),
    (b"[8~", Press::End),
];

/// The keys in the bytes of one read. Unknown sequences are skipped.
pub(super) fn presses(mut bytes: &[u8]) -> Vec<Press> {
    let mut found = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        match first {
            3 | 4 => found.push(Press::Interrupt),
            b' '..=b'~' => found.push(Press::Char(char::from(*first))),
            0x1b => match SEQUENCES.iter().find(|(sequence, _)| rest.starts_with(sequence)) {
                Some((sequence, press)) => {
                    found.push(*press);
                    bytes = &rest[sequence.len()..];
                }
                None if matches!(rest, [b'[' | b'O', ..]) => {
                    let end = rest[1..].iter().position(|byte| (b'@'..=b'~').contains(byte));
                    bytes = end.map_or(&[], |end| &rest[end + 2..]);
                }
                None => found.push(Press::Escape),
            },
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_sequences_are_decoded_and_others_skipped() {
        let all = presses(b"q\x1b[A\x1bOB\x1b[5~\x1b[1;5Cr\x03\xc3\xa4\x1b");
        let wanted = [
            Press::Char('q'),
            Press::Up,
            Press::Down,
            Press::PageUp,
            Press::Char('r'),
            Press::Interrupt,
            Press::Escape,
        ];
        assert_eq!(all, wanted);
        assert_eq!(presses(b"\x1b["), []);
    }
}
