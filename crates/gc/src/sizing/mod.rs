//! When to collect next, and how large the heap's regions are until then.
//!
//! ```text
//!   a collection ends ──▶ Seen: findings, costs, memory ──▶ Policy ──▶ Sizes
//!                                                                        │
//!   objects stay, or few move      |- live -|---------- free ----------| ▼
//!   all live ones are copied       |- old ───▶ old_max |     |- free -|  the next collection
//! ```
//!
//! A policy is a pure function: `original` and `modified` (the two strategies of the source), `square_root`,
//! and `knee`, the default, which needs no parameter.
//!
//! While memory is not short, `knee` uses the budget of `growth`. Otherwise it depends on `memory`, which
//! `watch` finds out. The user's choices are in `choice`; `rates` and `refault` smooth measurements. `limits`
//! keeps the heap within the limits that it must never exceed, whatever the policy's sizes.
//!
//!
//! Source: Cooper, Nettles and Subramanian 1992, sections 2 and 3. There one strategy was made for regions;
//! here a policy sizes heaps of either shape: where nothing is copied, all of the heap but the live bytes is
//! free.

pub(crate) mod choice;
mod decide;
pub(crate) mod footprint;
pub(crate) mod growth;
mod knee;
pub(crate) mod limits;
pub(crate) mod memory;
mod modified;
mod original;
pub(crate) mod policy;
pub(crate) mod rates;
mod refault;
#[cfg(test)]
mod simulation;
mod square_root;
pub(crate) mod state;
pub(crate) mod watch;
