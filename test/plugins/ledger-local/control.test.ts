// Controls that network nodes lack: reverting to a snapshot, a fixed clock, reproducible ledgers, dumping the state.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Asset, Contract, Operation, xdr } from "@stellar/stellar-sdk"
import { handle } from "../../../plugins/ledger-local/httpApi.ts"
import { LocalLedger, type LocalLedgerOptions } from "../../../plugins/ledger-local/LocalLedger.ts"
import { testnet } from "../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { type ChosenSettings, choiceProblem, withChoices } from "../../../plugins/ledger-local/node/chosenSettings.ts"
import { SNAPSHOTS_MAX } from "../../../plugins/ledger-local/node/Snapshots.ts"
import { layer as nodeCrypto } from "../../../runtime/platform/nodeCrypto.ts"
import { account, apply, fund, keypair, ledgerLayer, passphrase, send, transaction } from "./support.ts"

const platform = Layer.mergeAll(nodeCrypto, NodeFileSystem.layer, NodePath.layer)
const open = (folder: string, options: LocalLedgerOptions = {}) => Effect.provide(LocalLedger.layer(options, folder))

const ask = Effect.fnUntraced(function* (method: string, path: string) {
  const ledger = yield* LocalLedger
  const response = yield* handle(ledger, new Request(`http://localhost${path}`, { method }))
  const text = yield* Effect.promise(() => response.text())
  return { status: response.status, text, body: text === "" || text.includes("\n") ? undefined : JSON.parse(text) }
})

const dump = Effect.map(ask("GET", "/dump"), ({ text }) => text)

const pay = Effect.fnUntraced(function* (amount: string) {
  const payment = Operation.payment({ destination: keypair("payee").publicKey(), asset: Asset.native(), amount })
  return yield* apply(yield* transaction(keypair("payer"), [payment]))
})

/** Simulates a transfer, which recommends resources and records a nonce. */
const simulated = Effect.fnUntraced(function* () {
  const ledger = yield* LocalLedger
  const native = new Contract(Asset.native().contractId(passphrase))
  const [from, to] = [keypair("payer").publicKey(), keypair("payee").publicKey()].map((address) =>
    xdr.ScVal.scvAddress(xdr.ScAddress.fromJson(address))
  )
  const call = native.call("transfer", from!, to!, xdr.ScVal.fromJson({ i128: "5" }))
  const draft = yield* transaction(keypair("other"), [call], { signers: [] })
  return yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
})

describe("a snapshot", () => {
  it.effect("revert restores a snapshot's state, history, clock and sequence, repeatedly", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      for (const name of ["payer", "payee"]) yield* fund(name)
      const before = yield* dump
      const { body, status } = yield* ask("POST", "/snapshot")
      expect({ status, body }).toEqual({ status: 201, body: { id: "1", ledger: 1_002 } })
      const hashes: Array<string> = []
      for (const amount of ["5", "7"]) {
        const paid = yield* pay(amount)
        expect(paid.status).toBe("SUCCESS")
        const { raw } = paid
        yield* ledger.advanceSeconds(86_400)
        expect(yield* dump).not.toBe(before)
        expect(yield* ask("POST", "/revert?id=1")).toMatchObject({ status: 200, body: { ledger: 1_002 } })
        expect(yield* dump).toBe(before)
        hashes.push(raw.txHash)
      }
      // The next ledger follows the restored ledger, with its time.
      const { hash } = ledger.ledger.latest
      yield* ledger.close
      expect(ledger.ledger.latest.previousHash).toEqual(hash)
      expect(ledger.ledger.latest.closeTime).toBeLessThan(86_400n)
      yield* ledger.closeMany(5)
      for (const hash of hashes) expect((yield* ledger.call("getTransaction", { hash })).status).toBe("NOT_FOUND")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("revert drops queued transactions, which may be sent again", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      for (const name of ["payer", "payee"]) yield* fund(name)
      const payment = Operation.payment({
        destination: keypair("payee").publicKey(),
        asset: Asset.native(),
        amount: "1"
      })
      const tx = yield* transaction(keypair("payer"), [payment])
      yield* ask("POST", "/snapshot")
      expect((yield* send(tx)).status).toBe("PENDING")
      yield* ask("POST", "/revert?id=1")
      expect(ledger.ledger.queue.size).toBe(0)
      expect((yield* send(tx)).status).toBe("PENDING")
      yield* ledger.close
      expect((yield* account(keypair("payee").publicKey()))!.balance).toBe(100_010_000_000n)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("snapshots are bounded, can be dropped, and must exist to revert", () =>
    Effect.gen(function* () {
      for (let i = 0; i < SNAPSHOTS_MAX; i++) expect((yield* ask("POST", "/snapshot")).status).toBe(201)
      expect((yield* ask("POST", "/snapshot")).status).toBe(409)
      expect((yield* ask("DELETE", "/snapshot?id=7")).status).toBe(204)
      expect((yield* ask("DELETE", "/snapshot?id=7")).status).toBe(404)
      expect((yield* ask("POST", "/snapshot")).body).toMatchObject({ id: String(SNAPSHOTS_MAX + 1) })
      for (const path of ["/revert?id=7", "/revert?id=x"]) expect((yield* ask("POST", path)).status).toBe(404)
      for (const [method, path] of [
        ["GET", "/snapshot"],
        ["GET", "/revert?id=1"],
        ["POST", "/dump"]
      ] as const)
        expect((yield* ask(method, path)).status, path).toBe(405)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.live("the next process opens the reverted state", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const reverted = yield* Effect.gen(function* () {
        const ledger = yield* LocalLedger
        yield* fund("payer")
        yield* ask("POST", "/snapshot")
        yield* fund("payee")
        yield* ledger.closeMany(5)
        yield* ask("POST", "/revert?id=1")
        yield* ledger.close
        return { dump: yield* dump, sequence: ledger.ledger.latest.sequence }
      }).pipe(open(folder))
      expect(reverted.sequence).toBe(1_002)
      expect(yield* dump.pipe(open(folder))).toBe(reverted.dump)
    }).pipe(Effect.scoped, Effect.provide(platform))
  )
})

describe("a dump", () => {
  it.effect("a dump lists entries as getLedgerEntries does, in key order", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* fund("payer", 5n)
      const [head, ...lines] = (yield* dump)
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      expect(head).toMatchObject({ ledger: 1_001, passphrase, entries: lines.length })
      expect(lines.map(({ key }) => key)).toEqual(lines.map(({ key }) => key).sort())
      const { entries } = yield* ledger.call("getLedgerEntries", { keys: lines.map(({ key }) => key) })
      expect(lines).toEqual(entries)
      expect(lines.filter(({ liveUntilLedgerSeq }) => liveUntilLedgerSeq !== undefined)).toHaveLength(2)
    }).pipe(Effect.provide(ledgerLayer()))
  )
})

describe("a ledger with a seed and a time of its own", () => {
  const repeatable: LocalLedgerOptions = { seed: "one", startTime: 1_767_225_600n }
  const run = (options: LocalLedgerOptions) =>
    Effect.runPromise(
      Effect.gen(function* () {
        const ledger = yield* LocalLedger
        for (const name of ["payer", "payee", "other"]) yield* fund(name)
        yield* pay("3")
        const nonces = [yield* simulated(), yield* simulated()]
        return { dump: yield* dump, nonces, hash: ledger.ledger.latest.hash, last: ledger.ledger.latest.closeTime }
      }).pipe(Effect.provide(ledgerLayer(options)))
    )

  it("a seed reproduces every hash and nonce; another seed does not", async () => {
    const first = await run(repeatable)
    expect(await run(repeatable)).toEqual(first)
    expect(first.nonces[0]).not.toEqual(first.nonces[1])
    expect(first.last).toBe(1_767_225_600n + 4n)
    const other = await run({ ...repeatable, seed: "two" })
    expect(other.dump).toBe(first.dump)
    expect(other.nonces).not.toEqual(first.nonces)
  })

  it.effect("a fixed clock closes one second apart and can be set ahead", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* ledger.closeMany(100)
      expect(ledger.ledger.latest.closeTime).toBe(1_767_225_700n)
      yield* ledger.advanceSeconds(50)
      expect(ledger.ledger.latest.closeTime).toBe(1_767_225_750n)
      yield* ledger.close
      expect(ledger.ledger.latest.closeTime).toBe(1_767_225_751n)
    }).pipe(Effect.provide(ledgerLayer(repeatable)))
  )

  const timesOf = (closes: number) =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* ledger.closeMany(closes)
      return [...ledger.ledger.history.from(0)].map(({ closeTime }) => Number(closeTime))
    })
  const counted = (first: number, last: number): ReadonlyArray<number> =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i)

  it.effect("close times are unique up to a bound ahead of the clock", () =>
    Effect.gen(function* () {
      const byHand = yield* timesOf(23).pipe(Effect.provide(ledgerLayer()))
      expect(byHand).toEqual([...counted(0, 20), 20, 20, 20])
      const byClock = yield* timesOf(8).pipe(Effect.provide(ledgerLayer({ close: 1_000 })))
      expect(byClock).toEqual([...counted(0, 5), 5, 5, 5])
      expect(yield* timesOf(3).pipe(Effect.provide(ledgerLayer({ close: 999 })))).toEqual([0, 0, 0, 0])
      const strict = ledgerLayer({ close: 999, strictCloseTimes: true })
      expect(yield* timesOf(50).pipe(Effect.provide(strict))).toEqual(counted(0, 50))
    })
  )

  it.effect("skips every second empty ledger while close times are ahead", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [buyer] = [yield* fund("buyer"), yield* fund("seller"), yield* fund("agent")]
      const ahead = ledger.ledger.latest
      expect(ahead.closeTime).toBe(3n)
      yield* TestClock.adjust("2 seconds")
      yield* ledger.closeDue
      expect(ledger.ledger.latest).toBe(ahead)
      yield* ledger.closeDue
      expect([ledger.ledger.latest.closeTime, ledger.ledger.latest.transactions.length]).toEqual([4n, 0])
      const data = Operation.manageData({ name: "a", value: "b" })
      const sent = yield* transaction(buyer, [data])
      yield* ledger.call("sendTransaction", { transaction: sent.toEnvelope().toXdr("base64") })
      yield* ledger.closeDue
      expect([ledger.ledger.latest.closeTime, ledger.ledger.latest.transactions.length]).toEqual([5n, 1])
      yield* TestClock.adjust("4 seconds")
      for (const _ of [1, 2]) yield* ledger.closeDue
      expect([ledger.ledger.latest.closeTime, ledger.ledger.latest.sequence]).toEqual([7n, ahead.sequence + 4])
    }).pipe(Effect.provide(ledgerLayer({ close: 1_000 })))
  )

  it.effect("keeps closing ledgers when the machine's clock is set back", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* TestClock.adjust("1 hour")
      yield* ledger.close
      yield* TestClock.setTime(0)
      const before = ledger.ledger.latest
      yield* ledger.closeDue
      expect(ledger.ledger.latest.sequence).toBe(before.sequence + 1)
      expect(ledger.ledger.latest.closeTime).toBe(before.closeTime)
    }).pipe(Effect.provide(ledgerLayer({ close: 1_000 })))
  )
})

describe("chosen settings", () => {
  const chosen = (choice: ChosenSettings) => {
    expect(choiceProblem(choice)).toBeUndefined()
    return withChoices(testnet, choice)
  }

  it("refuses settings that no network has", () => {
    expect(choiceProblem({ protocol: 22 })).toBe("the protocol is 23 to 28")
    expect(choiceProblem({ protocol: 28 })).toBeUndefined()
    expect(choiceProblem({ protocol: 29 })).toBe("the protocol is 23 to 28")
    expect(choiceProblem({ limits: "none" })).toBe("the limits are testnet or unlimited")
    for (const minTtlLedgers of [0, 3_110_401])
      expect(choiceProblem({ minTtlLedgers })).toBe("the least life of an entry is 1 to 3110400 ledgers")
  })

  const deployed = Effect.gen(function* () {
    const ledger = yield* LocalLedger
    const owner = yield* fund("owner")
    const operation = Operation.createStellarAssetContract({ asset: new Asset("OWN", owner.publicKey()) })
    const draft = yield* transaction(owner, [operation], { signers: [] })
    const { minResourceFee, transactionData } = yield* ledger.call("simulateTransaction", {
      transaction: draft.toEnvelope().toXdr("base64")
    })
    const { meta, status } = yield* apply(
      yield* transaction(owner, [operation], {
        fee: (BigInt(minResourceFee) + 100n).toString(),
        configure: (builder) => builder.setSorobanData(transactionData).setTimeout(0)
      })
    )
    expect([status, meta === undefined]).toEqual(["SUCCESS", false])
    const lines = (yield* dump)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    const ends = lines.flatMap(({ liveUntilLedgerSeq }) =>
      liveUntilLedgerSeq === undefined ? [] : [liveUntilLedgerSeq]
    )
    return Math.min(...ends) - ledger.ledger.latest.sequence
  })

  it.effect("chosen settings cap contract entry lifetimes and are visible in the RPC", () =>
    Effect.gen(function* () {
      const settings = chosen({ minTtlLedgers: 16, protocol: 25 })
      expect(yield* deployed.pipe(Effect.provide(ledgerLayer({ settings })))).toBe(15)
      expect(yield* deployed.pipe(Effect.provide(ledgerLayer()))).toBe(120_959)
      const network = yield* Effect.flatMap(LocalLedger, (ledger) => ledger.call("getNetwork")).pipe(
        Effect.provide(ledgerLayer({ settings }))
      )
      expect(network.protocolVersion).toBe(25)
    })
  )

  it.effect("without limits, accepts a contract too large for the test network", () =>
    Effect.gen(function* () {
      // A valid module above 128 KiB that consists of a single large passive section with its own name.
      const name = new TextEncoder().encode("large")
      const filling = 140_000
      const content = Uint8Array.from([name.length, ...name, ...new Uint8Array(filling)])
      const leb = (value: number): ReadonlyArray<number> =>
        value < 128 ? [value] : [(value & 127) | 128, ...leb(value >> 7)]
      const meta = [0, 0, 0, 0, 0, 0, 0, 22, 0, 0, 0, 0]
      const metaName = new TextEncoder().encode("contractenvmetav0")
      const section = [metaName.length, ...metaName, ...meta]
      const wasm = Uint8Array.from([
        ...[0, 97, 115, 109, 1, 0, 0, 0],
        ...[0, ...leb(section.length), ...section],
        ...[0, ...leb(content.length), ...content]
      ])
      const upload = Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const owner = yield* fund("owner")
        const draft = yield* transaction(owner, [Operation.uploadContractWasm({ wasm })], { signers: [] })
        const answer = yield* ledger.call("simulateTransaction", { transaction: draft.toEnvelope().toXdr("base64") })
        return answer.error as string | undefined
      })
      expect(yield* upload.pipe(Effect.provide(ledgerLayer()))).toContain("Budget")
      const settings = chosen({ limits: "unlimited" })
      expect(yield* upload.pipe(Effect.provide(ledgerLayer({ settings })))).toBeUndefined()
    })
  )
})
