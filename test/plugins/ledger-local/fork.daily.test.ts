// A fork of another ledger, which is a second embedded ledger behind a real socket. The fork reads the expected entries
// at the expected times, writes nothing there, and never treats an unfetched entry as absent.
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, type Scope } from "effect"
import { Address, Asset, Contract, Keypair, Operation, xdr } from "@stellar/stellar-sdk"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { HttpCalls } from "../../../kernel/platform/HttpCalls.ts"
import { Listeners } from "../../../kernel/platform/Listeners.ts"
import { testnet } from "../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { BODY_BYTES_MAX, handle } from "../../../plugins/ledger-local/httpApi.ts"
import { withChoices } from "../../../plugins/ledger-local/node/chosenSettings.ts"
import { LocalLedger, type LocalLedgerOptions } from "../../../plugins/ledger-local/LocalLedger.ts"
import { USDC_CONTRACT } from "../../../plugins/ledger-local/node/accounts.ts"
import type { Faults, RpcFault } from "../../../plugins/ledger-local/node/Faults.ts"
import { Upstream } from "../../../plugins/ledger-local/node/fork/Upstream.ts"
import { standalone } from "../../../plugins/ledger-local/standalone.ts"
import { contractId, outcome, submit } from "./contracts.ts"
import { contract, VOID_BODY } from "./engine/wasm/assemble.ts"
import { platform } from "./platform.ts"
import { account, apply, fund, keypair, send, transaction, usdcAsset } from "./support.ts"

type Platform = Layer.Success<typeof platform>

const open = <E>(layer: Layer.Layer<LocalLedger, E, Platform>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, LocalLedger))

interface UpstreamLedger {
  readonly upstream: LocalLedger["Service"]
  readonly url: string
  /** Keys that the upstream was asked for, in the order of asking. */
  readonly asked: Array<string>
}

/** A ledger behind a socket. */
const network = Effect.fnUntraced(function* (options: LocalLedgerOptions = {}) {
  const upstream = yield* open(LocalLedger.layerTest(options))
  const listeners = yield* Listeners
  const asked: Array<string> = []
  const { port } = yield* listeners.open({ host: "127.0.0.1", port: 0, bodyBytesMax: BODY_BYTES_MAX }, (request) =>
    Effect.gen(function* () {
      const copy = request.clone()
      const { method, params } = JSON.parse(yield* Effect.promise(() => copy.text()))
      if (method === "getLedgerEntries") asked.push(...params.keys)
      return yield* handle(upstream, request)
    })
  )
  const known: UpstreamLedger = { upstream, url: `http://127.0.0.1:${port}`, asked }
  return known
})

const forkOf = ({ url }: UpstreamLedger, options: LocalLedgerOptions = {}, folder?: string) =>
  open(LocalLedger.layerFork(options, folder).pipe(Layer.provide(Upstream.layer(url))))

/** Runs an effect with one of the ledgers, for helpers that expect a single ledger. */
const on = <A, E, R>(ledger: LocalLedger["Service"], run: Effect.Effect<A, E, R>) =>
  Effect.provideService(run, LocalLedger, ledger)

type Run = Effect.Effect<void, unknown, Crypto | FileSystem.FileSystem | HttpCalls | Listeners | Scope.Scope | Platform>
const test = (name: string, run: Run) => it.live(name, () => run.pipe(Effect.scoped, Effect.provide(platform)))

const paymentTo = (to: Keypair, amount: string) =>
  Operation.payment({ destination: to.publicKey(), asset: Asset.native(), amount })

const pay = Effect.fnUntraced(function* (from: Keypair, to: Keypair, amount: string) {
  return yield* apply(yield* transaction(from, [paymentTo(to, amount)]))
})

const balanceOf = (key: Keypair) => Effect.map(account(key.publicKey()), (found) => found?.balance)

const request = (method: string, params: unknown) => ({ jsonrpc: "2.0", id: 1, method, params })

const accountKey = (key: Keypair): string =>
  xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: key.xdrAccountId() })).toXdr("base64")

/** Injects a fault into every request for entries. */
const entries = (fault: RpcFault): ReadonlyArray<Partial<Faults>> => [
  { onRpc: (method) => (method === "getLedgerEntries" ? fault : undefined) }
]

const simulation = Effect.fnUntraced(function* (from: Keypair, to: Keypair) {
  const usdc = new Contract(USDC_CONTRACT)
  const [sender, receiver] = [from, to].map((key) => xdr.ScVal.scvAddress(xdr.ScAddress.fromJson(key.publicKey())))
  const call = usdc.call("transfer", sender!, receiver!, xdr.ScVal.fromJson({ i128: "5" }))
  const draft = yield* transaction(keypair("not created yet"), [call], { signers: [], sequence: 1n })
  return request("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
})

describe("a fork", () => {
  test(
    "follows the upstream's latest ledger, with its passphrase and its settings",
    Effect.gen(function* () {
      const passphrase = "A network of its own ; 2026"
      const ttl = { ...testnet.ttl, minPersistentLedgers: 77 }
      const known = yield* network({ passphrase, settings: { ...testnet, ttl, baseFeeStroops: 321n } })
      const { upstream } = known
      yield* upstream.closeMany(5)
      const fork = yield* forkOf(known)
      expect(fork.passphrase).toBe(passphrase)
      const { latest, options } = fork.ledger
      expect(latest.sequence).toBe(1_006)
      expect(latest.previousHash).toEqual(upstream.ledger.latest.hash)
      expect(latest.closeTime).toBeGreaterThan(upstream.ledger.latest.closeTime - 1n)
      expect(options.settings).toEqual(upstream.ledger.options.settings)
      expect((yield* forkOf(known, { chosen: { minTtlLedgers: 12 } })).ledger.options.settings.ttl).toEqual({
        ...ttl,
        minPersistentLedgers: 12,
        minTemporaryLedgers: 12
      })
    })
  )

  test(
    "a fork has the upstream's accounts and keeps changes local",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      const [payer, payee] = [yield* on(upstream, fund("payer", 50n)), yield* on(upstream, fund("payee"))]
      const before = upstream.ledger.latest.sequence
      const fork = yield* forkOf(known)
      const paid = yield* on(fork, pay(payer, payee, "5"))
      expect(paid.status).toBe("SUCCESS")
      expect(yield* on(fork, balanceOf(payee))).toBe(10_005_0000000n)
      expect(yield* on(upstream, balanceOf(payee))).toBe(10_000_0000000n)
      expect(upstream.ledger.latest.sequence).toBe(before)
      // A snapshot of the fork contains the fork's own changes, but not entries fetched later.
      const id = yield* fork.snapshot
      yield* on(fork, pay(payer, payee, "6"))
      yield* fork.revert(id!)
      expect(yield* on(fork, balanceOf(payee))).toBe(10_005_0000000n)
    })
  )

  test(
    "a fork fetches each entry once, absent ones included, and keeps that state",
    Effect.gen(function* () {
      const known = yield* network()
      const { asked, upstream } = known
      const [payer, payee] = [yield* on(upstream, fund("payer")), yield* on(upstream, fund("payee"))]
      const fork = yield* forkOf(known)
      const stranger = keypair("stranger")
      for (let i = 0; i < 3; i++) {
        expect(yield* on(fork, balanceOf(payee))).toBe(10_000_0000000n)
        expect(yield* on(fork, balanceOf(stranger))).toBeUndefined()
        yield* on(upstream, pay(payer, payee, "1"))
        yield* on(upstream, fund("stranger"))
      }
      for (const key of [payee, stranger]) expect(asked.filter((one) => one === accountKey(key))).toHaveLength(1)
    })
  )

  test(
    "a fork fetches many keys in one request",
    Effect.gen(function* () {
      const known = yield* network()
      const keys = Array.from({ length: 200 }, (_, i) => keypair(`of many ${i}`))
      yield* on(known.upstream, fund("of many 7"))
      const fork = yield* forkOf(known)
      const before = known.asked.length
      let questions = 0
      yield* known.upstream.setFaults([
        { onRpc: (method) => void (questions += Number(method === "getLedgerEntries")) }
      ])
      const { entries } = yield* fork.call("getLedgerEntries", { keys: keys.map(accountKey) })
      expect(entries.map(({ key }: { key: string }) => key)).toEqual([accountKey(keys[7]!)])
      expect([known.asked.length - before, questions]).toEqual([200, 1])
    })
  )

  test(
    "a fork runs the upstream's wasm and asset contracts",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      const owner = yield* on(upstream, fund("owner"))
      const wasm = contract({ body: VOID_BODY })
      for (const step of ["upload", "create"] as const) {
        const { hash } = yield* on(upstream, submit(owner, wasm, step))
        yield* upstream.close
        expect((yield* on(upstream, outcome(hash))).status).toBe("SUCCESS")
      }
      const [from, to] = [yield* on(upstream, fund("from", 9n)), yield* on(upstream, fund("to", 0n))]
      const fork = yield* forkOf(known)
      const called = yield* on(fork, submit(owner, wasm, "call"))
      yield* fork.close
      expect((yield* on(fork, outcome(called.hash))).status).toBe("SUCCESS")
      const { result } = yield* fork.rpc(yield* on(fork, simulation(from, to)))
      expect(result).toMatchObject({ latestLedger: fork.ledger.latest.sequence })
      expect((result as any).error).toBeUndefined()
      expect((result as any).results).toHaveLength(1)
      // The classic side of the same balances.
      const operation = Operation.payment({ destination: to.publicKey(), asset: usdcAsset, amount: "0.0000004" })
      expect((yield* on(fork, apply(yield* on(fork, transaction(from, [operation]))))).status).toBe("SUCCESS")
    })
  )

  test(
    "a fork sees archived entries as archived, with or without their last ledger",
    Effect.gen(function* () {
      const known = yield* network({ settings: withChoices(testnet, { minTtlLedgers: 16 }) })
      const { upstream } = known
      const owner = yield* on(upstream, fund("owner"))
      for (const step of ["upload", "create"] as const) {
        yield* on(upstream, submit(owner, contract({ body: VOID_BODY }), step))
        yield* upstream.close
      }
      const id = Address.contract(Buffer.from(yield* on(upstream, contractId(owner))))
      yield* upstream.closeMany(40)
      const untold = (result: unknown) => ({
        ...(result as object),
        entries: (result as any).entries.map(({ liveUntilLedgerSeq: _, ...entry }: any) => entry)
      })
      const nulled = (result: unknown) => ({
        ...(result as object),
        entries: (result as any).entries.map((entry: any) => ({ ...entry, liveUntilLedgerSeq: null }))
      })
      for (const change of [(result: unknown) => result, untold, nulled]) {
        yield* upstream.setFaults(entries({ kind: "wrong", change }))
        const fork = yield* forkOf(known)
        const call = new Contract(id.toString()).call("run")
        const draft = yield* on(fork, transaction(owner, [call], { signers: [] }))
        const simulated = yield* fork.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
        expect(simulated.restorePreamble?.transactionData).toBeTypeOf("string")
        const called = yield* on(fork, submit(owner, contract({ body: VOID_BODY }), "call"))
        yield* fork.close
        expect((yield* on(fork, outcome(called.hash))).inner).toBe("invokeHostFunctionEntryArchived")
      }
    })
  )

  test(
    "a fork dates later upstream changes before its beginning",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      const [payer, payee] = [yield* on(upstream, fund("payer")), yield* on(upstream, fund("payee"))]
      const fork = yield* forkOf(known)
      yield* upstream.advanceSeconds(86_400)
      yield* upstream.closeMany(100)
      expect((yield* on(upstream, pay(payer, payee, "1"))).status).toBe("SUCCESS")
      const paid = yield* on(fork, pay(payer, payee, "2"))
      expect([paid.status, paid.code]).toEqual(["SUCCESS", "txSuccess"])
    })
  )

  test(
    "a fork has its own friendbot, with USDC if the issuer exists",
    Effect.gen(function* () {
      const known = yield* network()
      const empty = (result: unknown) => ({ ...(result as object), entries: [] })
      yield* known.upstream.setFaults(entries({ kind: "wrong", change: empty }))
      const bare = yield* forkOf(known)
      expect(yield* bare.fund(keypair("a").publicKey())).toBeDefined()
      expect(yield* bare.fund(keypair("a").publicKey(), { usdcUnits: 5n })).toBeUndefined()
      // Accounts to begin with exist as well.
      const seeded = yield* standalone({ port: 0, close: "manual", fork: known.url, seedAccounts: true })
      const keys = seeded.accounts.map(({ address }) => accountKey(Keypair.fromPublicKey(address)))
      const asking = { method: "POST", body: JSON.stringify(request("getLedgerEntries", { keys })) }
      const there = yield* Effect.promise(async () => (await fetch(seeded.url, asking)).json() as Promise<any>)
      expect(there.result.entries).toHaveLength(4)
      yield* known.upstream.setFaults([])
      const whole = yield* forkOf(known)
      expect(yield* whole.fund(keypair("a").publicKey(), { usdcUnits: 5n })).toBeDefined()
    })
  )

  test(
    "a fork does not execute operations that need the upstream's order book",
    Effect.gen(function* () {
      const known = yield* network()
      const seller = yield* on(known.upstream, fund("seller", 50n))
      const fork = yield* forkOf(known)
      const offer = Operation.manageSellOffer({
        selling: usdcAsset,
        buying: Asset.native(),
        amount: "0.000001",
        price: "1"
      })
      const ended = yield* on(fork, apply(yield* on(fork, transaction(seller, [offer]))))
      expect([ended.status, ended.code]).toEqual(["FAILED", "txInternalError"])
    })
  )
})

describe("an unavailable upstream", () => {
  const garbage = (result: unknown) => ({
    ...(result as object),
    entries: [{ key: "AAAA", xdr: "AAAA", lastModifiedLedgerSeq: 1 }]
  })
  const behind = (result: unknown) => ({ entries: [], latestLedger: (result as any).latestLedger - 500 })
  const failures: ReadonlyArray<readonly [RpcFault, RegExp]> = [
    [{ kind: "status", status: 500 }, /HTTP 500/],
    [{ kind: "status", status: 200 }, /not JSON/],
    [{ kind: "error", code: -32_603, message: "no database" }, /error -32603: no database/],
    [{ kind: "wrong", change: garbage }, /cannot be read/],
    [{ kind: "wrong", change: () => "nothing" }, /not of the form/],
    [{ kind: "wrong", change: behind }, /it is at ledger 5\d\d, and the fork began from ledger 100\d/]
  ]

  test(
    "every method reports a failed upstream as an error, never as an absent entry",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      const [payer, payee] = [yield* on(upstream, fund("payer", 9n)), yield* on(upstream, fund("payee", 0n))]
      const tx = yield* on(upstream, transaction(payer, [paymentTo(payee, "1")]))
      const simulated = yield* on(upstream, simulation(payer, payee))
      const fork = yield* forkOf(known)
      for (const [failure, words] of failures) {
        yield* upstream.setFaults(entries(failure))
        for (const asking of [
          request("getLedgerEntries", { keys: [accountKey(payer)] }),
          request("sendTransaction", { transaction: tx.toEnvelope().toXdr("base64") }),
          simulated
        ]) {
          const { error, result } = yield* fork.rpc(asking)
          expect(result).toBeUndefined()
          expect(error).toMatchObject({ code: -32_603 })
          expect(error!.message).toMatch(/^the forked network's RPC could not be asked: /)
          expect(error!.message).toMatch(words)
        }
        const friendbot = new Request(`http://localhost/friendbot?addr=${payee.publicKey()}`)
        const answer = yield* handle(fork, friendbot)
        expect(answer.status).toBe(502)
        expect((yield* Effect.promise(() => answer.json() as Promise<any>)).detail).toMatch(words)
      }
      // The failures were not cached.
      yield* upstream.setFaults([])
      expect((yield* on(fork, apply(tx))).status).toBe("SUCCESS")
      expect((yield* fork.rpc(simulated)).result).toMatchObject({ results: [{}] })
    })
  )

  /** Injects a fault into the first `times` requests for entries, and counts all of them. */
  const atFirst = (times: number, fault: RpcFault) => {
    const met = { questions: 0 }
    const onRpc: Faults["onRpc"] = (method) =>
      method === "getLedgerEntries" && ++met.questions <= times ? fault : undefined
    return { met, faults: [{ onRpc }] }
  }

  test(
    "retries a rate-limited upstream at most three times",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      const payer = yield* on(upstream, fund("payer"))
      const fork = yield* forkOf(known)
      const passing = atFirst(2, { kind: "status", status: 429 })
      yield* upstream.setFaults(passing.faults)
      expect(yield* on(fork, balanceOf(payer))).toBe(10_000_0000000n)
      expect(passing.met.questions).toBe(3)
      const lasting = atFirst(Infinity, { kind: "status", status: 429 })
      yield* upstream.setFaults(lasting.faults)
      const { error } = yield* fork.rpc(request("getLedgerEntries", { keys: [accountKey(keypair("payee"))] }))
      expect(error!.message).toMatch(/HTTP 429/)
      expect(lasting.met.questions).toBe(4)
    })
  )

  test(
    "polls an upstream node that lags a ledger behind the fork's beginning",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      yield* upstream.closeMany(3)
      const late = atFirst(2, { kind: "stale", ledgers: 1 })
      yield* upstream.setFaults(late.faults)
      // The first request is for the settings, on any ledger; the second for the first entries.
      const fork = yield* forkOf(known)
      expect(fork.ledger.latest.sequence).toBe(1_004)
      expect(late.met.questions).toBe(3)
    })
  )

  test(
    "ledgers close without the upstream; transactions that need it stay queued",
    Effect.gen(function* () {
      const known = yield* network()
      const { upstream } = known
      const [one, two, far] = [
        yield* on(upstream, fund("one")),
        yield* on(upstream, fund("two")),
        yield* on(upstream, fund("far away"))
      ]
      const fork = yield* forkOf(known)
      for (const key of [one, two]) yield* on(fork, balanceOf(key))
      const near = yield* on(fork, send(yield* on(fork, transaction(one, [paymentTo(two, "1")]))))
      const needy = yield* on(fork, send(yield* on(fork, transaction(two, [paymentTo(far, "1")]))))
      yield* upstream.setFaults(entries({ kind: "status", status: 500 }))
      const before = fork.ledger.latest.sequence
      expect(yield* fork.close).toBe(before + 1)
      expect((yield* on(fork, outcome(near.hash))).status).toBe("SUCCESS")
      expect((yield* on(fork, outcome(needy.hash))).status).toBe("NOT_FOUND")
      expect(fork.ledger.queue.size).toBe(1)
      yield* upstream.setFaults([])
      yield* fork.close
      expect((yield* on(fork, outcome(needy.hash))).status).toBe("SUCCESS")
      expect(yield* on(fork, balanceOf(far))).toBe(10_001_0000000n)
    })
  )

  test(
    "refuses to start on an unreachable upstream or an unknown protocol",
    Effect.gen(function* () {
      const known = yield* network()
      const started = Effect.flip(forkOf(known))
      yield* known.upstream.setFaults([{ onRpc: () => ({ kind: "status", status: 403 }) }])
      expect(yield* started).toMatchObject({ _tag: "UpstreamFailed", message: expect.stringContaining("HTTP 403") })
      const unreachable = { ...known, url: "http://127.0.0.1:9" }
      expect(yield* Effect.flip(forkOf(unreachable))).toMatchObject({ message: expect.stringContaining("not reached") })
      const later = (result: any) => {
        const header = Buffer.from(result.headerXdr, "base64")
        header.writeUInt32BE(29, 0)
        return { ...result, headerXdr: header.toString("base64") }
      }
      yield* known.upstream.setFaults([
        { onRpc: (method) => (method === "getLatestLedger" ? { kind: "wrong", change: later } : undefined) }
      ])
      const refused = yield* started
      expect(refused).toMatchObject({ _tag: "ForkRefused", message: expect.stringContaining("runs protocol 29") })
      expect((yield* forkOf(known, { chosen: { protocol: 26 } })).ledger.options.settings.protocolVersion).toBe(26)
    })
  )
})

describe("a fork in a folder", () => {
  test(
    "a fork in a folder continues offline with what it fetched and closed",
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const known = yield* network()
      const { upstream } = known
      const [payer, payee] = [yield* on(upstream, fund("payer")), yield* on(upstream, fund("payee"))]
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const fork = yield* forkOf(known, { journalLinesMax: 2 }, folder)
          yield* on(fork, pay(payer, payee, "5"))
          const merge = Operation.accountMerge({ destination: payee.publicKey() })
          expect((yield* on(fork, apply(yield* on(fork, transaction(payer, [merge]))))).status).toBe("SUCCESS")
          yield* fork.closeMany(3)
          return { latest: fork.ledger.latest, balance: yield* on(fork, balanceOf(payee)) }
        })
      )
      // A line that was being written when the process died.
      yield* files.writeFileString(`${folder}/fork.jsonl`, '{"key":"AAAA', { flag: "a" })
      yield* upstream.setFaults([{ onRpc: () => ({ kind: "status", status: 503 }) }])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const again = yield* forkOf(known, {}, folder)
          expect(again.ledger.latest.hash).toEqual(first.latest.hash)
          expect(yield* on(again, balanceOf(payee))).toBe(first.balance)
          // Deleted here, although the upstream still has it.
          expect(yield* on(again, balanceOf(payer))).toBeUndefined()
          yield* upstream.setFaults([])
          yield* on(again, balanceOf(keypair("stranger")))
        })
      )
      const text = yield* files.readFileString(`${folder}/fork.jsonl`)
      for (const line of text.trimEnd().split("\n")) expect(() => JSON.parse(line)).not.toThrow()
    })
  )

  test(
    "a fork's folder opens only as that fork",
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const [forked, own] = [yield* files.makeTempDirectoryScoped(), yield* files.makeTempDirectoryScoped()]
      const known = yield* network()
      yield* Effect.scoped(forkOf(known, {}, forked))
      yield* Effect.scoped(open(LocalLedger.layer({}, own)))
      const asOwn = yield* Effect.exit(Effect.scoped(open(LocalLedger.layer({}, forked))))
      expect(String(asOwn)).toContain("holds a fork: --fork URL continues it")
      const asFork = yield* Effect.flip(Effect.scoped(forkOf(known, {}, own)))
      expect(asFork).toMatchObject({ _tag: "ForkRefused", message: expect.stringContaining("is not a fork") })
    })
  )
})
