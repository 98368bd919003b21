// Where requests for approval are kept, whichever store it is. Each step is whole: of two calls that take one approval,
// or that would ask about one request, one does.
import type { Effect } from "effect"
import type { BudgetUnavailable } from "../budget/BudgetStore.ts"
import type { Approval } from "./ApprovalWire.ts"

/** Requests that are kept for a person, or decided by one and not used; more are refused. */
export const pendingMax = 1_000

/** A used approval is kept this long, for the calls that share its answer until the payment is reserved. */
export const usedMillis = 300_000

/** A question that its person has dismissed is put off for this much longer than a request is kept. */
export const leftMillis = 86_400_000

/** Whether the person has dismissed the question, so that the request waits for an operator alone. */
export const isLeft = ({ askedAtMillis, askedUntilMillis = 0 }: Approval, maxAgeMillis: number): boolean =>
  askedUntilMillis - askedAtMillis >= maxAgeMillis + leftMillis

export type Decided = "approved" | "denied"

type Kept<A> = Effect.Effect<A, BudgetUnavailable>

export interface ApprovalStore {
  /** Requests that are neither used nor too old, oldest first. */
  readonly all: (maxAgeMillis: number) => Kept<ReadonlyArray<Approval>>
  /**
   * False when there is no room for another request. One that is kept already stays as it is; a used one becomes the
   * given one when that is approved: it came to no payment.
   */
  readonly ask: (approval: Approval, maxAgeMillis: number) => Kept<boolean>
  readonly find: (id: string, maxAgeMillis: number) => Kept<Approval | undefined>
  /** True for the one call that asks its person about a pending request; for so long no other one does. */
  readonly claim: (id: string, forMillis: number, maxAgeMillis: number) => Kept<boolean>
  /** A pending request that is no longer shown to a client's person and waits for an operator. */
  readonly leave: (id: string, maxAgeMillis: number) => Kept<boolean>
  /** True for the one that uses an approval. */
  readonly take: (id: string) => Effect.Effect<boolean>
  /** True for the one that decides it; false when it is not pending. */
  readonly decide: (id: string, state: Decided, maxAgeMillis: number) => Kept<boolean>
}
