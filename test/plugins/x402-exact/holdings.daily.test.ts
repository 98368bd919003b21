// Whose balance, trustline or limit refuses a transfer: the asset contract has one code for both ends, the sentence
// names the one.
import { expect, it } from "@effect/vitest"
import { Asset, type Keypair, Networks, Operation, TransactionBuilder, Account } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import { decodeWith } from "../../../kernel/ledger/ledgerEntries.ts"
import { readHeldAsset } from "../../../kernel/stellar/Holding.ts"
import { accountKey, instanceKey, readAccount } from "../../../kernel/stellar/LedgerEntry.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const entryOf = (world: Facilitator, key: string) =>
  Effect.promise(async () => {
    const { entries } = (await world.rpc("getLedgerEntries", { keys: [key] })) as {
      readonly entries?: ReadonlyArray<{ readonly xdr: string }>
    }
    return decodeWith(xdr.LedgerEntryData.schema, entries?.[0]?.xdr)
  })

/** Sets the limit of an account's trustline, in units of the asset; 0 removes it. */
const trust = Effect.fnUntraced(function* (world: Facilitator, owner: Keypair, contract: string, limit: string) {
  const held = readHeldAsset((yield* entryOf(world, instanceKey(contract)))!)
  if (held?._tag !== "Issued") throw new Error("not an issued asset")
  const account = readAccount((yield* entryOf(world, accountKey(owner.publicKey())))!)!
  const transaction = new TransactionBuilder(new Account(account.address, account.sequence.toString()), {
    fee: "1000",
    networkPassphrase: Networks.TESTNET
  })
    .addOperation(Operation.changeTrust({ asset: new Asset(held.code, held.issuer), limit }))
    .setTimeout(60)
    .build()
  transaction.sign(owner)
  const hash = Buffer.from(transaction.hash()).toString("hex")
  yield* Effect.promise(() => world.rpc("sendTransaction", { transaction: transaction.toEnvelope().toXDR("base64") }))
  yield* eventually(
    Effect.promise(async () => (await world.rpc("getTransaction", { hash })) as { readonly status: string }),
    ({ status }) => status === "SUCCESS"
  )
})

it.live(
  "a refusal of the asset contract names the end that it is about",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ set: ["plugins=[ledger-local,x402-exact]"] })
      const [rich, poor] = [yield* world.account(), yield* world.account(9_999n)]
      const seller = yield* world.account(0n)
      const payTo = seller.publicKey()
      const { body } = yield* world.payment({ payer: rich, payTo, amount: 10_000n })
      const contract = body.paymentRequirements.asset
      const refusedBy = (payer: Keypair) =>
        Effect.gen(function* () {
          const { body } = yield* world.payment({ payer, payTo, amount: 10_000n })
          const { isValid, invalidMessage } = (yield* world.verify(body)).json
          expect(isValid).toBe(false)
          return invalidMessage as string
        })
      const ofPayer = yield* refusedBy(poor)
      expect(ofPayer).toContain("the payer's balance does not cover the amount")
      expect(ofPayer).toContain(`${poor.publicKey()} can spend 9999 of 10000`)

      yield* trust(world, seller, contract, "0.0005")
      const ofLimit = yield* refusedBy(rich)
      expect(ofLimit).toContain(`the trustline of ${payTo} has room for 5000 of 10000`)
      expect(ofLimit).not.toContain("the payer's balance does not cover")

      yield* trust(world, seller, contract, "0")
      expect(yield* refusedBy(rich)).toContain(
        `the recipient ${payTo} has no trustline to the asset; the seller must add`
      )
    }).pipe(Effect.scoped),
  240_000
)
