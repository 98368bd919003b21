// The answers of sendTransaction, in every case the network distinguishes.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, type Keypair, Operation, Contract } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { NATIVE_CONTRACT } from "../../../../plugins/ledger-local/node/accounts.ts"
import { account, feeBump, fund, keypair, ledgerLayer, send, transaction } from "../support.ts"

const bump = Operation.bumpSequence({ bumpTo: "0" })
const pay = (to: Keypair) => Operation.payment({ destination: to.publicKey(), asset: Asset.native(), amount: "1" })
const found = (hash: string) => Effect.flatMap(LocalLedger, (ledger) => ledger.call("getTransaction", { hash }))

const soroban = Effect.fnUntraced(function* (source: Keypair) {
  const ledger = yield* LocalLedger
  const call = new Contract(NATIVE_CONTRACT).call("decimals")
  const draft = yield* transaction(source, [call])
  const simulated = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
  return yield* transaction(source, [call], {
    fee: (BigInt(simulated.minResourceFee) + 100n).toString(),
    configure: (builder) => builder.setSorobanData(simulated.transactionData).setTimeout(0)
  })
})

describe("sendTransaction", () => {
  it.effect("sendTransaction answers PENDING, then DUPLICATE, then txBadSeq after inclusion", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const tx = yield* transaction(payer, [bump])
      expect((yield* send(tx)).status).toBe("PENDING")
      expect((yield* send(tx)).status).toBe("DUPLICATE")
      expect((yield* found((yield* send(tx)).hash)).status).toBe("NOT_FOUND")
      yield* ledger.close
      expect(yield* send(tx)).toMatchObject({ status: "ERROR", code: "txBadSeq" })
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("queues one transaction per sequence account, else TRY_AGAIN_LATER", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const next = (yield* account(payer.publicKey()))!.seqNum + 1n
      expect((yield* send(yield* transaction(payer, [bump]))).status).toBe("PENDING")
      const second = yield* transaction(payer, [bump], { sequence: next + 1n })
      expect((yield* send(second)).status).toBe("TRY_AGAIN_LATER")
      expect((yield* send(yield* transaction(payer, [pay(payer)], { sequence: next }))).status).toBe("TRY_AGAIN_LATER")
      expect(yield* send(yield* transaction(payer, [bump], { sequence: next - 1n }))).toMatchObject({
        status: "ERROR",
        code: "txBadSeq"
      })
      yield* ledger.close
      expect((yield* send(second)).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a queued fee bump is replaced for ten times its bid", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [payer, sponsor] = [yield* fund("payer"), yield* fund("sponsor")]
      const inner = yield* transaction(payer, [bump])
      const first = yield* send(feeBump(sponsor, "200", inner))
      expect(first.status).toBe("PENDING")
      expect((yield* send(inner)).status).toBe("DUPLICATE")
      const cheap = yield* send(feeBump(sponsor, "1999", inner))
      expect(cheap).toMatchObject({ status: "ERROR", code: "txInsufficientFee" })
      expect(cheap.error!.feeCharged).toBe(4_000n)
      const second = yield* send(feeBump(sponsor, "2000", inner))
      expect(second.status).toBe("PENDING")
      yield* ledger.close
      expect((yield* found(first.hash)).status).toBe("NOT_FOUND")
      expect((yield* found(second.hash)).status).toBe("SUCCESS")
      const byInner = yield* found(Buffer.from(inner.hash()).toString("hex"))
      expect(byInner).toMatchObject({ status: "SUCCESS", feeBump: true })
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("counts a payer's fees of queued transactions", () =>
    Effect.gen(function* () {
      const [payer, other, sponsor] = [yield* fund("payer"), yield* fund("other"), yield* fund("sponsor")]
      const most = "30000000000"
      expect((yield* send(feeBump(sponsor, most, yield* transaction(payer, [bump])))).status).toBe("PENDING")
      const over = yield* send(feeBump(sponsor, most, yield* transaction(other, [bump])))
      expect(over).toMatchObject({ status: "ERROR", code: "txInsufficientBalance" })
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("an account is in the classic or the contract queue, not both", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [channel, sponsor] = [yield* fund("channel"), yield* fund("sponsor")]
      const contract = yield* soroban(channel)
      expect((yield* send(feeBump(sponsor, (BigInt(contract.fee) + 200n).toString(), contract))).status).toBe("PENDING")
      expect((yield* send(yield* transaction(sponsor, [bump]))).status).toBe("TRY_AGAIN_LATER")
      yield* ledger.close
      expect((yield* send(yield* transaction(sponsor, [bump]))).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("drops a transaction after four ledgers and bans it for ten", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const tx = yield* transaction(payer, [bump])
      yield* ledger.setFaults([{ drops: () => true }])
      expect((yield* send(tx)).status).toBe("PENDING")
      yield* ledger.closeMany(3)
      expect((yield* send(tx)).status).toBe("DUPLICATE")
      yield* ledger.close
      yield* ledger.setFaults([])
      expect((yield* send(tx)).status).toBe("TRY_AGAIN_LATER")
      yield* ledger.closeMany(9)
      expect((yield* send(tx)).status).toBe("TRY_AGAIN_LATER")
      yield* ledger.close
      expect((yield* send(tx)).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a full ledger takes the best bids at the lowest included bid", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const bids = [
        ["low", "150"],
        ["high", "900"],
        ["middle", "400"]
      ] as const
      const hashes: Array<string> = []
      for (const [name, fee] of bids) {
        const payer = yield* fund(name)
        hashes.push((yield* send(yield* transaction(payer, [bump], { fee }))).hash)
      }
      yield* ledger.close
      const statuses = yield* Effect.forEach(hashes, (hash) => Effect.map(found(hash), ({ status }) => status))
      expect(statuses).toEqual(["NOT_FOUND", "SUCCESS", "SUCCESS"])
      const { inclusionFee } = yield* ledger.call("getFeeStats")
      expect(inclusionFee.max).toBe("400")
      yield* ledger.close
      expect((yield* found(hashes[0]!)).status).toBe("SUCCESS")
    }).pipe(Effect.provide(ledgerLayer({ transactionsPerLedgerMax: 2 })))
  )

  it.effect("never includes a queued transaction that became invalid", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const { sequence } = yield* ledger.call("getLatestLedger")
      const tx = yield* transaction(payer, [pay(keypair("payer2"))], {
        configure: (builder) => builder.setTimeout(0).setLedgerbounds(0, sequence + 3)
      })
      yield* ledger.setFaults([{ delayLedgers: () => 2 }])
      const { hash } = yield* send(tx)
      yield* ledger.closeMany(4)
      expect((yield* found(hash)).status).toBe("NOT_FOUND")
      expect((yield* account(payer.publicKey()))!.seqNum).toBe(BigInt(tx.sequence) - 1n)
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
