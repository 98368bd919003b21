// A facilitator with the local profile, which offers `upto`, and one payer and one seller on its ledger.
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { makeUptoPayment, type UptoOptions, type UptoPayment } from "../../support/uptoBuyer.ts"

export interface UptoFacilitator extends Facilitator {
  readonly contract: string
  readonly sponsor: string
  readonly upto: (options: Partial<UptoOptions> & Pick<UptoOptions, "payer" | "payTo">) => Effect.Effect<UptoPayment>
  /** A payer with `usdcUnits` and a seller with none. */
  readonly parties: (usdcUnits?: bigint) => Effect.Effect<{ readonly payer: Keypair; readonly payTo: string }>
}

/** The maximum of an honest payment in these tests. */
export const max = 1_000n

/** A payment is valid for half a minute of ledgers that close five times a second, by default. */
const lasting = { maxTimeoutSeconds: 300, secondsPerLedger: 2 }

export const startUpto = Effect.fnUntraced(function* (options: FacilitatorOptions = {}) {
  const facilitator = yield* startFacilitator(options)
  const { json } = yield* facilitator.ask("/supported")
  const kind = json.kinds.find(({ scheme }: { scheme: string }) => scheme === "upto")
  const { facilitatorAddress: sponsor, uptoContract: contract } = kind.extra
  const started: UptoFacilitator = Object.assign(Object.create(facilitator) as Facilitator, {
    contract,
    sponsor,
    upto: (payment: Partial<UptoOptions> & Pick<UptoOptions, "payer" | "payTo">) =>
      Effect.promise(() =>
        makeUptoPayment({ rpc: facilitator.rpc, contract, facilitator: sponsor, max, ...lasting, ...payment })
      ),
    parties: Effect.fnUntraced(function* (usdcUnits = 1_000_000n) {
      const payer = yield* facilitator.account(usdcUnits)
      const seller = yield* facilitator.account(0n)
      return { payer, payTo: seller.publicKey() }
    })
  })
  return started
})
