//! Tests of the experiments, the models behind them, and their program, in one executable. `never_rot` has
//! an executable of its own, which it also starts as its worker.

mod accuracy;
mod bates;
mod command;
mod cooper;
mod nishigaki;
mod simulator;
mod smith;
mod sound;
mod table1;
