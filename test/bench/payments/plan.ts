// The size of a run of the payments bench: the whole, or a sample of four minutes. Rounds are short and many, so that
// other load on the machine affects all subjects; the figure is taken over all rounds.
export interface Plan {
  /** Payments sent to each facilitator before anything counts, because we compare hot code. */
  readonly warmVerifies: number
  /** The same for subjects that differ in one setting. */
  readonly warmVariants: number
  /** The same for each refused kind. */
  readonly warmRefusals: number
  readonly warmSettles: number
  /** Alternating rounds, and payments in each. */
  readonly verify: { readonly rounds: number; readonly count: number; readonly clients: number }
  readonly refusals: { readonly rounds: number; readonly count: number }
  readonly variants: { readonly rounds: number; readonly count: number }
  readonly settle: { readonly rounds: number; readonly count: number; readonly clients: number }
  readonly openSeconds: number
  /** Number of payments whose calls and statements are counted. */
  readonly counted: { readonly verifies: number; readonly settles: number; readonly idleSeconds: number }
  /** Many channels at their limit; not in a sample. */
  readonly busy?: Busy
}

/** `warm`: payments settled before anything counts. */
export interface Busy {
  readonly channels: number
  readonly clients: number
  readonly warm: number
  readonly count: number
}

export const busyPlan: Busy = { channels: 100, clients: 128, warm: 600, count: 1_500 }

const whole: Plan = {
  warmVerifies: 4_500,
  warmVariants: 6_000,
  warmRefusals: 3_000,
  // A settle runs three times the code of a verify: its cost keeps falling until about three thousand.
  warmSettles: 2_400,
  verify: { rounds: 30, count: 200, clients: 32 },
  refusals: { rounds: 12, count: 300 },
  variants: { rounds: 60, count: 100 },
  settle: { rounds: 2, count: 400, clients: 64 },
  openSeconds: 15,
  counted: { verifies: 400, settles: 200, idleSeconds: 10 },
  busy: busyPlan
}

const sample: Plan = {
  warmVerifies: 3_000,
  warmVariants: 3_000,
  warmRefusals: 3_000,
  warmSettles: 400,
  verify: { rounds: 12, count: 200, clients: 32 },
  refusals: { rounds: 6, count: 300 },
  variants: { rounds: 30, count: 100 },
  settle: { rounds: 2, count: 100, clients: 64 },
  openSeconds: 3,
  counted: { verifies: 200, settles: 40, idleSeconds: 4 }
}

export const planOf = (options: { readonly quick: boolean }): Plan => (options.quick ? sample : whole)
