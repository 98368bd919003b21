// The form of a case: the request, the answers that hold, and the values that must not change.
import type { Kind, World } from "./target.ts"

export interface Case {
  /** Number in `attacks.ts`. */
  readonly attack: number
  readonly on: Kind
  readonly name: string
  /** The answers that hold. */
  readonly accepts: string
  /** The values that must not change. */
  readonly still: string
  /** It pays, so it needs a ledger with a friendbot. */
  readonly pays?: boolean
  /**
   * Throws if the target fails, and `Skipped` if it does not offer the attacked feature. May return a note on an
   * accepted answer.
   */
  readonly play: (world: World) => Promise<string | void>
}

/** The case does not apply to this target. */
export class Skipped extends Error {}
