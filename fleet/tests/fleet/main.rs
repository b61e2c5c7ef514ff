//! Everything that `vellum-fleet` does, from outside: one program, so that it links once.
//!
//! | module | what it runs |
//! | --- | --- |
//! | `plan`, `slurm`, `examples` | the library alone; Lua, promtool and Polars where they are installed |
//! | `commands`, `agent`, `agent_tls` | `vellum-fleet` on jobs of the test, asked by curl |
//! | `prometheus`, `vpa` | a real Prometheus and API server, and servers that fail in every way |
//! | `scale`, `three_agents` | whole fleets |
//!
//! Tests that measure or that load the machine take turns ([`common::alone`], [`common::beside`]).

mod agent;
mod agent_tls;
mod commands;
mod common;
mod examples;
mod plan;
mod prometheus;
mod scale;
mod slurm;
mod three_agents;
mod vpa;
