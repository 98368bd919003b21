// How much a run of the bench of payments measures: the whole, or a sample of about a minute.
export interface Plan {
  /** Payments sent to each facilitator before anything counts: it is hot code that is compared. */
  readonly warmVerifies: number
  readonly warmSettles: number
  /** Rounds in turns, and payments of each. */
  readonly verify: { readonly rounds: number; readonly count: number; readonly clients: number }
  readonly refusals: { readonly rounds: number; readonly count: number }
  readonly variants: { readonly rounds: number; readonly count: number }
  readonly settle: { readonly rounds: number; readonly count: number; readonly clients: number }
  readonly openSeconds: number
  /** Payments whose calls and statements are counted. */
  readonly counted: { readonly verifies: number; readonly settles: number; readonly idleSeconds: number }
  /** Many channels at their limit; left out of a sample. */
  readonly busy?: { readonly channels: number; readonly clients: number; readonly count: number }
}

const whole: Plan = {
  warmVerifies: 3_000,
  warmSettles: 60,
  verify: { rounds: 5, count: 1_000, clients: 32 },
  refusals: { rounds: 3, count: 600 },
  variants: { rounds: 6, count: 800 },
  settle: { rounds: 2, count: 400, clients: 64 },
  openSeconds: 15,
  counted: { verifies: 400, settles: 200, idleSeconds: 10 },
  busy: { channels: 100, clients: 128, count: 1_500 }
}

const sample: Plan = {
  warmVerifies: 600,
  warmSettles: 40,
  verify: { rounds: 3, count: 400, clients: 32 },
  refusals: { rounds: 2, count: 300 },
  variants: { rounds: 2, count: 200 },
  settle: { rounds: 1, count: 100, clients: 64 },
  openSeconds: 3,
  counted: { verifies: 200, settles: 40, idleSeconds: 4 }
}

export const planOf = (options: { readonly quick: boolean }): Plan => (options.quick ? sample : whole)
