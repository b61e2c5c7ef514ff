//! Compares the statistics with results of scipy and other packages (`tests/vectors/statistics.py`).

use serde::Deserialize;

use crate::Layers;
use crate::autocorrelation::Autocorrelation;
use crate::dip::dip;
use crate::ranks::rank_shares;
use crate::segments::{changes, total_cost};

#[derive(Deserialize)]
pub(crate) struct Vectors {
    pub(crate) series: Vec<Series>,
    pub(crate) events: Vec<Events>,
}

#[derive(Deserialize)]
pub(crate) struct Series {
    name: String,
    values: Vec<f64>,
    rank_shares: Vec<f64>,
    layers: Peeled,
    autocorrelation: Correlated,
    dip: f64,
    changes: Changed,
}

#[derive(Deserialize)]
struct Peeled {
    layer_of: Vec<u8>,
    bounds: Vec<(f64, f64, usize)>,
}

#[derive(Deserialize)]
struct Correlated {
    r: Vec<f64>,
}

#[derive(Deserialize)]
struct Changed {
    penalty: f64,
    shortest: usize,
    at: Vec<usize>,
}

#[derive(Deserialize)]
pub(crate) struct Events {
    pub(crate) name: String,
    pub(crate) times: Vec<f64>,
    pub(crate) frequencies: Vec<f64>,
    pub(crate) power: Vec<f64>,
    pub(crate) even_step: f64,
    pub(crate) even_power: Vec<f64>,
    pub(crate) kuiper_at_97: f64,
}

pub(crate) fn load() -> Vectors {
    serde_json::from_str(include_str!("../tests/vectors/statistics.json")).unwrap()
}

#[track_caller]
fn assert_near(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (place, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= tolerance * want.abs().max(1.0), "{what}[{place}]: {got} for {want}");
    }
}

#[test]
fn ranks_are_scipys() {
    for series in load().series {
        assert_near(&series.name, &rank_shares(&series.values).unwrap(), &series.rank_shares, 1e-12);
    }
}

#[test]
fn layers_are_numpys() {
    for series in load().series {
        let got = Layers::peel(&series.values, 5);
        assert_eq!(got.layer_of, series.layers.layer_of, "{}", series.name);
        assert_eq!(got.count(), series.layers.bounds.len(), "{}", series.name);
        for (got, (mean, std, taken)) in got.bounds.iter().zip(series.layers.bounds) {
            let found = [got.mean, got.std, got.taken as f64];
            assert_near(&series.name, &found, &[mean, std, taken as f64], 1e-12);
        }
    }
}

#[test]
fn autocorrelations_are_scipys() {
    for series in load().series {
        let want = series.autocorrelation;
        let got = Autocorrelation::of(&series.values, want.r.len() - 1).unwrap();
        assert_near(&series.name, &got.r, &want.r, 1e-10);
    }
}

#[test]
fn dips_are_those_of_diptest() {
    for series in load().series {
        let mut sorted = series.values;
        sorted.sort_by(f64::total_cmp);
        assert_near(&series.name, &[dip(&sorted)], &[series.dip], 1e-12);
    }
}

#[test]
fn divisions_are_no_worse_than_those_of_ruptures() {
    for series in load().series {
        let Changed { penalty, shortest, at } = series.changes;
        let got = changes(&series.values, penalty, shortest);
        let cost = |ends: &[usize]| total_cost(&series.values, ends, penalty);
        // With a least length of stretches, that library drops places too early, so our division may cost
        // less.
        assert!(cost(&got) <= cost(&at) + 1e-6, "{}: {got:?}, expected {at:?}", series.name);
        assert!(got == at || cost(&got) < cost(&at) - 1e-9, "{}: {got:?}, expected {at:?}", series.name);
    }
}
