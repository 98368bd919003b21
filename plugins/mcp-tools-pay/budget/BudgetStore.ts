// Storage of reservations. A store decides a reservation in one step, so that concurrent calls cannot exceed a ceiling
// together, and changes a reservation's state only along the allowed transitions. All but the memory store survive the
// process. Beside a reservation it keeps, sealed, what another process needs to finish its payment: the signed payment
// with its terms, stored before it is sent, and content that arrived before the ledger showed the payment.
import { Context, type Effect, Schema } from "effect"
import type { ChannelConfig } from "../../x402-batch/contract.ts"
import type { Authorization, Ceilings, Reservation, ReservationState } from "./Reservation.ts"

/** The store cannot be read or written; nothing may be signed then. */
export class BudgetUnavailable extends Schema.TaggedError<BudgetUnavailable>()("BudgetUnavailable", {
  cause: Schema.Defect()
}) {}

/** `kept`: reserved. `over`: exceeds a ceiling. `changed`: another reservation of the invocation came first. */
export type Reserved = "kept" | "over" | "changed"

/** What is known of one invocation. */
export interface ExistingReservation {
  /** Reservations ever made for it, as far as they are kept. */
  readonly made: number
  /**
   * Those whose result the same call gets: `reserved`, `signed`, `unknown`, `spent`, `acknowledged`, and `released`
   * ones whose content came all the same; newest first.
   */
  readonly undelivered: ReadonlyArray<Reservation>
  /** Identifiers of payments that were signed since the last delivery and released, newest first. */
  readonly released: ReadonlyArray<string>
}

/** Sealed data stored with a reservation. */
export interface Kept {
  readonly payment?: string | undefined
  readonly content?: string | undefined
}

/** Characters of all stored contents; beyond it, content is requested from the seller again. */
export const contentLengthsMax = 268_435_456

export interface TransitionResult {
  readonly state: ReservationState
  readonly authorization?: Authorization
  readonly transaction?: string
  readonly receipt?: string
}

/** What vouchers of a payment channel were signed for, atomic units in all. */
export interface SignedTotals {
  /** By calls that ended as paid, or whose end is not known: of these a seller may show the voucher. */
  readonly counted: bigint
  /** By any call, also one that was refused; written before the voucher leaves this process. */
  readonly sent: bigint
}

/** A channel of an agent, as it was last used. */
export interface StoredChannel {
  readonly channelId: string
  readonly agent: string
  readonly contract: string
  /** Its terms, by which its payer withdraws without the seller. */
  readonly config: ChannelConfig
  /** The call by which its seller is asked for a refund, sealed under the channel's id. */
  readonly sealed: string
}

/** Receipts that are listed at most. */
export const receiptsMax = 20

export class BudgetStore extends Context.Service<
  BudgetStore,
  {
    /** `made` is the count the caller read before: of two concurrent callers that read the same, one reserves. */
    readonly reserve: (
      reservation: Reservation,
      ceilings: Ceilings,
      made: number
    ) => Effect.Effect<Reserved, BudgetUnavailable>
    /** True when the reservation was in a state that allows the move. */
    readonly move: (id: string, to: TransitionResult) => Effect.Effect<boolean, BudgetUnavailable>
    /** Reservations in states that can still change, oldest first. */
    readonly open: Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
    /** Settles what was acknowledged at least this long ago: the same call is paid for again from then on. */
    readonly settleAcknowledged: (ageMillis: number) => Effect.Effect<void, BudgetUnavailable>
    readonly ofInvocation: (invocation: string) => Effect.Effect<ExistingReservation, BudgetUnavailable>
    /**
     * Adds sealed data to an undelivered reservation; false when there is none, or no room for content among
     * `lengthsMax` characters of all, though that of acknowledged ones gives way.
     */
    readonly keep: (id: string, kept: Kept, lengthsMax?: number) => Effect.Effect<boolean, BudgetUnavailable>
    readonly kept: (id: string) => Effect.Effect<Kept, BudgetUnavailable>
    /** Reservations of an agent that have a receipt, newest first. */
    readonly receipts: (agent: string) => Effect.Effect<ReadonlyArray<Reservation>, BudgetUnavailable>
    /** Forgets the content of a released reservation, which is delivered. */
    readonly forget: (id: string) => Effect.Effect<void, BudgetUnavailable>
    /** Zeros for a channel of which nothing is kept. */
    readonly totals: (channelId: string) => Effect.Effect<SignedTotals, BudgetUnavailable>
    readonly keepTotals: (channelId: string, totals: SignedTotals) => Effect.Effect<void, BudgetUnavailable>
    /** Channels that may hold money. */
    readonly channels: Effect.Effect<ReadonlyArray<StoredChannel>, BudgetUnavailable>
    readonly keepChannel: (channel: StoredChannel) => Effect.Effect<void, BudgetUnavailable>
    /** Its money is refunded. */
    readonly forgetChannel: (channelId: string) => Effect.Effect<void, BudgetUnavailable>
    /** Whether other processes work on it. */
    readonly isShared: boolean
  }
>()("tollkeeper/mcp-tools/BudgetStore") {}
