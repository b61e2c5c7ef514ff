//! Bodies in a tree that is built anew each step (after the Barnes-Hut program in mimalloc-bench).
//!
//! Each step allocates an octree over the bodies, sums up forces through it and frees it: bursts of one size
//! of node, then a long phase that only reads them. Where the nodes lie matters more than how fast they came.

use super::{Failure, Metrics, Params, Rng, measured, raw};

const BODIES: u64 = 50_000;
const STEPS: usize = 3;
/// A cell seen under a smaller angle than this is taken as one body.
const OPENING: f64 = 0.8;
const SOFTENING: f64 = 1e-4;

type Vector = [f64; 3];

struct Body {
    at: Vector,
    speed: Vector,
    mass: f64,
}

/// A cell of the tree: its bodies' mass and centre, and either one body or up to eight smaller cells.
struct Node {
    mass: f64,
    centre: Vector,
    body: *const Body,
    children: [*mut Node; 8],
}

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let mut rng = Rng::new(params.seed());
    let count = params.scaled(BODIES);
    measured(|| {
        let mut bodies: Vec<Body> = (0..count)
            .map(|_| Body {
                at: std::array::from_fn(|_| rng.unit()),
                speed: [0.0; 3],
                mass: (1.0 + rng.unit()) / count as f64,
            })
            .collect();
        let total: f64 = bodies.iter().map(|body| body.mass).sum();
        for step in 0..STEPS {
            let root = build(&bodies);
            // SAFETY: the root was just built and is freed below.
            let seen = unsafe { (*root).mass };
            if (seen - total).abs() > 1e-9 * total {
                free(root);
                let what = format!("the tree of step {step} weighs {seen} and its bodies {total}");
                return Err(Failure::Wrong { workload: "barnes", what });
            }
            let pulls: Vec<Vector> = bodies.iter().map(|body| pull(root, body, 1.0)).collect();
            free(root);
            for (body, pull) in bodies.iter_mut().zip(pulls) {
                for (axis, pull) in pull.into_iter().enumerate() {
                    body.speed[axis] += 1e-3 * pull;
                    // The box is closed: what leaves on one side comes back on the other.
                    body.at[axis] = (body.at[axis] + 1e-3 * body.speed[axis]).rem_euclid(1.0);
                }
            }
        }
        Ok(())
    })
}

fn node() -> *mut Node {
    let node = raw::malloc(size_of::<Node>()).cast::<Node>();
    let empty =
        Node { mass: 0.0, centre: [0.0; 3], body: std::ptr::null(), children: [std::ptr::null_mut(); 8] };
    // SAFETY: the block is as large as a node and aligned to sixteen.
    unsafe { node.write(empty) };
    node
}

fn build(bodies: &[Body]) -> *mut Node {
    let root = node();
    for body in bodies {
        insert(root, body, [0.5; 3], 0.25, 0);
    }
    root
}

/// Cells are not split further below this depth: two bodies at one place share a cell.
const DEPTH_MAX: u32 = 48;

/// Puts `body` below the cell with this `middle`, whose children's middles are `quarter` away on each axis.
fn insert(cell: *mut Node, body: *const Body, middle: Vector, quarter: f64, depth: u32) {
    // SAFETY: cells are live until `free`; bodies outlive the tree; one thread.
    let (node, new) = unsafe { (&mut *cell, &*body) };
    let empty = node.mass == 0.0;
    let mass = node.mass + new.mass;
    for axis in 0..3 {
        node.centre[axis] = (node.centre[axis] * node.mass + new.at[axis] * new.mass) / mass;
    }
    node.mass = mass;
    if empty {
        node.body = body;
        return;
    }
    if depth == DEPTH_MAX {
        return;
    }
    for moved in [std::mem::replace(&mut node.body, std::ptr::null()), body] {
        if moved.is_null() {
            continue;
        }
        // SAFETY: bodies outlive the tree.
        let at = unsafe { (*moved).at };
        let side = |axis: usize| at[axis] >= middle[axis];
        let which = usize::from(side(0)) | usize::from(side(1)) << 1 | usize::from(side(2)) << 2;
        if node.children[which].is_null() {
            node.children[which] = self::node();
        }
        let middle = std::array::from_fn(|axis| middle[axis] + if side(axis) { quarter } else { -quarter });
        insert(node.children[which], moved, middle, quarter / 2.0, depth + 1);
    }
}

/// The pull of a cell of this width on `on`.
fn pull(cell: *const Node, on: &Body, width: f64) -> Vector {
    // SAFETY: the tree is live and not changed while pulls are summed.
    let cell = unsafe { &*cell };
    let apart: Vector = std::array::from_fn(|axis| cell.centre[axis] - on.at[axis]);
    let square = apart.iter().map(|d| d * d).sum::<f64>() + SOFTENING;
    let leaf = cell.children.iter().all(|child| child.is_null());
    if leaf || width * width < OPENING * OPENING * square {
        let strength = cell.mass / (square * square.sqrt());
        return apart.map(|d| d * strength);
    }
    let children = cell.children.iter().filter(|child| !child.is_null());
    children.fold([0.0; 3], |sum, child| {
        let part = pull(*child, on, width / 2.0);
        std::array::from_fn(|axis| sum[axis] + part[axis])
    })
}

fn free(cell: *mut Node) {
    // SAFETY: cells form a tree, so each is reached and freed once, after its children.
    unsafe {
        (*cell).children.into_iter().filter(|child| !child.is_null()).for_each(free);
        raw::free(cell.cast());
    }
}
