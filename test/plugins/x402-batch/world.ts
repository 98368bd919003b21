// A facilitator with the local profile, which offers `batch-settlement`, and buyers and sellers on its ledger.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { type Batch, type BatchChannel, makeBatch } from "../../support/batchBuyer.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"

export interface BatchFacilitator extends Facilitator {
  readonly contract: string
  readonly batch: Batch
  /** Settle's answer when its end is known: a loaded machine answers pending before the ledger has closed. */
  readonly settled: Facilitator["settle"]
  /** A seller with the key of its authorizer; the authorizer is not an account on the ledger. */
  readonly seller: Effect.Effect<{ readonly payTo: string; readonly authorizer: Keypair }>
  /** A channel of a buyer with `deposit` in it, settled by the facilitator. */
  readonly open: (
    seller: { readonly payTo: string; readonly authorizer: Keypair },
    deposit: bigint
  ) => Effect.Effect<BatchChannel>
}

export const startBatch = Effect.fnUntraced(function* (options: FacilitatorOptions = {}) {
  const facilitator = yield* startFacilitator(options)
  const [, key] = options.environment?.["FACILITATOR_API_KEYS"]?.split(/[:,]/) ?? []
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const { json } = yield* facilitator.ask("/supported", { headers })
  const kind = json.kinds.find(({ scheme }: { scheme: string }) => scheme === "batch-settlement")
  const contract: string = kind.extra.batchContract
  const batch = makeBatch(facilitator.rpc, contract)
  const settled: Facilitator["settle"] = (body, options) =>
    eventually(facilitator.settle(body, options), ({ json }) => !/_status_unknown$/.test(String(json?.errorReason)))
  const started: BatchFacilitator = Object.assign(Object.create(facilitator) as Facilitator, {
    contract,
    batch,
    settled,
    seller: Effect.map(facilitator.account(0n), (seller) => ({
      payTo: seller.publicKey(),
      authorizer: Keypair.random()
    })),
    open: Effect.fnUntraced(function* (
      { authorizer, payTo }: { readonly payTo: string; readonly authorizer: Keypair },
      deposit: bigint
    ) {
      const payer = yield* facilitator.account(deposit)
      const channel = batch.channel(payer, payTo, authorizer)
      const payload = yield* Effect.promise(() => batch.deposit(channel, deposit, 1n))
      const { json } = yield* settled(batch.body(channel, payload, 1n))
      if (json.success !== true) return yield* Effect.die(new Error(JSON.stringify(json)))
      return channel
    })
  })
  return started
})
