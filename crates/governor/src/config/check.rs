//! Checks a parsed job table (`jobs.toml`) and converts it to a configuration. Errors name the line.

use super::error::Place;
use super::raw::{Governor, Job, Table};
use super::{
    Budget, CommandConfig, Config, ConfigError, JOBS_MAX, JobConfig, NAME_MAX, Origin, PRIORITY_DEFAULT,
    PRIORITY_MAX, User, quantity,
};
use crate::user;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use vellum_kernel::{Cgroup, Control, Pid};
use vellum_workset::{CAP, Criterion};

const BUDGET_DEFAULT: Budget = Budget::Part(0.9);
const PERIOD_DEFAULT: Duration = Duration::from_secs(1);
const BRAKE_DEFAULT: f64 = 0.1;
const TURN_DEFAULT: Duration = Duration::from_secs(20);
const LONGEST_SUSPENSION_DEFAULT: Duration = Duration::from_secs(2);
const DELTA_DEFAULT: Duration = Duration::from_millis(100);
const ALPHA_DEFAULT: f64 = 0.95;

/// Shorter periods would cost more than they could gain; longer ones would miss the budget for too long. Less
/// than the time after which the guardian takes the governor for dead.
const PERIODS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3)];
const TURNS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];
/// Jobs that take turns faster than this do little else.
const LONGEST_SUSPENSIONS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(24 * 3600)];
/// Below 50 ms of user time accessed bits miss what the processor's translation buffer holds.
const DELTAS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(60)];

type Checked<T> = Result<T, ConfigError>;

#[derive(Debug)]
pub(super) struct Checker<'a> {
    pub(super) at: Place<'a>,
    pub(super) folder: &'a Path,
}

struct Usual {
    delta: Duration,
    alpha: f64,
    criterion: Criterion,
    cap: f64,
}

impl Checker<'_> {
    pub(super) fn config(&self, table: Table) -> Checked<Config> {
        let Governor {
            budget,
            period,
            brake,
            turn,
            longest_suspension,
            sockets,
            metrics,
            groups,
            delta,
            alpha,
            criterion,
            cap,
        } = table.governor;
        let usual = Usual {
            delta: self.time("delta", delta.as_ref(), DELTA_DEFAULT, DELTAS)?,
            alpha: self.alpha(alpha.as_ref(), ALPHA_DEFAULT)?,
            criterion: self.criterion(criterion.as_ref(), Criterion::ProcessorEfficiency)?,
            cap: self.part("cap", cap.as_ref(), CAP)?,
        };
        if table.jobs.is_empty() {
            let reason = "no job: write [[job]] with a name and a command, a pid or a cgroup";
            return self.wrong(&(0..0), reason.into());
        }
        if let Some(one_more) = table.jobs.get(JOBS_MAX) {
            let reason = format!("job {}: a table has at most {JOBS_MAX}", JOBS_MAX + 1);
            return self.wrong(&one_more.span(), reason);
        }
        let jobs = table.jobs.iter().map(|job| self.job(job, &usual)).collect::<Checked<Vec<_>>>()?;
        self.no_twins(&table.jobs)?;
        Ok(Config {
            budget: match &budget {
                None => BUDGET_DEFAULT,
                Some(text) => self.given(
                    "budget",
                    text,
                    quantity::budget,
                    "a size, as \"6 GiB\", or a part, as \"75 %\"",
                )?,
            },
            period: self.time("period", period.as_ref(), PERIOD_DEFAULT, PERIODS)?,
            brake: self.part("brake", brake.as_ref(), BRAKE_DEFAULT)?,
            turn: self.time("turn", turn.as_ref(), TURN_DEFAULT, TURNS)?,
            longest_suspension: self.time(
                "longest_suspension",
                longest_suspension.as_ref(),
                LONGEST_SUSPENSION_DEFAULT,
                LONGEST_SUSPENSIONS,
            )?,
            directory: sockets.as_ref().map(|path| self.folder.join(path.get_ref())),
            metrics: metrics.as_ref().map(|text| self.metrics(text)).transpose()?,
            groups: groups.as_ref().map(|path| self.group(path)).transpose()?,
            jobs,
        })
    }

    fn job(&self, spanned: &Spanned<Job>, usual: &Usual) -> Checked<JobConfig> {
        let job = spanned.get_ref();
        self.name(&job.name)?;
        let priority = match &job.priority {
            None => PRIORITY_DEFAULT,
            Some(number) => match u8::try_from(*number.get_ref()) {
                Ok(priority) if priority <= PRIORITY_MAX => priority,
                _ => {
                    let given = number.get_ref();
                    let reason = format!("priority {given}: it is from 0 to {PRIORITY_MAX}, the most urgent");
                    return self.wrong(&number.span(), reason);
                }
            },
        };
        Ok(JobConfig {
            name: job.name.get_ref().clone(),
            origin: self.origin(spanned)?,
            priority,
            delta: self.time("delta", job.delta.as_ref(), usual.delta, DELTAS)?,
            alpha: self.alpha(job.alpha.as_ref(), usual.alpha)?,
            criterion: self.criterion(job.criterion.as_ref(), usual.criterion)?,
            cap: self.part("cap", job.cap.as_ref(), usual.cap)?,
        })
    }

    fn origin(&self, spanned: &Spanned<Job>) -> Checked<Origin> {
        let job = spanned.get_ref();
        let name = job.name.get_ref();
        match (&job.command, &job.pid, &job.cgroup) {
            (Some(argv), None, None) => self.command(job, argv).map(Origin::Command),
            (None, Some(pid), None) => {
                self.only_commands(job)?;
                match i32::try_from(*pid.get_ref()) {
                    Ok(number) if number == std::process::id() as i32 => {
                        self.wrong(&pid.span(), format!("pid {number}: that is the governor itself"))
                    }
                    Ok(number) if number > 1 && Pid(number).file("").exists() => Ok(Origin::Pid(Pid(number))),
                    _ => self.wrong(
                        &pid.span(),
                        format!("pid {}: there is no such process to adopt", pid.get_ref()),
                    ),
                }
            }
            (None, None, Some(group)) => {
                self.only_commands(job)?;
                self.group(group).map(Origin::Group)
            }
            (None, None, None) => {
                self.wrong(&spanned.span(), format!("job {name}: no program; set command, pid or cgroup"))
            }
            _ => self.wrong(&spanned.span(), format!("job {name}: only one of command, pid and cgroup")),
        }
    }

    /// Refuses settings that only jobs started here can have.
    fn only_commands(&self, job: &Job) -> Checked<()> {
        let said = [
            ("user", job.user.as_ref().map(Spanned::span)),
            ("directory", job.directory.as_ref().map(Spanned::span)),
            ("environment", job.environment.as_ref().map(Spanned::span)),
            ("output", job.output.as_ref().map(Spanned::span)),
            ("restart", job.restart.as_ref().map(Spanned::span)),
            ("runtime", job.runtime.as_ref().map(Spanned::span)),
        ];
        match said.into_iter().find_map(|(key, span)| Some((key, span?))) {
            Some((key, span)) => {
                self.wrong(&span, format!("{key}: only for a job with a command: this one runs already"))
            }
            None => Ok(()),
        }
    }

    fn command(&self, job: &Job, argv: &Spanned<Vec<String>>) -> Checked<CommandConfig> {
        let words = argv.get_ref();
        if words.first().is_none_or(String::is_empty) {
            return self.wrong(
                &argv.span(),
                "command: write the program and its arguments, as [\"make\", \"-j2\"]".into(),
            );
        }
        if words.iter().any(|word| word.contains('\0')) {
            return self.wrong(&argv.span(), "command: a NUL byte, which no program can be given".into());
        }
        let directory = job.directory.as_ref().map(|path| self.directory(path)).transpose()?;
        let environment = job.environment.as_ref().map_or(Ok(Vec::new()), |all| self.environment(all))?;
        self.program(argv, directory.as_deref(), &environment)?;
        Ok(CommandConfig {
            argv: words.clone(),
            user: job.user.as_ref().map(|name| self.user(name)).transpose()?,
            directory,
            environment,
            output: job.output.as_ref().map(|path| self.output(path)).transpose()?,
            restart: job.restart.as_ref().map(|restart| *restart.get_ref()).unwrap_or_default(),
            runtime: job.runtime.as_ref().is_some_and(|runtime| *runtime.get_ref()),
        })
    }

    fn program(
        &self,
        argv: &Spanned<Vec<String>>,
        directory: Option<&Path>,
        environment: &[(String, String)],
    ) -> Checked<()> {
        let program = Path::new(&argv.get_ref()[0]);
        // A name with a slash is relative to where the job will be; a bare one is looked for as the job
        // would.
        if program.components().count() > 1 || program.is_absolute() {
            let place = directory.unwrap_or(Path::new(".")).join(program);
            let reason = format!("command: {}: there is no such program", place.display());
            return self.require(argv, place.is_file(), reason, ());
        }
        let own = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.into());
        let found = own
            .or_else(|| std::env::var_os("PATH"))
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
        self.require(argv, found, format!("command: {}: not found in PATH", program.display()), ())
    }

    fn directory(&self, path: &Spanned<String>) -> Checked<PathBuf> {
        let place = self.folder.join(path.get_ref());
        let reason = format!("directory: {}: there is no such directory", place.display());
        self.require(path, place.is_dir(), reason, place)
    }

    fn output(&self, path: &Spanned<String>) -> Checked<PathBuf> {
        let place = self.folder.join(path.get_ref());
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (is, reason) =
            (folder.is_dir(), format!("output: {}: no file can be made there", place.display()));
        self.require(path, is && !place.is_dir(), reason, place)
    }

    fn environment(
        &self,
        all: &Spanned<std::collections::BTreeMap<String, String>>,
    ) -> Checked<Vec<(String, String)>> {
        let odd = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        match all.get_ref().iter().find(odd) {
            Some((name, _)) => self
                .wrong(&all.span(), format!("environment: {name:?}: no variable can be called or hold that")),
            None => Ok(all.get_ref().iter().map(|(name, value)| (name.clone(), value.clone())).collect()),
        }
    }

    fn user(&self, name: &Spanned<String>) -> Checked<User> {
        let wanted = name.get_ref();
        let Some(user) = user::lookup(wanted) else {
            return self.wrong(&name.span(), format!("user: {wanted}: there is no such user"));
        };
        let own = rustix::process::geteuid();
        let reason = format!("user: {wanted}: only root may start jobs as somebody else");
        self.require(name, own.is_root() || own.as_raw() == user.uid, reason, user)
    }

    fn group(&self, path: &Spanned<String>) -> Checked<PathBuf> {
        let place = Path::new(path.get_ref());
        let is = place.is_absolute() && Cgroup::at(place).control(Control::Processes).is_file();
        let reason = format!(
            "{}: no control group: write the absolute path of its directory (it has a cgroup.procs)",
            place.display()
        );
        self.require(path, is, reason, place.to_path_buf())
    }

    fn metrics(&self, text: &Spanned<String>) -> Checked<SocketAddr> {
        let read = |text: &str| text.parse::<SocketAddr>().ok();
        let address = self.given("metrics", text, read, "an address and a port, as 127.0.0.1:9187")?;
        let reason = format!("metrics: {address}: only loopback addresses, as 127.0.0.1:9187");
        self.require(text, address.ip().is_loopback(), reason, address)
    }

    fn name(&self, name: &Spanned<String>) -> Checked<()> {
        let text = name.get_ref();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits =
            !text.is_empty() && text.len() <= NAME_MAX && !text.starts_with('.') && text.bytes().all(plain);
        let reason = format!(
            "name {text:?}: 1 to {NAME_MAX} letters, digits, \".\", \"_\" and \"-\", and no dot first"
        );
        self.require(name, fits, reason, ())
    }

    /// Two jobs of one name, process or group would be taken for each other.
    fn no_twins(&self, jobs: &[Spanned<Job>]) -> Checked<()> {
        let mut seen = HashMap::new();
        for job in jobs {
            let job = job.get_ref();
            let keys = [
                Some(("name", job.name.span(), job.name.get_ref().clone())),
                job.pid.as_ref().map(|pid| ("pid", pid.span(), pid.get_ref().to_string())),
                job.cgroup.as_ref().map(|group| ("cgroup", group.span(), group.get_ref().clone())),
            ];
            for (what, span, value) in keys.into_iter().flatten() {
                if seen.insert((what, value.clone()), ()).is_some() {
                    return self.wrong(&span, format!("{what} {value}: another job has it already"));
                }
            }
        }
        Ok(())
    }

    fn criterion(&self, text: Option<&Spanned<String>>, usual: Criterion) -> Checked<Criterion> {
        match text.map(|text| (text, text.get_ref().as_str())) {
            None => Ok(usual),
            Some((_, "pe")) => Ok(Criterion::ProcessorEfficiency),
            Some((_, "lt")) => Ok(Criterion::Lifetime),
            Some((text, other)) => self.wrong(
                &text.span(),
                format!("criterion {other:?}: write \"pe\" (processor efficiency) or \"lt\" (lifetime)"),
            ),
        }
    }

    fn alpha(&self, alpha: Option<&Spanned<f64>>, usual: f64) -> Checked<f64> {
        let Some(text) = alpha else { return Ok(usual) };
        let alpha = *text.get_ref();
        self.require(text, alpha > 0.0 && alpha <= 1.0, format!("alpha {alpha}: above 0, at most 1"), alpha)
    }

    fn part(&self, what: &str, text: Option<&Spanned<String>>, usual: f64) -> Checked<f64> {
        text.map_or(Ok(usual), |text| self.given(what, text, quantity::part, "a part, as \"2 %\""))
    }

    fn time(
        &self,
        what: &str,
        text: Option<&Spanned<String>>,
        usual: Duration,
        range: [Duration; 2],
    ) -> Checked<Duration> {
        let Some(text) = text else { return Ok(usual) };
        let time = self.given(what, text, quantity::time, "a time, as \"100 ms\" or \"2 s\"")?;
        let reason = format!("{what} {time:?}: it is from {:?} to {:?}", range[0], range[1]);
        self.require(text, (range[0]..=range[1]).contains(&time), reason, time)
    }

    fn given<T>(
        &self,
        what: &str,
        text: &Spanned<String>,
        read: impl Fn(&str) -> Option<T>,
        form: &str,
    ) -> Checked<T> {
        match read(text.get_ref()) {
            Some(value) => Ok(value),
            None => self.wrong(&text.span(), format!("{what} {:?}: write {form}", text.get_ref())),
        }
    }

    /// `value` where that `is` so, else an error `at` a place for this reason.
    fn require<S, T>(&self, at: &Spanned<S>, is: bool, reason: String, value: T) -> Checked<T> {
        if is { Ok(value) } else { self.wrong(&at.span(), reason) }
    }

    fn wrong<T>(&self, span: &Range<usize>, reason: String) -> Checked<T> {
        Err(self.at.error(span, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Restart;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("jobs.toml"), Path::new("/")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_table_is_understood() {
        let config = parse(
            "[governor]\nbudget = \"75 %\"\nperiod = \"500 ms\"\nmetrics = \"127.0.0.1:9187\"\ndelta = \"200 ms\"\n\
             [[job]]\nname = \"a\"\ncommand = [\"sh\", \"-c\", \"true\"]\ndirectory = \"tmp\"\nrestart = \"on-failure\"\n\
             environment = { A = \"b\" }\npriority = 9\ncriterion = \"lt\"\n\
             [[job]]\nname = \"b\"\ncommand = [\"/bin/sh\"]\n",
        )
        .unwrap();
        assert_eq!((config.budget, config.period), (Budget::Part(0.75), Duration::from_millis(500)));
        let [a, b] = &config.jobs[..] else { panic!("two jobs") };
        assert_eq!((a.priority, b.priority), (9, PRIORITY_DEFAULT));
        assert_eq!((a.criterion, b.criterion), (Criterion::Lifetime, Criterion::ProcessorEfficiency));
        assert_eq!(config.longest_suspension, Duration::from_secs(2));
        assert_eq!(b.delta, Duration::from_millis(200));
        let Origin::Command(command) = &a.origin else { panic!("a command") };
        assert_eq!(
            (command.restart, command.directory.as_deref()),
            (Restart::OnFailure, Some(Path::new("/tmp")))
        );
        assert_eq!(command.environment, [("A".into(), "b".into())]);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_line_and_reason() {
        let job = "[[job]]\nname = \"a\"\ncommand = [\"sh\"]\n";
        for (text, said) in [
            ("", "jobs.toml:1: no job"),
            (
                "[governor]\nbudget = \"6 GX\"\n[[job]]\nname=\"a\"\ncommand=[\"sh\"]",
                "jobs.toml:2: budget \"6 GX\": write a size",
            ),
            ("[governor]\nbudget = 6\n", "jobs.toml:2: invalid type: integer `6`, expected a string"),
            (
                "[governor]\nlongest_suspension = \"1 ms\"\n[[job]]\nname=\"a\"\ncommand=[\"sh\"]",
                "jobs.toml:2: longest_suspension 1ms: it is from 500ms",
            ),
            ("[governor]\nbugdet = \"6 GiB\"\n", "jobs.toml:2: unknown field `bugdet`"),
            ("[governor\n", "jobs.toml:1: "),
            (&format!("{job}prio = 3\n"), "jobs.toml:4: unknown field `prio`"),
            (&format!("{job}priority = 10\n"), "jobs.toml:4: priority 10: it is from 0 to 9"),
            (&format!("{job}delta = \"1 ms\"\n"), "jobs.toml:4: delta 1ms: it is from 50ms"),
            (&format!("{job}alpha = 0.0\n"), "jobs.toml:4: alpha 0"),
            (&format!("{job}criterion = \"best\"\n"), "jobs.toml:4: criterion \"best\""),
            (&format!("{job}cap = \"0.02\"\n"), "jobs.toml:4: cap \"0.02\": write a part"),
            (&format!("{job}restart = \"sometimes\"\n"), "jobs.toml:4: unknown variant `sometimes`"),
            (
                &format!("{job}directory = \"/no/such\"\n"),
                "jobs.toml:4: directory: /no/such: there is no such",
            ),
            (
                &format!("{job}user = \"nobody-of-that-name\"\n"),
                "jobs.toml:4: user: nobody-of-that-name: there is no such user",
            ),
            (&format!("{job}environment = {{ \"A=B\" = \"c\" }}\n"), "jobs.toml:4: environment: \"A=B\""),
            (&format!("{job}pid = 5\n"), "jobs.toml:1: job a: only one of command, pid and cgroup"),
            (&format!("{job}\n{job}"), "jobs.toml:6: name a: another job has it already"),
            ("[[job]]\nname = \"a\"\n", "jobs.toml:1: job a: no program"),
            ("[[job]]\nname = \"a b\"\ncommand = [\"sh\"]\n", "jobs.toml:2: name \"a b\""),
            ("[[job]]\nname = \"../x\"\ncommand = [\"sh\"]\n", "jobs.toml:2: name \"../x\""),
            ("[[job]]\nname = \"a\"\ncommand = []\n", "jobs.toml:3: command: write the program"),
            ("[[job]]\nname = \"a\"\ncommand = \"sh\"\n", "jobs.toml:3: invalid type"),
            (
                "[[job]]\nname = \"a\"\ncommand = [\"no-such-program-here\"]\n",
                "jobs.toml:3: command: no-such-program-here: not found",
            ),
            (
                "[[job]]\nname = \"a\"\npid = 99999999\n",
                "jobs.toml:3: pid 99999999: there is no such process",
            ),
            ("[[job]]\nname = \"a\"\ncgroup = \"/tmp\"\n", "jobs.toml:3: /tmp: no control group"),
            (
                "[[job]]\nname = \"a\"\npid = 2\nrestart = \"always\"\n",
                "jobs.toml:4: restart: only for a job with a command",
            ),
            (
                &format!("[governor]\nmetrics = \"0.0.0.0:80\"\n{job}"),
                "jobs.toml:2: metrics: 0.0.0.0:80: only loopback",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(said), "{text}\n  said: {error}\nwanted: {said}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
