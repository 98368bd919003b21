// Storage of reservations. A store decides a reservation in one step, so that concurrent calls cannot exceed a ceiling
// together, and changes a reservation's state only along the allowed transitions. All stores except the memory store
// survive the process. With a reservation the store keeps, sealed, what another process needs to finish its payment:
// the signed payment with its terms, stored before it is sent, and content that arrived before the ledger showed the
// payment.
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import type { ChannelConfig } from "../../x402-batch/contract.ts"
import type { Authorization, Ceilings, Reservation, ReservationState } from "./Reservation.ts"

/** The store cannot be read or written; nothing may be signed then. */
export class BudgetUnavailable extends Schema.TaggedError<BudgetUnavailable>()("BudgetUnavailable", {
  cause: Schema.Defect()
}) {}

/** `kept`: reserved. `over`: exceeds a ceiling. `changed`: another reservation of the invocation came first. */
export type ReserveResult = "kept" | "over" | "changed"

export interface ExistingReservation {
  /** Number of reservations made for it, among those still stored. */
  readonly made: number
  /**
   * Reservations with a result for the same call: `reserved`, `signed`, `unknown`, `spent`, `acknowledged`, and
   * `released` ones if content came anyway. Newest first.
   */
  readonly undelivered: ReadonlyArray<Reservation>
  /** Identifiers of payments that were signed since the last delivery and released, newest first. */
  readonly released: ReadonlyArray<string>
}

/** Sealed data stored with a reservation. */
export interface SealedContents {
  readonly payment?: string | undefined
  readonly content?: string | undefined
}

/** Maximum characters of all stored contents. Content beyond it is requested from the seller again. */
export const contentLengthsMax = 268_435_456

export interface TransitionResult {
  readonly state: ReservationState
  /** The state on which the decision rests: if another process has changed it, nothing moves. */
  readonly from?: ReservationState
  readonly authorization?: Authorization
  readonly transaction?: string
  readonly receipt?: string
}

/** Cumulative amounts that vouchers of a payment channel were signed for, in atomic units. */
export interface SignedTotals {
  /** By calls that were paid or whose outcome is unknown. A seller may prove its total with one of these vouchers. */
  readonly counted: bigint
  /** By any call, even if it was refused; written before the voucher is sent. */
  readonly sent: bigint
}

/** An agent's channel, as of its last use. */
export interface StoredChannel {
  readonly channelId: string
  readonly agent: string
  readonly contract: string
  /** The channel's terms; the payer needs them to withdraw without the seller. */
  readonly config: ChannelConfig
  /** The request that asks the seller for a refund, sealed under the channel's id. */
  readonly sealed: string
}

export const receiptsMax = 20

export class BudgetStore extends Context.Service<
  BudgetStore,
  {
    /**
     * `made` is the count that the caller read before. If two concurrent callers read the same count, one of them
     * reserves.
     */
    readonly reserve: (
      reservation: Reservation,
      ceilings: Ceilings,
      made: number
    ) => Effect.Effect<ReserveResult, BudgetUnavailable>
    /** True if the state transition was allowed. */
    readonly move: (id: string, to: TransitionResult) => Effect.Effect<boolean, BudgetUnavailable>
    /** Reservations in states that can still change, oldest first. */
    readonly open: Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
    /** Settles payments acknowledged at least this long ago. From then on the same call is a new purchase. */
    readonly settleAcknowledged: (ageMillis: number) => Effect.Effect<void, BudgetUnavailable>
    readonly ofInvocation: (invocation: string) => Effect.Effect<ExistingReservation, BudgetUnavailable>
    /**
     * Adds sealed data to an undelivered reservation. False if it does not exist, or if all contents together would
     * exceed `lengthsMax` characters even after contents were dropped: of acknowledged payments, then the oldest of
     * agents that have more than this one will have.
     */
    readonly keep: (
      id: string,
      contents: SealedContents,
      lengthsMax?: number
    ) => Effect.Effect<boolean, BudgetUnavailable>
    readonly kept: (id: string) => Effect.Effect<SealedContents, BudgetUnavailable>
    /** Reservations of an agent that have a receipt, newest first. */
    readonly receipts: (agent: string) => Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
    /** Deletes the content of a released reservation after its delivery. */
    readonly forget: (id: string) => Effect.Effect<void, BudgetUnavailable>
    /** Zeros if nothing is stored for the channel. */
    readonly totals: (channelId: string) => Effect.Effect<SignedTotals, BudgetUnavailable>
    /** Raises the totals; lower ones change nothing, since another process may have signed for more. */
    readonly keepTotals: (channelId: string, totals: SignedTotals) => Effect.Effect<void, BudgetUnavailable>
    /** Channels that may hold money. */
    readonly channels: Effect.Effect<ReadonlyArray<StoredChannel>, BudgetUnavailable>
    readonly keepChannel: (channel: StoredChannel) => Effect.Effect<void, BudgetUnavailable>
    /** Called after the channel's money is refunded. */
    readonly forgetChannel: (channelId: string) => Effect.Effect<void, BudgetUnavailable>
    /** Holds a channel until the Scope closes. Of the processes that share the store, one uses a channel at a time. */
    readonly holdChannel: (channelId: string) => Effect.Effect<void, BudgetUnavailable, Scope.Scope>
    readonly isShared: boolean
  }
>()("tollkeeper/mcp-tools/BudgetStore") {}

/**
 * The budget store of the running tool server. Operator commands that run inside the tool server use it instead of
 * opening a second store; a memory store can only be reached this way.
 */
export class RunningBudget extends Context.Service<
  RunningBudget,
  {
    /** Undefined when no signer is configured. */
    readonly store: BudgetStore["Service"] | undefined
  }
>()("tollkeeper/mcp-tools-pay/RunningBudget") {
  static readonly layer = Layer.effect(
    RunningBudget,
    Effect.map(BudgetStore, (store) => RunningBudget.of({ store }))
  )
  static readonly layerNone = Layer.succeed(RunningBudget, { store: undefined })
}
