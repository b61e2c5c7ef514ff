//! The hardened mode changes nothing that a correct program can see.

use std::process::Command;
use vellum_conformance::{Place, plain, scenario::check_all_with, served, tool};

const HARDENED: (&str, &str) = ("VELLUM_HARDEN", "1");

#[test]
fn forks_work() {
    let place = Place::new();
    check_all_with(&place.program("forks.c", &["-pthread"]), &[HARDENED]);
}

#[test]
fn every_form_of_new_and_delete_is_served() {
    let place = Place::new();
    check_all_with(&place.program("newdelete.cc", &["-std=c++17", "-pthread"]), &[HARDENED]);
}

#[test]
fn programs_say_the_same() {
    let script = "import json, threading, subprocess\n\
        text = json.dumps([list(range(n)) for n in range(200)])\n\
        made = [threading.Thread(target=lambda: [bytearray(n * 50) for n in range(2000)]) for _ in range(4)]\n\
        [t.start() for t in made]; [t.join() for t in made]\n\
        print(len(text), subprocess.check_output(['echo', 'hello']))\n";
    let commands: [(&str, &[&str]); 3] = [
        ("python3", &["-c", script]),
        ("perl", &["-e", "my %h = map { $_ => 'x' x $_ } 1..3000; print scalar(keys %h), \"\\n\""]),
        (
            "sqlite3",
            &[
                ":memory:",
                "create table t(a); with recursive n(i) as (select 1 union all select i+1 from n limit 20000) \
            insert into t select hex(i) from n; select count(*), max(a) from t;",
            ],
        ),
    ];
    for (name, arguments) in commands {
        let Some(program) = tool(name) else { continue };
        let command = || {
            let mut command = Command::new(&program);
            command.args(arguments).env(HARDENED.0, HARDENED.1);
            command
        };
        let (without, with) = (plain(command()).succeeded(), served(command()));
        assert_eq!(with.stdout, without.stdout, "{with}");
        assert!(with.status.success() && with.stderr.is_empty(), "{with}");
    }
}
