//! Reads a reference trace in one pass, for `vellum trace`.
//!
//! Invariant: nothing is skipped silently. The first bad lines are reported one by one; all bad lines are
//! counted. If a killed writer left a truncated page trace, its complete part is used, with a note.

use super::args::TraceArgs;
use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use vellum_report::Output;
use vellum_workset::trace::{PageSize, PageTraceWriter, Reference, TimeUnit, Trace, TraceError};
use vellum_workset::{Intervals, Ticks};

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Bad lines that are reported one by one.
const TOLD_MAX: u64 = 5;

pub(super) struct Read {
    pub(super) name: String,
    /// `lackey` or `pages`.
    pub(super) format: &'static str,
    pub(super) unit: TimeUnit,
    pub(super) page_size: PageSize,
    pub(super) end: Ticks,
    pub(super) intervals: Intervals,
    /// The number of unreadable lines; a truncated record counts as one.
    pub(super) bad: u64,
}

/// Reads the file of the arguments, and saves it as a page trace if requested.
pub(super) fn read(args: &TraceArgs) -> Result<Read, Failure> {
    if args.file == Path::new("-") {
        return from(args, "standard input".to_owned(), io::stdin().lock());
    }
    let name = args.file.display().to_string();
    let open = |error| Failure::because(format!("trace: cannot open {name}: {error}"));
    let file = File::open(&args.file).map_err(open)?;
    from(args, name, BufReader::with_capacity(BUFFER_BYTES, file))
}

fn from(args: &TraceArgs, name: String, source: impl BufRead) -> Result<Read, Failure> {
    let failed = |error: TraceError| Failure::because(format!("trace: {name}: {error}"));
    let mut trace = Trace::open(source, args.page_size).map_err(failed)?;
    let mut save = args.save.as_deref().map(|path| Save::new(path, &trace)).transpose()?;
    let mut intervals = Intervals::new(args.follow, Ticks(0));
    let mut bad = 0;
    // By reference, as the end time is read from the trace afterwards.
    for read in &mut trace {
        match read {
            Ok(reference) => {
                intervals.reference(reference.page, reference.now);
                if let Some(save) = &mut save {
                    save.write(reference)?;
                }
            }
            Err(error) if !args.strict && (error.can_go_on() || error.is_cut_off()) => {
                bad += 1;
                tell(&name, &error, bad);
            }
            Err(error) => return Err(failed(error)),
        }
    }
    if bad > TOLD_MAX {
        say!("vellum: trace: {name}: {bad} lines in all were skipped; --strict makes them an error");
    }
    if let Some(save) = save {
        save.finish()?;
    }
    let format = match trace {
        Trace::Lackey(_) => "lackey",
        Trace::Pages(_) => "pages",
    };
    let (unit, page_size, end) = (trace.time_unit(), trace.page_size(), trace.now());
    Ok(Read { name, format, unit, page_size, end, intervals, bad })
}

fn tell(name: &str, error: &TraceError, bad: u64) {
    if bad <= TOLD_MAX {
        let what = if error.is_cut_off() { "ends early" } else { "has a line that is skipped" };
        say!("vellum: trace: {name} {what}: {error}");
    }
}

/// A page trace being written; it appears under its name when it is complete.
struct Save {
    writer: PageTraceWriter<BufWriter<Box<dyn Write + Send>>>,
    output: Output,
    path: PathBuf,
}

impl Save {
    fn new<R: BufRead>(path: &Path, trace: &Trace<R>) -> Result<Save, Failure> {
        let output = Output::prepare(path)?;
        let sink = BufWriter::with_capacity(BUFFER_BYTES, output.sink()?);
        let writer = PageTraceWriter::new(sink, trace.page_size(), trace.time_unit());
        let path = path.to_path_buf();
        match writer {
            Ok(writer) => Ok(Save { writer, output, path }),
            Err(error) => Err(Failure::output(path, error)),
        }
    }

    fn write(&mut self, reference: Reference) -> Result<(), Failure> {
        self.writer.write(reference).map_err(|error| Failure::output(&self.path, error))
    }

    fn finish(self) -> Result<(), Failure> {
        self.writer.into_inner().flush().map_err(|error| Failure::output(&self.path, error))?;
        Ok(self.output.place()?)
    }
}
