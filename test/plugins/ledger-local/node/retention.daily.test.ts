// Data that a running ledger deletes, so that it can run indefinitely: expired nonces, old ledgers, old states.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { Address, type Keypair, nativeToScVal, Operation, SorobanDataBuilder, xdr } from "@stellar/stellar-sdk"
import { testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { LocalLedger, type LocalLedgerOptions } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { USDC_CONTRACT } from "../../../../plugins/ledger-local/node/accounts.ts"
import { layer as nodeCrypto } from "../../../../runtime/platform/nodeCrypto.ts"
import { callOf, invocationOf, signAuthorization } from "../../../../runtime/redteam/authorization.ts"
import { apply, fund, ledgerLayer, passphrase, transaction } from "../support.ts"

/** A nonce lives for five ledgers, unless its signature lives longer. */
const shortNonces = { settings: { ...testnet, ttl: { ...testnet.ttl, minTemporaryLedgers: 5 } } }

/** A payment of one unit by a signed authorization, in the form of the exact scheme. */
const pay = Effect.fnUntraced(function* (
  buyer: Keypair,
  seller: Keypair,
  channel: Keypair,
  nonce: bigint,
  expirationLedger: number
) {
  const ledger = yield* LocalLedger
  const args = [
    new Address(buyer.publicKey()).toScVal(),
    new Address(seller.publicKey()).toScVal(),
    nativeToScVal(1n, { type: "i128" })
  ]
  const call = callOf(USDC_CONTRACT, "transfer", args)
  const auth = signAuthorization({
    payer: buyer,
    invocation: invocationOf(call),
    nonce,
    expirationLedger,
    networkPassphrase: passphrase
  })
  const operation = Operation.invokeHostFunction({
    func: xdr.HostFunction.hostFunctionTypeInvokeContract(call),
    auth: [auth]
  })
  const draft = yield* transaction(channel, [operation], { signers: [] })
  const { error, transactionData } = yield* ledger.call("simulateTransaction", {
    transaction: draft.toEnvelope().toXdr("base64")
  })
  if (error !== undefined) return error as string
  const fee = (BigInt(new SorobanDataBuilder(transactionData).build().resourceFee) + 100n).toString()
  const tx = yield* transaction(channel, [operation], {
    fee,
    configure: (builder) => builder.setSorobanData(transactionData).setTimeout(0)
  })
  return (yield* apply(tx)).status
})

const entries = Effect.map(LocalLedger, ({ ledger }) => [...ledger.store.entries()].length)

const people = Effect.all([fund("buyer", 10_0000000n), fund("seller", 0n), fund("channel")])

const metaOf = Effect.fnUntraced(function* (sequence: number) {
  const ledger = yield* LocalLedger
  const { ledgers } = yield* ledger.call("getLedgers", { startLedger: sequence, pagination: { limit: 1 } })
  return (xdr.LedgerCloseMeta.fromXdr(ledgers[0].metadataXdr, "base64") as any).v2
})

describe("a nonce", () => {
  it.effect("evicts a nonce after its last ledger, and it stays unusable", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [buyer, seller, channel] = yield* people
      const before = yield* entries
      const { sequence } = ledger.ledger.latest
      const expiration = sequence + 8
      expect(yield* pay(buyer, seller, channel, 7n, expiration)).toBe("SUCCESS")
      expect(yield* entries).toBe(before + 2)
      expect(yield* pay(buyer, seller, channel, 7n, expiration)).toContain("Error(Auth, ExistingValue)")
      yield* ledger.closeMany(expiration - ledger.ledger.latest.sequence)
      expect([ledger.ledger.latest.sequence, yield* entries]).toEqual([expiration, before + 2])
      yield* ledger.close
      expect(yield* entries).toBe(before)
      expect((yield* metaOf(expiration)).evictedKeys).toEqual([])
      const evicted = (yield* metaOf(expiration + 1)).evictedKeys as ReadonlyArray<xdr.LedgerKey>
      expect(evicted.map(({ type }) => type)).toEqual(["contractData", "ttl"])
      // A replay of the signed authorization finds it expired, not fresh.
      expect(yield* pay(buyer, seller, channel, 7n, expiration)).toContain("signature has expired")
    }).pipe(Effect.provide(ledgerLayer(shortNonces)))
  )

  it.effect("a lagging node still has an evicted nonce", () =>
    Effect.gen(function* () {
      const { ledger, closeMany } = yield* LocalLedger
      const [buyer, seller, channel] = yield* people
      yield* pay(buyer, seller, channel, 7n, ledger.latest.sequence + 4)
      const [paidAt, count] = [ledger.latest.sequence, yield* entries]
      yield* closeMany(10)
      expect(yield* entries).toBe(count - 2)
      expect([...ledger.storeAsOf(paidAt)!.entries()].length).toBe(count)
    }).pipe(Effect.provide(ledgerLayer(shortNonces)))
  )

  it.effect("two hundred payments leave no nonce behind", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [buyer, seller, channel] = yield* people
      const before = yield* entries
      let most = 0
      for (let nonce = 1n; nonce <= 200n; nonce++) {
        expect(yield* pay(buyer, seller, channel, nonce, ledger.ledger.latest.sequence + 1 + Number(nonce % 5n))).toBe(
          "SUCCESS"
        )
        most = Math.max(most, yield* entries)
      }
      expect(most - before).toBeLessThanOrEqual(2 * 6)
      yield* ledger.closeMany(6)
      expect(yield* entries).toBe(before)
    }).pipe(Effect.provide(ledgerLayer(shortNonces)))
  )

  const stored = (folder: string, options: LocalLedgerOptions) =>
    LocalLedger.layer({ ...shortNonces, ...options }, folder).pipe(Layer.provideMerge(nodeCrypto))
  const files = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)

  for (const journalLinesMax of [1_000, 3]) {
    it.live(`evicts expired nonces after a restart (journal of ${journalLinesMax} lines)`, () =>
      Effect.gen(function* () {
        const folder = yield* Effect.flatMap(FileSystem.FileSystem, (system) => system.makeTempDirectoryScoped())
        const first = yield* Effect.gen(function* () {
          const ledger = yield* LocalLedger
          const [buyer, seller, channel] = yield* people
          const before = yield* entries
          yield* pay(buyer, seller, channel, 1n, ledger.ledger.latest.sequence + 1)
          yield* ledger.closeMany(6)
          yield* pay(buyer, seller, channel, 2n, ledger.ledger.latest.sequence + 1)
          return { before, now: yield* entries, ledgers: [...ledger.ledger.history.from(0)] }
        }).pipe(Effect.provide(stored(folder, { journalLinesMax })))
        expect(first.now).toBe(first.before + 2)
        yield* Effect.gen(function* () {
          const ledger = yield* LocalLedger
          expect([...ledger.ledger.history.from(0)]).toEqual(first.ledgers)
          expect(first.ledgers.filter(({ evicted }) => evicted.length > 0)).toHaveLength(1)
          expect(yield* entries).toBe(first.now)
          yield* ledger.closeMany(6)
          expect(yield* entries).toBe(first.before)
        }).pipe(Effect.provide(stored(folder, { journalLinesMax })))
      }).pipe(Effect.scoped, Effect.provide(files))
    )
  }
})

describe("history", () => {
  it.effect("keeps a day of one-second ledgers within the retention", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* fund("someone")
      yield* ledger.closeMany(86_400)
      const health = yield* ledger.call("getHealth")
      expect([health.latestLedger, health.latestLedger - health.oldestLedger + 1]).toEqual([87_401, 17_280])
      expect(ledger.ledger.history.transactionCount).toBe(0)
      expect((yield* ledger.call("getTransactions", { startLedger: health.oldestLedger })).transactions).toEqual([])
      expect(yield* fund("another")).toBeDefined()
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("history drops whole ledgers, with both hashes, beyond the transaction limit", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const first = yield* ledger.fund((yield* fund("first")).publicKey())
      for (let i = 0; i < 12; i++) yield* fund(`account ${i}`)
      expect(ledger.ledger.history.transactionCount).toBe(10)
      expect((yield* ledger.call("getTransaction", { hash: first!.hash })).status).toBe("NOT_FOUND")
      expect((yield* ledger.call("getHealth")).oldestLedger).toBe(1_005)
    }).pipe(Effect.provide(ledgerLayer({ retentionTransactions: 10 })))
  )
})
