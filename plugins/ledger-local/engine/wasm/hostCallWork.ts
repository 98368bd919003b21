// The host's work for a contract, in units of a few nanoseconds. Each host function is charged before it runs, so a
// contract that makes the host work in a loop stops as early as a contract that computes in a loop. Data that a
// function moves (bytes, values) is charged separately. These are bounds on time, not prices.

/** What most functions take: some arithmetic, and an allocation. */
const OTHER = 200

const dear: Readonly<Record<string, number>> = {
  // Signatures: 0.1 ms natively, 1 ms if the curve is computed in JavaScript.
  "c.0": 94_000,
  "c.2": 575_000,
  "c.3": 750_000,
  "c._": 900,
  "c.1": 1_500,
  // Calls of other contracts; a wasm contract pays for its instance too.
  "d._": 25_000,
  "d.0": 25_000,
  // Storage reads keys by hash and guards the footprint.
  "l._": 2_500,
  "l.0": 2_500,
  "l.1": 2_500,
  "l.2": 2_500,
  "l.6": 2_000,
  "l.7": 2_000,
  "l.8": 2_000,
  "l.9": 2_000,
  "l.c": 2_000,
  "l.d": 2_000,
  "l.f": 2_000,
  "l.g": 2_000,
  "l.3": 25_000,
  "l.4": 25_000,
  "l.e": 25_000,
  "l.5": 100_000,
  // Events and log entries stay until the transaction ends.
  "x._": 1_000,
  "x.1": 1_000,
  "p._": 500,
  "p.0": 500,
  "p.1": 500,
  "p.2": 500,
  "a._": 2_000,
  "a.0": 2_000,
  "a.3": 2_000,
  "a.6": 1_000,
  "a.a": 2_000
}

/** Units of one call of `name`, such as `c.0`. */
export const hostCallWork = (name: string): number => dear[name] ?? OTHER

export const INSTANCE_WORK = 50_000
/** Units per byte of code that is validated and compiled. */
export const COMPILE_WORK = 16
