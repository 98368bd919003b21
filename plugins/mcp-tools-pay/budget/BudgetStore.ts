// Where reservations are kept. A store decides a reservation in one step, so that calls made at once cannot pass a
// ceiling together, and moves a reservation only along the moves there are. What is in it survives the process, except
// in memory.
import { Context, type Effect, Schema } from "effect"
import type { Authorization, Ceilings, Reservation, ReservationState } from "./Reservation.ts"

/** The store cannot be read or written; nothing may be signed then. */
export class BudgetUnavailable extends Schema.TaggedError<BudgetUnavailable>()("BudgetUnavailable", {
  cause: Schema.Defect()
}) {}

export interface Moved {
  readonly state: ReservationState
  readonly authorization?: Authorization
  readonly transaction?: string
}

export class BudgetStore extends Context.Service<
  BudgetStore,
  {
    /** True when it fits below the ceilings and is kept now. */
    readonly reserve: (reservation: Reservation, ceilings: Ceilings) => Effect.Effect<boolean, BudgetUnavailable>
    /** True when the reservation was in a state that allows the move. */
    readonly move: (id: string, to: Moved) => Effect.Effect<boolean, BudgetUnavailable>
    /** Reservations in states that can still change, oldest first. */
    readonly open: Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
    /** Reservations of one invocation that are `signed`, `unknown` or `spent`, newest first. */
    readonly ofInvocation: (invocation: string) => Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
  }
>()("tollkeeper/mcp-tools/BudgetStore") {}
