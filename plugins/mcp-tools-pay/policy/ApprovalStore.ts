// Where requests for approval are kept, whichever store it is. Each step is whole: of two that take one request, one
// has it.
import type { Effect } from "effect"
import type { BudgetUnavailable } from "../budget/BudgetStore.ts"
import type { Approval } from "./ApprovalWire.ts"

/** Requests that wait at once; more are refused. */
export const pendingMax = 1_000

export type Decided = "approved" | "denied"

type Kept<A> = Effect.Effect<A, BudgetUnavailable>

export interface ApprovalStore {
  /** Requests that are not too old, oldest first. */
  readonly all: (maxAgeMillis: number) => Kept<ReadonlyArray<Approval>>
  /** False when there is no room for another request; one that stands already stays as it is. */
  readonly ask: (approval: Approval, maxAgeMillis: number) => Kept<boolean>
  readonly find: (id: string, maxAgeMillis: number) => Kept<Approval | undefined>
  /** True for the one that takes it away. */
  readonly take: (id: string) => Effect.Effect<boolean>
  /** True for the one that decides it; false when nobody asks for it. */
  readonly decide: (id: string, state: Decided, maxAgeMillis: number) => Kept<boolean>
}
