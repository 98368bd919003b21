// A seller that an agent pays, honest or not. An honest seller binds its content to the payment's nonce: it settles a
// repeated payment once and gives the same answer, or the reason for the missing answer.
import { Effect } from "effect"
import { toolError, type ToolError } from "../../../plugins/mcp-tools/contract.ts"
import type { PaidAnswer, Seller } from "../../../plugins/mcp-tools-pay/call/Invocation.ts"
import type { Fields, SettlementClaim } from "../../../plugins/mcp-tools-pay/seller/SellerWire.ts"
import { authorizationIn, type Signed } from "./AgentLedger.ts"
import type { AgentWorld, Process } from "./AgentWorld.ts"

/**
 * `loses` drops half of its answers, `late` answers after its caller has left, `lazy` submits minutes later; receipts
 * of `noReceipt` and `wrongReceipt` do not match. The last five are dishonest: `forgetful` answers each payment once,
 * `refuses` settles and denies it, `thief` delivers nothing, `free` never settles, `never` does nothing.
 */
export const sellerKinds = [
  "honest",
  "loses",
  "late",
  "lazy",
  "noReceipt",
  "wrongReceipt",
  "twice",
  "forgetful",
  "refuses",
  "thief",
  "free",
  "never"
] as const
export type SellerKind = (typeof sellerKinds)[number]

/** Each honest kind delivers the paid content to a caller that asks again. */
export const isHonest = (kind: SellerKind): boolean => sellerKinds.indexOf(kind) <= sellerKinds.indexOf("twice")

/** How long a tool server waits for a paid answer. */
const timeoutMillis = 30_000
/** How long a facilitator waits for a ledger. */
const settleMillis = 25_000
const pollMillis = 1_000

const word = (more: Partial<SettlementClaim>): SettlementClaim => ({
  success: true,
  transaction: undefined,
  network: "ledger:testnet",
  payer: undefined,
  amount: undefined,
  reason: undefined,
  receipt: undefined,
  unreadable: [],
  ...more
})

const noContent = { isContent: false, content: {}, asksAgain: undefined } as const
const refusal = (reason: string): PaidAnswer => ({
  ...noContent,
  asksAgain: { reason },
  settlement: word({ success: false, reason })
})

export class AgentSeller {
  readonly kind: SellerKind
  readonly payTo: string
  readonly asset: string
  readonly #answered = new Set<bigint>()
  readonly #submitted = new Set<bigint>()
  readonly #world: AgentWorld
  readonly #payer: string
  readonly #amount: bigint
  isCalm = false

  constructor(
    world: AgentWorld,
    kind: SellerKind,
    terms: {
      readonly payTo: string
      readonly asset: string
      readonly payer: string
      readonly amount: bigint
    }
  ) {
    this.#world = world
    this.kind = kind
    this.payTo = terms.payTo
    this.asset = terms.asset
    this.#payer = terms.payer
    this.#amount = terms.amount
  }

  /** The seller from the view of one process. */
  by(process: Process): Seller {
    const away = () => toolError("UPSTREAM_TIMEOUT", "the seller cannot be reached")
    return {
      send: (payment) =>
        this.#world.call(
          process,
          "send payment",
          Effect.suspend(() => this.#serve(this.#read(payment))).pipe(
            Effect.timeoutOrElse({ duration: timeoutMillis, orElse: () => Effect.fail(away()) })
          ),
          away
        ),
      close: Effect.void
    }
  }

  #read(payment: Fields): Signed {
    const { transaction } = payment["payload"] as { readonly transaction: string }
    const { info } = (payment["extensions"] as Record<string, { info: { id: string } }>)["payment-identifier"]!
    const read = authorizationIn(transaction)
    const { asset, payTo } = this
    const signed = { ...read, identifier: info.id, asset, payTo, payer: this.#payer, amount: this.#amount }
    this.#world.noteSent(signed.identifier)
    return signed
  }

  #submit(signed: Signed): void {
    if (this.#submitted.has(signed.nonce) && this.kind !== "twice") return
    this.#submitted.add(signed.nonce)
    this.#world.ledger.submit(signed)
  }

  #landed({ nonce }: Signed) {
    return this.#world.ledger.landed.find((one) => one.nonce === nonce)
  }

  #serve(signed: Signed): Effect.Effect<PaidAnswer, ToolError> {
    const { random, time } = this.#world
    const { chance, int } = random
    switch (this.kind) {
      case "never":
        return Effect.never
      case "free":
        return Effect.succeed({ ...noContent, isContent: true, content: this.contentOf(signed), settlement: undefined })
      case "thief":
        this.#submit(signed)
        return Effect.succeed(chance(0.5) ? refusal("invalid_payload") : { ...noContent, settlement: undefined })
      case "refuses":
        this.#submit(signed)
        return Effect.succeed(refusal("settle_ledger_transaction_failed"))
      case "late":
        return Effect.andThen(Effect.sleep(this.isCalm ? 0 : int(0, 60_000)), this.#settle(signed))
      case "lazy":
        if (this.isCalm || this.#submitted.has(signed.nonce)) return this.#settle(signed)
        time.after(int(0, 400_000), () => this.#submit(signed))
        return Effect.succeed(refusal("settlement_pending"))
      case "loses":
        return Effect.flatMap(this.#settle(signed), (answer) =>
          !this.isCalm && chance(0.5)
            ? Effect.fail(toolError("UPSTREAM_TIMEOUT", "the seller cannot be reached"))
            : Effect.succeed(answer)
        )
      default:
        return this.#settle(signed)
    }
  }

  /** Settles once, and waits for the ledger as long as a facilitator does. */
  readonly #settle = Effect.fnUntraced(function* (this: AgentSeller, signed: Signed) {
    const { ledger, time } = this.#world
    const end = time.now + settleMillis
    const known = this.#landed(signed)
    if (known === undefined && ledger.isDead(signed)) return refusal("invalid_exact_ledger_payload_expired")
    if (known !== undefined && this.kind === "forgetful" && this.#answered.has(signed.nonce))
      return refusal("settle_ledger_already_settled")
    this.#submit(signed)
    while (this.#landed(signed) === undefined) {
      if (ledger.isDead(signed)) return refusal("settle_ledger_transaction_expired")
      if (time.now >= end) return refusal("settlement_pending")
      yield* Effect.sleep(pollMillis)
    }
    this.#answered.add(signed.nonce)
    const { hash: transaction } = this.#landed(signed)!
    const answer = { ...noContent, isContent: true, content: this.contentOf(signed) }
    switch (this.kind) {
      case "noReceipt":
        return { ...answer, settlement: undefined }
      case "wrongReceipt":
        return { ...answer, settlement: word({ transaction: "ab".repeat(32), payer: this.payTo, amount: "1" }) }
      default:
        return { ...answer, settlement: word({ transaction }) }
    }
  })

  contentOf({ nonce }: Signed): Fields {
    return { bought: nonce.toString() }
  }
}
