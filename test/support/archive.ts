// Archives a contract's balance of the test token on the embedded ledger, as months without a transfer do, and reads
// the archived entries that a settlement restored.
import { Address, xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { type KeyString, ttlEntry } from "../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import type { Facilitator } from "./facilitator.ts"

/** Archives the contract's balance in this ledger. */
export const archiveBalance = ({ ledger: { ledger } }: Pick<Facilitator, "ledger">, holder: string) =>
  Effect.sync(() => {
    const key = xdr.LedgerKey.contractData(
      new xdr.LedgerKeyContractData({
        contract: new Address(testnetUsdc).toScAddress(),
        key: xdr.ScVal.scvVec([xdr.ScVal.scvSymbol("Balance"), new Address(holder).toScVal()]),
        durability: xdr.ContractDataDurability.persistent
      })
    )
    const hash = createHash("sha256").update(key.toXdr()).digest()
    const { sequence } = ledger.latest
    ledger.store.set(`\0\0\0\x09${hash.toString("latin1")}` as KeyString, ttlEntry(hash, sequence - 1, sequence))
  })

/** Archived entries that each sent settlement restored. */
export const restoredBy = ({ sql }: Facilitator) =>
  Effect.map(sql<{ envelope: Uint8Array }>`select envelope from kernel_attempts where number = 1`, (rows) =>
    rows.map(({ envelope }) => {
      const bump = xdr.TransactionEnvelope.fromXdr(envelope).toXdrObject() as any
      const data = bump.feeBump.tx.innerTx.v1.tx.ext.sorobanData
      return data.ext.v === 1 ? data.ext.resourceExt.archivedSorobanEntries.length : 0
    })
  )
