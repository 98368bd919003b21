// The official SDK against a real listener: the whole way of a payment, as a client of the real network takes it.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import {
  Address,
  authorizeEntry,
  Contract,
  Keypair,
  nativeToScVal,
  Operation,
  rpc,
  scValToNative,
  TransactionBuilder,
  type xdr
} from "@stellar/stellar-sdk"
import { Listeners } from "../../../kernel/platform/Listeners.ts"
import { BODY_BYTES_MAX, handle } from "../../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { USDC_CONTRACT } from "../../../plugins/ledger-local/node/accounts.ts"
import { layer as nodeListeners } from "../../../runtime/platform/nodeListeners.ts"
import { keypair, ledgerLayer, passphrase } from "./support.ts"

const setup = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const listeners = yield* Listeners
  const { port } = yield* listeners.open({ host: "127.0.0.1", port: 0, bodyBytesMax: BODY_BYTES_MAX }, (request) =>
    handle(ledger, request)
  )
  const url = `http://127.0.0.1:${port}`
  yield* ledger.setFriendbotUrl(`${url}/friendbot`)
  return { ledger, url, server: new rpc.Server(url, { allowHttp: true }) }
})

const layer = Layer.mergeAll(ledgerLayer(), nodeListeners)

interface Terms {
  readonly amount?: bigint
  readonly to?: string
  readonly expireIn?: number
  readonly change?: (entry: xdr.SorobanAuthorizationEntry) => xdr.SorobanAuthorizationEntry
}

const buyer = keypair("buyer")
const seller = keypair("seller")
const channel = keypair("channel")
const sponsor = keypair("sponsor")

const fundAll = async (url: string): Promise<void> => {
  for (const key of [buyer, seller])
    await fetch(`${url}/friendbot?addr=${key.publicKey()}&usdc=${key === buyer ? 10 : 0}`)
  for (const key of [channel, sponsor]) await fetch(`${url}/friendbot?addr=${key.publicKey()}`)
}

/** Record, authorize, enforce, assemble, sign, bump, send; the ledger closes; poll. */
const pay = async (server: rpc.Server, close: () => Promise<unknown>, terms: Terms = {}) => {
  const operation = new Contract(USDC_CONTRACT).call(
    "transfer",
    new Address(buyer.publicKey()).toScVal(),
    new Address(terms.to ?? seller.publicKey()).toScVal(),
    nativeToScVal(terms.amount ?? 1_0000000n, { type: "i128" })
  )
  const source = await server.getAccount(channel.publicKey())
  const draft = new TransactionBuilder(source, { fee: "100", networkPassphrase: passphrase })
    .addOperation(operation)
    .setTimeout(60)
    .build()
  const recorded = await server.simulateTransaction(draft)
  if (rpc.Api.isSimulationError(recorded)) return { error: recorded.error }
  const latest = (await server.getLatestLedger()).sequence
  const signed = await authorizeEntry(recorded.result!.auth[0]!, buyer, latest + (terms.expireIn ?? 60), passphrase)
  const entry = terms.change === undefined ? signed : terms.change(signed)
  const invocation = (draft.toEnvelope() as any).v1.tx.operations[0].body.invokeHostFunctionOp
    .hostFunction as xdr.HostFunction
  const again = await server.getAccount(channel.publicKey())
  const built = new TransactionBuilder(again, { fee: "100", networkPassphrase: passphrase })
    .addOperation(Operation.invokeHostFunction({ func: invocation, auth: [entry] }))
    .setTimeout(60)
    .build()
  const enforced = await server.simulateTransaction(built)
  if (rpc.Api.isSimulationError(enforced)) return { error: enforced.error, entry }
  const assembled = rpc.assembleTransaction(built, enforced).build()
  assembled.sign(channel)
  const bump = TransactionBuilder.buildFeeBumpTransaction(sponsor, "1000", assembled, passphrase)
  bump.sign(sponsor)
  const sent = await server.sendTransaction(bump)
  const twice = await server.sendTransaction(bump)
  await close()
  const found = await server.pollTransaction(sent.hash, { attempts: 3, sleepStrategy: () => 10 })
  const byInnerHash = await server.getTransaction(Buffer.from(assembled.hash()).toString("hex"))
  return { sent, twice, found, byInnerHash, entry, enforced }
}

describe("the official client", () => {
  it.live("pays by SEP-41 transfer with a sponsor's fee bump", () =>
    Effect.gen(function* () {
      const { ledger, server, url } = yield* setup
      yield* Effect.promise(() => fundAll(url))
      const close = () => Effect.runPromise(ledger.close)
      const paid = yield* Effect.promise(() => pay(server, close))
      expect(paid.error).toBeUndefined()
      expect(paid.sent!.status).toBe("PENDING")
      expect(paid.twice!.status).toBe("DUPLICATE")
      const found = paid.found as rpc.Api.GetSuccessfulTransactionResponse
      expect(found.status).toBe("SUCCESS")
      expect(found.feeBump).toBe(true)
      expect(found.returnValue!.type).toBe("scvVoid")
      const [event] = found.events.contractEventsXdr[0]!
      expect(event!.body.v0.topics.map(scValToNative)).toEqual([
        "transfer",
        buyer.publicKey(),
        seller.publicKey(),
        expect.stringContaining("USDC:")
      ])
      expect(scValToNative(event!.body.v0.data)).toBe(1_0000000n)
      expect(found.events.transactionEventsXdr.map(({ stage }) => stage.name)).toEqual([
        "transactionEventStageBeforeAllTxs",
        "transactionEventStageAfterAllTxs"
      ])
      expect(paid.byInnerHash!.status).toBe("SUCCESS")
      expect(BigInt(paid.enforced!.minResourceFee)).toBeGreaterThan(20_000n)
      expect(found.resultXdr.feeCharged).toBeLessThan(BigInt(paid.enforced!.minResourceFee))
      const inner = (found.resultXdr.result as any).innerResultPair
      expect(inner.result.feeCharged).toBe(0n)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("the official client gets the network's own codes for refused payments", () =>
    Effect.gen(function* () {
      const { ledger, server, url } = yield* setup
      yield* Effect.promise(() => fundAll(url))
      const close = () => Effect.runPromise(ledger.close)
      const attempt = (terms: Terms) => Effect.promise(() => pay(server, close, terms))
      expect((yield* attempt({ amount: 1_000_0000000n })).error).toContain("Error(Contract, #10)")
      expect((yield* attempt({ to: sponsor.publicKey() })).error).toContain("Error(Contract, #13)")
      expect((yield* attempt({ to: Keypair.random().publicKey() })).error).toContain("Error(Contract, #13)")
      const first = yield* attempt({})
      expect(first.found!.status).toBe("SUCCESS")
      expect((yield* attempt({ change: () => first.entry! })).error).toContain("Error(Auth, ExistingValue)")
      expect((yield* attempt({ expireIn: -1 })).error).toContain("Error(Auth, InvalidInput)")
      expect((yield* attempt({ expireIn: 4_000_000 })).error).toContain("Error(Auth, InvalidInput)")
      const wrongAmount = yield* attempt({
        change: (entry) => {
          const wire = entry.toXdrObject() as any
          const credentials = wire.credentials.addressV2 ?? wire.credentials.address
          credentials.signature.vec[0].map[1].val.bytes[0] ^= 1
          return (entry.constructor as any).fromXdrObject(wire)
        }
      })
      expect(wrongAmount.error).toContain("Error(Auth, InvalidAction)")
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("funds accounts by the friendbot and reads network information", () =>
    Effect.gen(function* () {
      const { server } = yield* setup
      const funded = yield* Effect.promise(() => server.fundAddress(buyer.publicKey()))
      expect(funded.status).toBe("SUCCESS")
      const created = yield* Effect.promise(() => server.requestAirdrop(seller.publicKey()))
      expect(created.accountId()).toBe(seller.publicKey())
      expect((yield* Effect.promise(() => server.getHealth())).status).toBe("healthy")
      expect((yield* Effect.promise(() => server.getNetwork())).passphrase).toBe(passphrase)
      const latest = yield* Effect.promise(() => server.getLatestLedger())
      expect(latest.headerXdr.ledgerSeq).toBe(latest.sequence)
      expect(latest.sequence).toBe(1_002)
      const ledgers = yield* Effect.promise(() => server.getLedgers({ startLedger: 1_000, pagination: { limit: 10 } }))
      expect(ledgers.ledgers.map(({ sequence }) => sequence)).toEqual([1_000, 1_001, 1_002])
      const transactions = yield* Effect.promise(() => server.getTransactions({ startLedger: 1_000 }))
      expect(transactions.transactions).toHaveLength(2)
      const events = yield* Effect.promise(() => server.getEvents({ startLedger: 1_000, filters: [] }))
      expect(events.events.length).toBeGreaterThan(1)
      expect((yield* Effect.promise(() => server.getFeeStats())).latestLedger).toBe(latest.sequence)
      expect((yield* Effect.promise(() => server.getVersionInfo())).protocolVersion).toBe(27)
    }).pipe(Effect.scoped, Effect.provide(layer))
  )
})
