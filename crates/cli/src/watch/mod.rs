//! `vellum watch`: measures the working set (memory used within a time window) of a running program.
//!
//! ```text
//! args ─▶ subject ─▶ Watcher ─▶ Frame ─┬─▶ view      redrawn on a terminal, else a line per frame
//!                                       ├─▶ record    a file to show later
//! FILE ─▶ record ──────────────────────▶└─▶ JSON      standard output
//! ```
//! The subject is the watched program; a frame is the state of the watch at one moment. With `--prove`,
//! `prove` reclaims memory of the program's cgroup, counts the faults, and corrects the curve.
//!
//! One thread does all of this, and sleeps between samples and reports. A signal may end the command at any
//! moment: nothing stays set in the watched program, and every line of a record is complete.

mod args;
mod prove;
mod record;
mod view;

pub(crate) use args::Watch;

use crate::failure::Failure;
use crate::screen;
use prove::{Proof, Prover};
use record::{Header, Record, Recorded};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};
use vellum_process::{Interrupt, Pid};
use vellum_reference::{Availability, CYCLES_MIN, Delay, Event, Frame, SourceKind, Target, Watcher};
use vellum_report::{Look, Report, Section, Style, stdout};

/// The shortest period.
const PERIOD_MIN: Duration = Duration::from_millis(100);
/// The most moments of a recorded watch that are listed.
const LISTED_MAX: usize = 24;
/// The most names of a subject in a list.
const NAMES_MAX: usize = 3;

pub(crate) fn watch(args: &Watch) -> Result<u8, Failure> {
    if args.sources {
        stdout::write_all(sources().as_bytes())?;
        return Ok(0);
    }
    if args.period < PERIOD_MIN {
        let period = args.period;
        return Err(Failure::because(format!(
            "--period {period:?} is too short; the shortest is {PERIOD_MIN:?}"
        )));
    }
    let target = match (&args.cgroup, &args.subject) {
        (Some(path), _) => Target::cgroup(path),
        (None, Some(subject)) => match subject.parse() {
            Ok(pid) => Target::process(Pid(pid)),
            Err(_) if Path::new(subject).is_file() => return show(args, Path::new(subject)),
            Err(_) => Target::named(subject),
        },
        (None, None) => return Ok(0),
    };
    let watcher = Watcher::new(target?, args.options())?;
    // Measured before the watch, so that the device is not busy with it during the watch.
    let delay = match args.delay {
        Some(delay) => Some(Delay::given(delay)),
        None => Delay::measure().inspect_err(|why| say!("vellum: {why}")).ok(),
    };
    // A signal must end a proof in an orderly way; a watch needs no such care.
    let caught = args.prove.then(Interrupt::catch).transpose();
    let caught = caught.map_err(|error| Failure::because(format!("cannot catch signals: {error}")))?;
    let done = Session::new(args, watcher, delay)?.run();
    drop(caught);
    match Interrupt::last().filter(|_| args.prove) {
        Some(signal) => done.map(|_| 128 + u8::try_from(signal).unwrap_or(0)),
        None => done,
    }
}

struct Session<'a> {
    args: &'a Watch,
    watcher: Watcher,
    header: Header,
    record: Option<Record>,
    drawn: Option<Drawing>,
    prover: Option<Prover>,
    proof: Option<Proof>,
    began: Instant,
}

impl<'a> Session<'a> {
    fn new(args: &'a Watch, mut watcher: Watcher, delay: Option<Delay>) -> Result<Session<'a>, Failure> {
        watcher.step()?;
        let header = Header::new(subject(args, &watcher), watcher.options(), watcher.source(), delay);
        let record = args.record.as_deref().map(|path| Record::create(path, &header)).transpose()?;
        let drawn = (!args.json && std::io::stdout().is_terminal()).then(Drawing::default);
        let (prover, proof, began) = (None, None, Instant::now());
        let session = Session { args, watcher, header, record, drawn, prover, proof, began };
        if args.prove {
            if session.header.delay.is_none() {
                return Err(Failure::because(
                    "--prove: the delay of a page fault is unknown here; set it with --delay, as in --delay 100us",
                ));
            }
            prove::check(session.watcher.target(), &session.watcher)?;
        }
        Ok(session)
    }

    fn run(mut self) -> Result<u8, Failure> {
        if self.args.json && !stdout::say::<Failure>(&vellum_report::json(&self.header)?)? {
            return Ok(0);
        }
        let mut next = self.began;
        loop {
            let step = self.watcher.step()?;
            self.report(&step.events);
            let whole_cycle = self.watcher.history().samples() > 0;
            let timed_out = self.args.time.is_some_and(|time| self.began.elapsed() >= time);
            let proving = self.prove(step.wait.is_none(), timed_out)?;
            let proved = self.proof.is_some();
            let over = step.wait.is_none() || timed_out || proved || (self.args.once && whole_cycle);
            if over {
                self.watcher.finish();
            }
            if (over || Instant::now() >= next) && !self.show(over)? {
                return Ok(0);
            }
            let Some(wait) = step.wait.filter(|_| !over) else { return Ok(0) };
            while next <= Instant::now() {
                next += self.args.period;
            }
            let until_end = self.args.time.map(|time| time.saturating_sub(self.began.elapsed()));
            let wait = wait.min(next.saturating_duration_since(Instant::now())).min(proving);
            std::thread::sleep(until_end.map_or(wait, |end| wait.min(end)));
        }
    }

    /// Continues the proof, if one was requested and there is a recommendation. Returns the time until the
    /// next step.
    fn prove(&mut self, ended: bool, timed_out: bool) -> Result<Duration, Failure> {
        let (true, Some(delay)) = (self.args.prove, &self.header.delay) else { return Ok(Duration::MAX) };
        let asked = Interrupt::arrived().is_some();
        let why = match (ended, timed_out, asked) {
            (true, ..) => Some("the job has ended"),
            (_, true, _) => Some("the requested time is over"),
            (.., true) => Some("a signal ended it"),
            _ => None,
        };
        if let Some(why) = why {
            self.proof = Some(match &mut self.prover {
                Some(prover) => prover.stop(&mut self.watcher, delay, why),
                None => prove::none(&format!("{why}; there was no advice to prove yet")),
            });
            return Ok(Duration::ZERO);
        }
        let Some(prover) = &mut self.prover else {
            // After one cycle the recommendation is all of the job's memory: there is nothing to prove.
            if self.watcher.history().samples() >= CYCLES_MIN {
                self.prover = Some(Prover::begin(self.watcher.target(), &self.watcher, delay)?);
            }
            return Ok(Duration::from_millis(500));
        };
        match prover.step(&mut self.watcher, delay)? {
            Ok(proof) => self.proof = Some(proof),
            Err(wait) => return Ok(wait),
        }
        Ok(Duration::ZERO)
    }

    /// Shows and records the moment; false if the reader has closed the output.
    fn show(&mut self, last: bool) -> Result<bool, Failure> {
        let frame = self.watcher.frame(self.header.delay.as_ref());
        if let Some(record) = &mut self.record {
            record.put(&frame)?;
        }
        if self.args.json {
            let proof = self.proof.as_ref().filter(|_| last);
            return stdout::say(&vellum_report::json(&Moment { frame: &frame, proof })?);
        }
        let whole = || view::whole(&self.header, &frame, self.proof.as_ref()).text(look());
        match &mut self.drawn {
            Some(drawing) => drawing.draw(&whole()),
            None if last => stdout::say(&whole()),
            None => stdout::say(&(view::line(&frame) + "\n")),
        }
    }

    /// Reports changes of the processes on standard error, unless a drawing is shown there.
    fn report(&self, events: &[Event]) {
        for event in events {
            match event {
                Event::Lost { pid, why } => say!("error: cannot watch process {pid}: {why}"),
                Event::Restarted if self.drawn.is_none() => {
                    say!("vellum: the process has executed another program: the watch starts again");
                }
                Event::Spoiled { why } if self.drawn.is_none() => {
                    say!("vellum: a cycle is discarded: {why}");
                }
                Event::Ended if self.drawn.is_none() => say!("vellum: the watched program has ended"),
                _ => {}
            }
        }
    }
}

/// A moment as JSON; the last moment has the proof.
#[derive(serde::Serialize)]
struct Moment<'a> {
    #[serde(flatten)]
    frame: &'a Frame,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'a Proof>,
}

/// Text on a terminal that is redrawn in place.
#[derive(Default)]
struct Drawing {
    lines: usize,
}

impl Drawing {
    fn draw(&mut self, text: &str) -> Result<bool, Failure> {
        // Lines that have scrolled off the screen cannot be redrawn.
        let room = screen::lines().saturating_sub(1);
        let shown: Vec<&str> = text.lines().take(room).collect();
        let mut all = if self.lines > 0 { format!("\x1b[{}A\r", self.lines) } else { String::new() };
        for line in &shown {
            all += &format!("{line}\x1b[K\n");
        }
        all += "\x1b[J";
        self.lines = shown.len();
        stdout::say(&all)
    }
}

fn subject(args: &Watch, watcher: &Watcher) -> String {
    if let Some(path) = &args.cgroup {
        return format!("control group {}", path.display());
    }
    let clean = |name: &str| name.replace(char::is_control, "?");
    let names: Vec<String> =
        watcher.processes().map(|(pid, name)| format!("{} (pid {pid})", clean(name))).collect();
    match names.len() {
        0 => clean(args.subject.as_deref().unwrap_or_default()),
        all if all <= NAMES_MAX => names.join(", "),
        all => format!("{} and {} more", names[..NAMES_MAX].join(", "), all - NAMES_MAX),
    }
}

fn show(args: &Watch, path: &Path) -> Result<u8, Failure> {
    if args.json {
        return Err(Failure::because(
            "--json cannot be used with a recorded watch: the file itself is JSON, an object a line; read it instead",
        ));
    }
    let recorded = Recorded::read(path)?;
    let Some(last) = recorded.frames.last() else { return Ok(0) };
    let mut text = String::new();
    for frame in thinned(&recorded.frames) {
        text += &view::line(frame);
        text.push('\n');
    }
    text.push('\n');
    let mut whole = view::whole(&recorded.header, last, None);
    if recorded.cut {
        let cut = "the last line is cut: the recording was interrupted";
        whole.section(Section::new(), |section| _ = section.note(cut));
    }
    text += &whole.text(look());
    stdout::write_all(text.as_bytes())?;
    Ok(0)
}

fn look() -> Look {
    Look::brief(Style::of_stdout())
}

/// Evenly spaced moments, including the last.
fn thinned(frames: &[Frame]) -> impl Iterator<Item = &Frame> {
    let step = frames.len().div_ceil(LISTED_MAX).max(1);
    let from = (frames.len() - 1) % step;
    frames.iter().skip(from).step_by(step)
}

fn sources() -> String {
    let mut section = Section::new();
    for kind in SourceKind::ALL {
        let found = match kind.availability() {
            Availability::Usable => "usable".to_owned(),
            Availability::Absent(why) => format!("absent: {why}"),
        };
        section.rows([(kind.name(), kind.words().to_owned()), ("", found)]);
    }
    Report::new(None).sections([section]).text(look())
}
