// Where reservations are kept. A store decides a reservation in one step, so that calls made at once cannot pass a
// ceiling together, and moves a reservation only along the moves there are. What is in it survives the process, except
// in memory.
import { Context, type Effect, Schema } from "effect"
import type { Authorization, Ceilings, Reservation, ReservationState } from "./Reservation.ts"

/** The store cannot be read or written; nothing may be signed then. */
export class BudgetUnavailable extends Schema.TaggedError<BudgetUnavailable>()("BudgetUnavailable", {
  cause: Schema.Defect()
}) {}

/** `kept`: it is there now. `over`: it fits below no ceiling. `changed`: the invocation was reserved for meanwhile. */
export type Reserved = "kept" | "over" | "changed"

/** What is known of one invocation. */
export interface Known {
  /** Reservations ever made for it, as far as they are kept. */
  readonly made: number
  /** Those whose result nobody has: `reserved`, `signed`, `unknown` or `spent`, newest first. */
  readonly undelivered: ReadonlyArray<Reservation>
}

export interface Moved {
  readonly state: ReservationState
  readonly authorization?: Authorization
  readonly transaction?: string
}

export class BudgetStore extends Context.Service<
  BudgetStore,
  {
    /** `made` as it was when the invocation was looked at: of two that looked at once, one keeps its reservation. */
    readonly reserve: (
      reservation: Reservation,
      ceilings: Ceilings,
      made: number
    ) => Effect.Effect<Reserved, BudgetUnavailable>
    /** True when the reservation was in a state that allows the move. */
    readonly move: (id: string, to: Moved) => Effect.Effect<boolean, BudgetUnavailable>
    /** Reservations in states that can still change, oldest first. */
    readonly open: Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
    readonly ofInvocation: (invocation: string) => Effect.Effect<Known, BudgetUnavailable>
  }
>()("tollkeeper/mcp-tools/BudgetStore") {}
