//! Tests of the experiments, the models behind them, and their program, in one executable. `never_rot` has
//! its own executable, which is also its worker.

mod accuracy;
mod bates;
mod command;
mod cooper;
mod nishigaki;
mod simulator;
mod smith;
mod sound;
mod table1;
