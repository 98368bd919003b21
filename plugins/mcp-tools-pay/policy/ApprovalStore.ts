// Interface of the stores for approval requests. Each step is atomic: if two calls take one approval, or would ask
// about one request, only one of them succeeds.
import type { Effect } from "effect"
import type { BudgetUnavailable } from "../budget/BudgetStore.ts"
import type { Approval } from "./ApprovalWire.ts"

/** Maximum number of requests that wait for a person or are decided and unused. More are refused. */
export const pendingMax = 1_000

/** Maximum of one agent: its requests never leave the others without room. */
export const pendingPerAgentMax = 100

/** How long a used approval is kept, for the calls that share its answer until the payment is reserved. */
export const usedMillis = 300_000

/** A dismissed question is postponed by this much more than a request's lifetime. */
export const leftMillis = 86_400_000

/** True if the person has dismissed the question, so that the request waits only for an operator. */
export const isLeft = ({ askedAtMillis, askedUntilMillis = 0 }: Approval, maxAgeMillis: number): boolean =>
  askedUntilMillis - askedAtMillis >= maxAgeMillis + leftMillis

export type ApprovalDecision = "approved" | "denied"

type StoreEffect<A> = Effect.Effect<A, BudgetUnavailable>

export interface ApprovalStore {
  /** Requests that are neither used nor expired, oldest first. */
  readonly all: (maxAgeMillis: number) => StoreEffect<ReadonlyArray<Approval>>
  /**
   * False if there are too many requests. A stored request does not change, with one exception: a used one is replaced
   * by a given approved one, because it led to no payment.
   */
  readonly ask: (approval: Approval, maxAgeMillis: number) => StoreEffect<boolean>
  readonly find: (id: string, maxAgeMillis: number) => StoreEffect<Approval | undefined>
  /**
   * True for a single call, which may ask its person about a pending request. No other call may ask during that time.
   */
  readonly claim: (id: string, forMillis: number, maxAgeMillis: number) => StoreEffect<boolean>
  /** Stops showing a pending request to a client's person; it then waits for an operator. */
  readonly leave: (id: string, maxAgeMillis: number) => StoreEffect<boolean>
  /** True for the single caller that uses an approval. */
  readonly take: (id: string) => Effect.Effect<boolean>
  /** True for the single caller that decides it; false if it is not pending. */
  readonly decide: (id: string, state: ApprovalDecision, maxAgeMillis: number) => StoreEffect<boolean>
}
