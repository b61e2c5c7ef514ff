//! The experiments, the models behind them, and their program. One executable for all; `never_rot`
//! stands beside it because its executable is also its worker.

mod accuracy;
mod bates;
mod command;
mod cooper;
mod nishigaki;
mod simulator;
mod smith;
mod table1;
