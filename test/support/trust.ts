// Changes an account's trustline on a ledger, as its owner would.
import { Account, Asset, type Keypair, Networks, Operation, TransactionBuilder } from "@stellar/stellar-sdk"
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect } from "effect"
import { decodeWith } from "../../kernel/ledger/ledgerEntries.ts"
import { readHeldAsset } from "../../kernel/stellar/Holding.ts"
import { accountKey, instanceKey, readAccount } from "../../kernel/stellar/LedgerEntry.ts"
import { eventually } from "./eventually.ts"
import type { Facilitator } from "./facilitator.ts"

const entryOf = (world: Facilitator, key: string) =>
  Effect.promise(async () => {
    const { entries } = (await world.rpc("getLedgerEntries", { keys: [key] })) as {
      readonly entries?: ReadonlyArray<{ readonly xdr: string }>
    }
    return decodeWith(xdr.LedgerEntryData.schema, entries?.[0]?.xdr)
  })

/** Sets the limit of an account's trustline, in units of the asset; 0 removes it. */
export const trust = Effect.fnUntraced(function* (world: Facilitator, owner: Keypair, contract: string, limit: string) {
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
