//! Tests that run `vellum-fleet` or call its library, in one test program, so that it is linked only once.
//!
//! | module | subject |
//! | --- | --- |
//! | `plan`, `slurm` | the library alone; Lua and Polars where they are installed |
//! | `commands`, `agent`, `agent_tls` | `vellum-fleet` on jobs of the tests, with curl as the client |
//! | `prometheus`, `vpa` | a real Prometheus and API server, and fake servers that fail in every way |
//! | `scale`, `three_agents` | whole fleets |
//!
//! Tests that load the machine run alone ([`common::alone`]); others may run at the same time
//! ([`common::beside`]).

mod agent;
mod agent_tls;
mod commands;
mod common;
mod plan;
mod prometheus;
mod scale;
mod slurm;
mod three_agents;
mod vpa;
