//! Tests of plots as a user sees them. The values of dots and bars are read off the axes of the parsed SVG.
//! Terminal cells are counted, and each kind of plot is compared with a stored (golden) picture.
//!
//! After an intended change, `VELLUM_RENEW_GOLDEN=1 cargo test -p vellum-report --test plots` rewrites the
//! golden pictures (`tests/golden/`). Look at each before you commit it.

use clap::ValueEnum;
use roxmltree::{Document, Node};
use vellum_measure::{Base, Cause, Rng, Sample, Series, Unit};
use vellum_report::plot::{Kind, Plot, PlotError, SERIES_MAX, Subject, palette};

const SEED: u64 = 20_261_121;

/// The tolerance for the distance between a mark and its exact place, in units of the picture: the mark and
/// the ticks are each rounded.
const SLACK: f64 = 1.5;

/// Values of a simulated machine: steps of 10 ns around a mode, and a few disturbances with their causes.
fn disturbed(n: usize, seed: u64) -> Subject {
    let mut rng = Rng::new(seed);
    let mut causes = Vec::new();
    let values = (0..n).map(|place| {
        let usual = 7000.0 + 10.0 * (rng.unit() * 6.0 + rng.unit() * 6.0).floor();
        let (more, cause) = match rng.below(50) {
            0 => (2000.0 * rng.unit(), Some(Cause::MinorFault)),
            1 if place % 3 == 0 => (8000.0 + 1000.0 * rng.unit(), Some(Cause::Preemption)),
            2 if place % 3 == 0 => (3000.0, Some(Cause::Collection)),
            _ => (0.0, None),
        };
        causes.extend(cause.map(|cause| (place, cause)));
        usual + (more / 10.0_f64).round() * 10.0
    });
    let values = values.collect();
    Subject::new("BASE", values).with_causes(causes)
}

fn plot(kind: Kind, subjects: Vec<Subject>) -> Plot {
    Plot::new(kind, "time", Unit::Nanoseconds, subjects).unwrap()
}

/// An SVG, and its axes read from the labels of its ticks.
struct Drawing<'a> {
    document: Document<'a>,
    /// The scale from values (in the axis's unit) to units of the picture: offset, and units per value.
    x: (f64, f64),
    y: (f64, f64),
}

impl<'a> Drawing<'a> {
    fn parse(svg: &'a str) -> Self {
        let document = Document::parse(svg).expect("the SVG is well-formed XML");
        let ticks = |anchor: &str, along: &str| -> Vec<(f64, f64)> {
            let texts = document.descendants().filter(|node| node.has_tag_name("text"));
            let texts = texts.filter(|node| node.attribute("text-anchor") == Some(anchor));
            texts.filter_map(|node| Some((value(node.text()?)?, number(node, along)))).collect()
        };
        let (x, y) = (ticks("middle", "x"), ticks("end", "y"));
        let line = |ticks: Vec<(f64, f64)>| {
            let ((v, p), (w, q)) = (ticks[0], ticks[ticks.len() - 1]);
            assert!(v != w, "an axis needs two ticks: {ticks:?}");
            let each = (q - p) / (w - v);
            assert!(ticks.iter().all(|(u, r)| (p + (u - v) * each - r).abs() <= 1.0), "not even: {ticks:?}");
            (p - v * each, each)
        };
        Self { x: line(x), y: line(y), document }
    }

    fn x(&self, value: f64) -> f64 {
        self.x.0 + self.x.1 * value
    }

    fn y(&self, value: f64) -> f64 {
        self.y.0 + self.y.1 * value
    }

    fn all<'b>(&'b self, tag: &'b str, fill: (&'b str, String)) -> impl Iterator<Item = Node<'b, 'a>> + 'b {
        let nodes = self.document.descendants().filter(move |node| node.has_tag_name(tag));
        nodes.filter(move |node| node.attribute(fill.0) == Some(fill.1.as_str()))
    }

    fn circles(&self) -> Vec<(f64, f64)> {
        let circles = self.all("circle", ("fill", hex(palette::SERIES[0])));
        circles.map(|node| (number(node, "cx"), number(node, "cy"))).collect()
    }

    fn says(&self, text: &str) -> bool {
        let texts = self.document.descendants().filter(|node| node.has_tag_name("text"));
        texts.filter_map(|node| node.text()).any(|found| found.contains(text))
    }
}

fn hex(colour: palette::Rgb) -> String {
    colour.to_string()
}

fn number(node: Node<'_, '_>, attribute: &str) -> f64 {
    node.attribute(attribute)
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{attribute} of {node:?}"))
}

/// The number in a tick's label.
fn value(label: &str) -> Option<f64> {
    label.trim().replace(',', "").replace('−', "-").parse().ok()
}

/// Corners of a polyline.
fn corners(node: Node<'_, '_>) -> Vec<(f64, f64)> {
    let pairs = node.attribute("points").unwrap_or_default().split_whitespace();
    let pairs = pairs.filter_map(|pair| pair.split_once(','));
    pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect()
}

fn near(found: (f64, f64), expected: (f64, f64)) -> bool {
    (found.0 - expected.0).abs() <= SLACK && (found.1 - expected.1).abs() <= SLACK
}

#[test]
fn order_draws_each_observation_at_its_place() {
    let values: Vec<f64> = (0..200).map(|n| 5000.0 + f64::from(n * n % 97) * 30.0).collect();
    let svg = plot(Kind::Order, vec![Subject::new("BASE", values.clone())]).svg();
    let drawing = Drawing::parse(&svg);
    let circles = drawing.circles();
    assert_eq!(circles.len(), values.len());
    for (place, (value, circle)) in values.iter().zip(circles).enumerate() {
        let expected = (drawing.x(place as f64 + 1.0), drawing.y(value / 1000.0));
        assert!(near(circle, expected), "observation {place}: {circle:?}, expected {expected:?}");
    }
    assert!(drawing.says("time (µs)") && drawing.says("Each of 200 observations is drawn"));
}

#[test]
fn layers_left_out_are_listed() {
    let mut values = [6.0, 7.0, 8.0].repeat(40);
    values[30] = 9000.0;
    values[60] = 90.0;
    let plot = |layers| plot(Kind::Order, vec![Subject::new("BASE", values.clone())]).layers(layers).svg();
    for (layers, kept, said) in
        [(0, 120, "120 observations"), (1, 119, "(9.00 µs)"), (2, 118, "2 of 120 (90.0 ns to 9.00 µs)")]
    {
        let svg = plot(layers);
        let drawing = Drawing::parse(&svg);
        assert_eq!(drawing.circles().len(), kept, "{layers} layers");
        assert!(svg.contains(said), "{layers} layers: {svg}");
    }
}

#[test]
fn histogram_bars_are_as_high_as_their_counts() {
    // Steps of 10 ns: 20 stands 8 times, 30 four times, 60 once.
    let values = [vec![20.0; 8], vec![30.0; 4], vec![60.0]].concat();
    let svg = plot(Kind::Histogram, vec![Subject::new("BASE", values)]).svg();
    let drawing = Drawing::parse(&svg);
    let bars: Vec<Node<'_, '_>> = drawing.all("rect", ("fill", hex(palette::SERIES[0]))).collect();
    assert_eq!(bars.len(), 3);
    for (bar, (value, count)) in bars.into_iter().zip([(20.0, 8.0), (30.0, 4.0), (60.0, 1.0)]) {
        let (left, top) = (number(bar, "x"), number(bar, "y"));
        assert!(near((left, top), (drawing.x(value - 5.0), drawing.y(count))), "{value}: {left},{top}");
        assert!((top + number(bar, "height") - drawing.y(0.0)).abs() <= SLACK, "{value} stands on zero");
        assert!((number(bar, "width") - 10.0 * drawing.x.1).abs() <= 2.0 + SLACK, "{value}");
    }
    assert!(drawing.says("time (ns)") && drawing.says("Bins are 10.0 ns wide"));
}

#[test]
fn a_bar_of_one_shows_beside_a_hundred_thousand() {
    let values = [vec![20.0; 100_000], vec![60.0]].concat();
    let svg = plot(Kind::Histogram, vec![Subject::new("BASE", values)]).svg();
    let drawing = Drawing::parse(&svg);
    let bars: Vec<f64> =
        drawing.all("rect", ("fill", hex(palette::SERIES[0]))).map(|bar| number(bar, "height")).collect();
    assert!(bars.len() == 2 && bars[1] >= 2.0, "{bars:?}");
}

#[test]
fn single_causes_beside_a_high_bar_do_not_cover_each_other() {
    let values = [vec![20.0; 10_000], vec![60.0; 5]].concat();
    let causes = (10_000..10_005).zip(Cause::ALL);
    let svg = plot(Kind::Histogram, vec![Subject::new("BASE", values).with_causes(causes)]).svg();
    let drawing = Drawing::parse(&svg);
    let mut foot = None;
    for cause in &Cause::ALL[..5] {
        // The key has such a bar too; the first one in the file is of the data.
        let bar = drawing.all("rect", ("fill", hex(palette::colour(*cause)))).next().unwrap();
        let (top, high) = (number(bar, "y"), number(bar, "height"));
        assert!(high >= 2.0 && foot.is_none_or(|foot| top + high == foot), "{cause}: {top}, {high}");
        foot = Some(top);
    }
}

#[test]
fn ecdf_passes_each_value_at_its_share() {
    let values: Vec<f64> = (1..=10).map(|n| f64::from(n * n) * 1000.0).collect();
    let svg = plot(Kind::Ecdf, vec![Subject::new("A", values), Subject::new("B", vec![30_000.0; 3])]).svg();
    let drawing = Drawing::parse(&svg);
    let curve = |series: usize| {
        let lines = drawing.all("polyline", ("stroke", hex(palette::SERIES[series]))).map(corners);
        lines.max_by_key(Vec::len).unwrap()
    };
    let a = curve(0);
    for n in 1..=10 {
        let (x, y) = (drawing.x(f64::from(n * n)), drawing.y(f64::from(n) * 10.0));
        assert!(a.iter().any(|corner| near(*corner, (x, y))), "corner {n} at {x},{y} of {a:?}");
    }
    let rise = [(drawing.x(30.0), drawing.y(0.0)), (drawing.x(30.0), drawing.y(100.0))];
    assert!(rise.iter().all(|end| curve(1).iter().any(|corner| near(*corner, *end))), "{:?}", curve(1));
    assert!(drawing.says("median 30.5 µs") && drawing.says("observations at or below (%)"));
}

#[test]
fn pairs_show_differences_their_median_and_zero() {
    let a: Vec<f64> = (0..50).map(|n| 1000.0 + f64::from(n % 7)).collect();
    let b: Vec<f64> =
        a.iter().enumerate().map(|(n, a)| a + 20.0 + (n % 5) as f64 - 30.0 * f64::from(n == 9)).collect();
    let svg = plot(Kind::Pairs, vec![Subject::new("old", a.clone()), Subject::new("new", b.clone())]).svg();
    let drawing = Drawing::parse(&svg);
    let circles = drawing.circles();
    assert_eq!(circles.len(), a.len());
    for (place, circle) in circles.into_iter().enumerate() {
        let expected = (drawing.x(place as f64 + 1.0), drawing.y(b[place] - a[place]));
        assert!(near(circle, expected), "pair {place}: {circle:?}, expected {expected:?}");
    }
    let levels = |colour| -> Vec<f64> {
        let lines = drawing.all("polyline", ("stroke", hex(colour))).map(corners);
        lines.filter(|ends| ends.len() == 2 && ends[0].1 == ends[1].1).map(|ends| ends[0].1).collect()
    };
    assert!(levels(palette::FAINT).iter().any(|y| (y - drawing.y(0.0)).abs() <= SLACK));
    assert!(levels(palette::TEXT).iter().any(|y| (y - drawing.y(22.0)).abs() <= SLACK));
    assert!(drawing.says("Median of new − old: +22.0 ns (+2.19 % of the median of old)."));
}

#[test]
fn zero_is_on_the_axis_on_request() {
    for (kind, along) in [(Kind::Order, false), (Kind::Histogram, true), (Kind::Ecdf, true)] {
        for zero in [false, true] {
            let values = (0..100).map(|n| 5000.0 + f64::from(n)).collect();
            let svg = plot(kind, vec![Subject::new("BASE", values)]).zero(zero).svg();
            let drawing = Drawing::parse(&svg);
            let (anchor, place) = if along { ("middle", "x") } else { ("end", "y") };
            let texts =
                drawing.document.descendants().filter(|node| node.attribute("text-anchor") == Some(anchor));
            let at_zero = texts.filter(|node| node.text().and_then(value) == Some(0.0)).count();
            assert_eq!(at_zero > 0, zero, "{kind:?}, zero {zero}, {place}");
        }
    }
}

#[test]
fn causes_have_their_colour_and_a_key() {
    let values: Vec<f64> = (0..100).map(|n| 1000.0 + f64::from(n)).collect();
    let causes = [(3, Cause::MinorFault), (50, Cause::MinorFault), (70, Cause::Unexplained)];
    for kind in [Kind::Order, Kind::Histogram, Kind::Ecdf] {
        let subject = Subject::new("BASE", values.clone()).with_causes(causes);
        let svg = plot(kind, vec![subject]).svg();
        let drawing = Drawing::parse(&svg);
        let faults = drawing.all("rect", ("fill", hex(palette::colour(Cause::MinorFault)))).count();
        // The key has one more.
        assert_eq!(faults, 3, "{kind:?}");
        assert!(drawing.says("minor fault 2") && drawing.says("unexplained 1"), "{kind:?}");
        assert!(!drawing.says("preemption"), "{kind:?}");
    }
}

#[test]
fn a_hundred_thousand_observations_stay_small_and_a_single_outlier_stays_a_dot() {
    let mut rng = Rng::new(SEED);
    let mut values: Vec<f64> = (0..100_000).map(|_| 7000.0 + 600.0 * rng.unit() * rng.unit()).collect();
    values[54_321] = 90_000.0;
    values[77_777] = 40_000.0;
    let svg = plot(Kind::Order, vec![Subject::new("BASE", values.clone())]).svg();
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
    let drawing = Drawing::parse(&svg);
    let high: Vec<(f64, f64)> = drawing.circles().into_iter().filter(|(_, y)| *y < drawing.y(20.0)).collect();
    let expected = [(54_322.0, 90.0), (77_778.0, 40.0)].map(|(x, y)| (drawing.x(x), drawing.y(y)));
    assert_eq!(high.len(), 2, "{high:?}, seed {SEED}");
    assert!(high.iter().all(|dot| expected.iter().any(|one| near(*dot, *one))), "{high:?} {expected:?}");
    assert!(drawing.says("100,000 observations drawn as"), "the picture says how many");
    for kind in [Kind::Histogram, Kind::Ecdf] {
        let svg = plot(kind, vec![Subject::new("BASE", values.clone())]).svg();
        assert!(svg.len() < 50_000, "{kind:?}: {} bytes", svg.len());
    }
    // Broad noise with many causes is the worst case.
    let wild: Vec<f64> = (0..100_000).map(|_| 10f64.powf(3.0 * rng.unit())).collect();
    let causes = (0..100_000).step_by(7).map(|place| (place, Cause::ALL[place % Cause::ALL.len()]));
    let wild = Subject::new("wild", wild).with_causes(causes);
    for kind in [Kind::Order, Kind::Ecdf] {
        let svg = plot(kind, vec![wild.clone()]).svg();
        assert!(svg.len() < 400_000, "{kind:?}: {} bytes", svg.len());
    }
}

/// The number of columns of a line, without escape sequences.
fn columns(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| part.split_once('m')).map(|(_, rest)| rest);
    rest.chain([first]).map(|part| part.chars().count()).sum()
}

#[test]
fn pictures_fit_the_terminal() {
    for &kind in Kind::value_variants() {
        for count in [2, SERIES_MAX] {
            for (width, height) in [(80, 24), (120, 40), (200, 60), (40, 12), (0, 0)] {
                let subjects = (0..count).map(|n| disturbed(500, SEED + n as u64)).collect();
                let plot = plot(kind, subjects).layers(1);
                for colour in [false, true] {
                    let text = plot.terminal(width, height, colour);
                    let (width, height) = (width.max(Plot::COLUMNS_MIN), height.max(Plot::LINES_MIN));
                    let widest = text.lines().map(columns).max().unwrap();
                    assert!(widest <= width, "{kind:?} {width}x{height}: {widest} columns\n{text}");
                    // Seven panels of two lines with their heads, axis and key need more than a low terminal
                    // has.
                    let high = if count > 2 { height.max(40) } else { height.max(19) };
                    assert!(text.lines().count() <= high, "{kind:?} {width}x{height}: too long\n{text}");
                    assert_eq!(text.contains('\x1b'), colour);
                }
            }
        }
    }
}

#[test]
fn the_terminal_draws_each_value_in_its_cell() {
    // The outlier is at the middle of the order and the top of the axis.
    let mut values = vec![1000.0; 100];
    values[49] = 2000.0;
    let subject = Subject::new("BASE", values).with_causes([(49, Cause::Preemption)]);
    let text = plot(Kind::Order, vec![subject]).zero(true).terminal(80, 24, false);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(['│', '┤'])).collect();
    let (row, line) = rows.iter().enumerate().find(|(_, line)| line.contains('p')).unwrap();
    let column = line.chars().position(|c| c == 'p').unwrap();
    let axis = line.chars().position(|c| c == '│' || c == '┤').unwrap();
    assert!(row <= 1, "{text}");
    let middle = axis + (80 - axis) / 2;
    assert!(column.abs_diff(middle) <= 2, "column {column}, middle {middle}\n{text}");
    let level = rows.iter().position(|line| {
        line.contains('⣀') || line.contains('⠒') || line.contains('⠤') || line.contains('⠉')
    });
    let half = rows.len() / 2;
    assert!(level.unwrap().abs_diff(half) <= 1, "{text}");
    assert!(text.contains("p preemption 1"), "{text}");
}

#[test]
fn names_are_escaped() {
    let evil = "</text><script>\"&'\x1b[2J\n\u{202e}";
    for &kind in Kind::value_variants() {
        let subjects = vec![Subject::new(evil, vec![1.0, 2.0]), Subject::new(evil, vec![2.0, 3.0])];
        let plot = Plot::new(kind, evil, Unit::Nanoseconds, subjects).unwrap().title(evil);
        let svg = plot.svg();
        let document = Document::parse(&svg).unwrap();
        assert!(!document.descendants().any(|node| node.has_tag_name("script")), "{kind:?}");
        let text = plot.terminal(80, 24, false);
        assert!(!text.contains(['\x1b', '\u{202e}']), "{kind:?}");
    }
}

#[test]
fn empty_and_odd_series_make_a_picture() {
    let nonsense: [&[f64]; 6] =
        [&[], &[f64::NAN], &[f64::INFINITY, 1.0], &[0.0, 0.0], &[1e308, -1e308, 3.0], &[-5.0, 5e-324]];
    for values in nonsense {
        for &kind in Kind::value_variants() {
            for (layers, zero) in [(0, false), (3, true)] {
                let subject = Subject::new("x", values.to_vec());
                let plot = plot(kind, vec![subject.clone(), subject]).layers(layers).zero(zero).bin(0.5);
                let svg = plot.svg();
                Document::parse(&svg).unwrap();
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{kind:?} {values:?}");
                assert!(plot.terminal(80, 24, false).lines().count() <= 24, "{kind:?} {values:?}");
            }
        }
    }
}

#[test]
fn invalid_plots_are_refused_with_a_remedy() {
    let new = |kind, subjects| Plot::new(kind, "time", Unit::Nanoseconds, subjects).unwrap_err();
    let one = || Subject::new("A", vec![1.0, 2.0]);
    assert_eq!(new(Kind::Order, vec![]), PlotError::NoSeries);
    assert_eq!(new(Kind::Order, vec![one(); SERIES_MAX + 1]), PlotError::TooMany(SERIES_MAX + 1));
    assert_eq!(new(Kind::Pairs, vec![one()]), PlotError::NoPartner("A".into()));
    let unpaired = new(Kind::Pairs, vec![one(), Subject::new("B", vec![1.0])]);
    assert!(unpaired.to_string().contains("B has 1 observations, A 2"), "{unpaired}");
    let odd = Subject { causes: vec![None], ..one() };
    assert_eq!(new(Kind::Order, vec![odd]), PlotError::Causes { name: "A".into(), values: 2, causes: 1 });
    let series = |name: &str, unit| Series::plain(name, "Time", unit, [1.0]);
    let mixed =
        Plot::of(Kind::Ecdf, &[series("A", Unit::Nanoseconds), series("B", Unit::Bytes)]).unwrap_err();
    assert!(matches!(mixed, PlotError::Mixed { .. }), "{mixed}");
}

#[test]
fn series_come_in_one_unit_less_their_base() {
    let base = Base::of("tsc", &Sample::from(vec![20.0, 30.0]));
    let a = Series { base, ..Series::plain("A", "Time", Unit::Nanoseconds, [1020.0, 3020.0, 2020.0]) };
    let b = Series {
        labels: vec!["tsc".into()],
        ..Series::plain("B", "Time", Unit::Microseconds, [1.0, 3.0, 2.0])
    };
    let svg = Plot::of(Kind::Ecdf, &[a, b]).unwrap().svg();
    let drawing = Drawing::parse(&svg);
    assert_eq!(svg.matches("median 2.00 µs").count(), 2, "{svg}");
    assert!(drawing.says("B (tsc)"));
}

/// Compares with `tests/golden/NAME`, or writes this file if requested.
fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("VELLUM_RENEW_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    let line = wanted.lines().zip(text.lines()).position(|(wanted, found)| wanted != found);
    let line = line.unwrap_or(wanted.lines().count().min(text.lines().count())) + 1;
    assert!(
        wanted == text,
        "{name} differs from line {line} on; if that is wanted, see the head of this file"
    );
}

#[test]
fn golden_pictures() {
    for &kind in Kind::value_variants() {
        let mut subjects = vec![disturbed(300, SEED)];
        if matches!(kind, Kind::Ecdf | Kind::Pairs) {
            let mut second = disturbed(300, SEED + 1);
            second.name = "xstamp".into();
            second.values.iter_mut().for_each(|value| *value += 70.0);
            subjects.push(second);
        }
        let off = u8::from(matches!(kind, Kind::Histogram | Kind::Pairs));
        let plot = plot(kind, subjects).layers(off).zero(kind == Kind::Order);
        let name = kind.to_possible_value().unwrap();
        let golden = |ending: &str, text: &str| golden(&format!("{}.{ending}", name.get_name()), text);
        golden("svg", &plot.svg());
        golden("txt", &plot.terminal(80, 24, false));
        golden("ansi", &plot.terminal(120, 40, true));
    }
}
