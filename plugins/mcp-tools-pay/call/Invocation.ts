// One logical purchase for an agent: the resource, the terms and the seller. Its key identifies repeated calls: an
// agent that calls again while the outcome of the first call is open gets that outcome and does not pay twice. The
// seller modules implement the protocols; here a seller only receives a payment and answers.
import type { Effect } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { ToolError } from "../../mcp-tools/contract.ts"
import type { Authorization } from "../budget/Reservation.ts"
import type { Transfer } from "../payer/authorization.ts"
import type { Challenge, Fields, PaymentOption, SettlementClaim } from "../seller/SellerWire.ts"

/** A tool's result for its agent. */
export type Output = Readonly<Record<string, unknown>>

/** Amounts in atomic units. */
export interface Deposit {
  readonly amount: bigint
  readonly price: bigint
  /** Contract that receives the deposit. */
  readonly contract: string
  /** Seconds until the payer gets the rest back without the seller. */
  readonly withdrawDelaySeconds: number
}

export interface Invocation {
  readonly key: string
  readonly ref: string
  readonly versionHash: string
  /** From the catalog; the seller's own copy may differ in descriptive text. */
  readonly option: PaymentOption
  /** The deposit into a payment channel, if the payment moves one instead of the option's amount. */
  readonly deposit?: Deposit | undefined
  /** The HTTP request, if another call may have to repeat this one. */
  readonly request?: KeptRequest | undefined
  /** Facts about the resource that policy rules can match. */
  readonly about: {
    readonly kind: "http" | "mcp"
    readonly origin: string | undefined
    readonly grade: "proven" | "provisional"
  }
  /** Shown to a person: the seller's and the agent's text, unchanged. */
  readonly bought: {
    readonly title: string
    /** The tool, or method and URL. */
    readonly action: string
    readonly arguments: unknown
  }
}

/** A seller's answer to a call with a payment. */
export interface PaidAnswer {
  readonly settlement: SettlementClaim | undefined
  /** Set if the seller asks for payment again. `reason` is defined if the seller's reason is a word. */
  readonly asksAgain: { readonly reason: string | undefined; readonly challenge?: Challenge | undefined } | undefined
  /**
   * True if this is the resource's answer. False for a failure in between, after which the same request may be
   * repeated.
   */
  readonly isContent: boolean
  /** The answer is itself a failure: a status from 300 on, or an error of the tool. */
  readonly isFailure?: boolean
  /** The answer was cut off or did not end in time. Sending the same payment again may return the rest. */
  readonly isPart?: boolean
  /** Why, if for another reason. */
  readonly why?: string | undefined
  /** The purchased content, as the agent gets it. */
  readonly content: Output
}

/** An HTTP request as stored with its payment; the body is base64. */
export interface KeptRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Seller {
  /** The seller for another request, reached the same way. */
  readonly ofRequest?: (request: KeptRequest) => Seller
  readonly send: (payment: Fields) => Effect.Effect<PaidAnswer, ToolError>
  readonly close: Effect.Effect<void>
}

/** A signed payment with an undelivered result. */
export interface OpenPayment {
  readonly identifier: string
  readonly payment: Fields
  readonly authorization: Authorization
  /** Without the text shown to a person, which only the decision needs. */
  readonly invocation: Omit<Invocation, "bought">
  /** The transfer that the authorization makes, if it differs from the option: a deposit into a channel. */
  readonly moves?: Transfer | undefined
  /** Earlier payments of this invocation that were signed and have been proven dead. */
  readonly replaces: ReadonlyArray<string>
}

/** A voucher of a payment channel with an undelivered result. The ledger does not decide its outcome. */
export type OpenVoucher = Omit<OpenPayment, "authorization" | "moves">

/**
 * The key of an invocation. The same agent, resource, arguments and requested asset make the same invocation in any
 * session, even if the listing changes in the meantime. `resource`: the reference of a tool; empty for an HTTP request,
 * because its arguments contain the whole address and a renamed or replaced listing is still the same purchase.
 * `idempotencyKey`: the same call with another key is another purchase.
 */
export const invocationKey = (
  crypto: Crypto["Service"],
  called: {
    readonly agent: string
    readonly resource: string
    readonly args: Fields
    readonly idempotencyKey?: string | undefined
  },
  asset: string | undefined
): string => {
  const { agent, args, idempotencyKey, resource } = called
  const named = idempotencyKey === undefined ? [] : [idempotencyKey]
  const key = canonicalJson([agent, resource, args, asset ?? null, ...named])
  return Hex.encode(crypto.sha256(new TextEncoder().encode(key)))
}
