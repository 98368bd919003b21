// Identifies our transactions on the ledger: transactions signed by our sponsor on any channel, and transactions of our
// channels.
import { Keypair } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { cancelTransaction, type AccountSignature, withSignatures } from "../../../../kernel/stellar/Envelope.ts"
import type { ExecutedTransaction } from "../../../../kernel/ledger/Executed.ts"
import type { Authorizations, NonceUse } from "../../../../kernel/settlement/Authorizations.ts"
import { ofOurs, readSpending } from "../../../../kernel/settlement/follower/findSpending.ts"
import { bumpWithSignature, feeBump } from "../../../support/feeBump.ts"

const [channel, sponsor, stranger] = [1, 2, 3].map((seed) =>
  Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(seed)).publicKey()
) as [string, string, string]
const signature: AccountSignature = { publicKey: new Uint8Array(32), signature: new Uint8Array(64) }

const transaction = cancelTransaction({ channel, sequence: 5n, bounds: { ledgerMax: 9, timeMax: 0n } })
const inner = withSignatures(transaction, [signature])
const bumpedBy = (payer: string) => bumpWithSignature(feeBump(inner, payer, 200n), signature)

describe("a transaction on the ledger", () => {
  it("a transaction is ours if our sponsor pays, even on another channel", () => {
    expect(ofOurs(bumpedBy(sponsor), { sponsors: new Set([sponsor]), channels: new Set() })?.seqNum).toBe(5n)
  })

  it("a transaction on our channel is ours although a former sponsor paid", () => {
    expect(ofOurs(bumpedBy(stranger), { sponsors: new Set([sponsor]), channels: new Set([channel]) })?.seqNum).toBe(5n)
  })

  it("a transaction is not ours under a foreign fee or without one", () => {
    expect(ofOurs(bumpedBy(stranger), { sponsors: new Set([sponsor]), channels: new Set([stranger]) })).toBeUndefined()
    expect(ofOurs(inner, { sponsors: new Set([sponsor]), channels: new Set([channel]) })).toBeUndefined()
  })

  it("transfers the promised amount only with exactly this authorization, alone", () => {
    const promised = { scheme: "exact", authorizationKey: "", payer: "", payTo: "", asset: "", amount: 7n }
    const executed = { ledger: 5, succeeded: true } as ExecutedTransaction
    const read = (use: NonceUse, found: Partial<ExecutedTransaction> = {}) => {
      const authorizations = {
        useIn: () => use,
        movementIn: () => ({ amount: 7n })
      } as unknown as Authorizations["Service"]
      const own = { sponsors: new Set([sponsor]), channels: new Set<string>() }
      return readSpending(
        authorizations,
        { envelope: bumpedBy(sponsor), executed: { ...executed, ...found } },
        promised,
        own
      )
    }
    expect(read("same")).toMatchObject({ moved: 7n })
    expect(read("other")).toMatchObject({ moved: undefined })
    expect(read("none")).toBeUndefined()
    expect(read("same", { succeeded: false })).toBeUndefined()
  })
})
