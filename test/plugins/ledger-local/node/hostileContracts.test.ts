// A hostile contract, or a defect of the ledger itself, does not harm the ledger: it closes at the next turn, the
// transaction has ended, and all other transactions are applied. Modules are sent in transactions with hand-made
// resources, past the simulation that would have refused them.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Asset, type Keypair, Operation } from "@stellar/stellar-sdk"
import { LocalLedger, type LocalLedgerOptions } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { Deadline, DeadlinePassed, type RunWithin } from "../../../../kernel/platform/Deadline.ts"
import { layer as nodeDeadline } from "../../../../runtime/platform/nodeDeadline.ts"
import { outcome, submit } from "../contracts.ts"
import { contract, hostImport, I64, VOID_BODY } from "../engine/wasm/assemble.ts"
import { account, fund, ledgerLayer, send, transaction } from "../support.ts"

const layerOf = (options: LocalLedgerOptions = {}) => ledgerLayer(options).pipe(Layer.provideMerge(nodeDeadline))

/** Uploads, creates and calls a module; returns the first failed step, or the call's outcome. */
const live = Effect.fnUntraced(function* (name: string, wasm: Uint8Array) {
  const ledger = yield* LocalLedger
  const source = yield* fund(name)
  for (const step of ["upload", "create", "call"] as const) {
    const sent = yield* submit(source, wasm, step)
    expect(sent.status).toBe("PENDING")
    yield* ledger.close
    const end = yield* outcome(sent.hash)
    if (end.status !== "SUCCESS" || step === "call") return { step, ...end }
  }
  throw new Error("there is always an end")
})

/** Another payer's payment is applied in the next ledger, and the node reports itself healthy. */
const othersAreServed = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const payer = yield* fund("another payer")
  const payee = yield* fund("and their shop")
  const before = (yield* account(payee.publicKey()))!.balance
  const payment = Operation.payment({ destination: payee.publicKey(), asset: Asset.native(), amount: "1" })
  const sent = yield* send(yield* transaction(payer, [payment]))
  expect(sent.status).toBe("PENDING")
  const sequence = ledger.ledger.latest.sequence
  expect(yield* ledger.close).toBe(sequence + 1)
  expect((yield* outcome(sent.hash)).status).toBe("SUCCESS")
  expect((yield* account(payee.publicKey()))!.balance - before).toBe(10_000_000n)
  expect((yield* ledger.call("getHealth")).status).toBe("healthy")
})

/** `run` calls itself at the end of a loop that pays nothing, for a metering pass that does not recognize 0x12. */
const hanging = contract({
  body: [0x02, 0x40, 0x12, 0x03, 0x0b, 0x03, 0x40, 0x0c, 0, 0x0b, ...VOID_BODY],
  locals: [1, 1, I64]
})
/** Imports the ledger's sequence as a function with a parameter, which the host then does not get as a word. */
const mistyped = contract({ body: [0x42, 0, 0x10, 0], imports: [hostImport("x", "3", 3)] })
/** Branches over tens of thousands of local variables, which would take the underlying compiler minutes. */
const tangled = contract({
  body: [...Array.from({ length: 15_000 }, () => [0x41, 0, 0x04, 0x40, 0x0b]).flat(), ...VOID_BODY],
  locals: [1, 0xe8, 0xfe, 2, I64]
})
const endless = contract({ body: [0x03, 0x40, 0x0c, 0, 0x0b, ...VOID_BODY] })

/** A platform with a deadline that passes on the test's signal, before the work has begun. */
const clock = { isOver: false }
const stopping: RunWithin = (millis, work) => {
  if (clock.isOver) throw new DeadlinePassed(millis)
  return work()
}

describe("a hostile contract", () => {
  it.effect("refuses a loop hidden behind a disallowed instruction at upload", () =>
    Effect.gen(function* () {
      const end = yield* live("mallory", hanging)
      expect(end).toMatchObject({ step: "upload", code: "txFailed", inner: "invokeHostFunctionTrapped" })
      yield* othersAreServed
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("fails at upload when it imports a host function with other parameters", () =>
    Effect.gen(function* () {
      const end = yield* live("mallory", mistyped)
      expect(end).toMatchObject({ step: "upload", code: "txFailed", inner: "invokeHostFunctionTrapped" })
      yield* othersAreServed
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("refuses code that would keep the compiler busy at upload", () =>
    Effect.gen(function* () {
      const end = yield* live("mallory", tangled)
      expect(end).toMatchObject({ step: "upload", code: "txFailed", inner: "invokeHostFunctionTrapped" })
      yield* othersAreServed
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("a contract that exhausts its budget does not affect other payers", () =>
    Effect.gen(function* () {
      const end = yield* live("mallory", endless)
      expect(end).toMatchObject({ step: "call", code: "txFailed", inner: "invokeHostFunctionResourceLimitExceeded" })
      yield* othersAreServed
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("a contract stopped by the platform does not affect other payers", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const source = yield* fund("mallory")
      for (const step of ["upload", "create"] as const) {
        yield* submit(source, endless, step)
        yield* ledger.close
      }
      clock.isOver = true
      const sent = yield* submit(source, endless, "call")
      yield* ledger.close
      clock.isOver = false
      const end = yield* outcome(sent.hash)
      expect(end).toMatchObject({ code: "txFailed", inner: "invokeHostFunctionResourceLimitExceeded" })
      const { meta } = ledger.ledger.latest.transactions.at(-1)!
      expect(Buffer.from(meta).toString("latin1")).toContain("time limit exceeded")
      yield* othersAreServed
    }).pipe(Effect.provide(ledgerLayer().pipe(Layer.provideMerge(Layer.succeed(Deadline, stopping)))))
  )

  it.effect("limits instructions per ledger and defers the other contracts", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const sources: Array<Keypair> = []
      for (let i = 0; i < 5; i++) sources.push(yield* fund(`mallory ${i}`))
      const wasm = contract({ body: VOID_BODY })
      for (const source of sources) expect((yield* submit(source, wasm, "upload")).status).toBe("PENDING")
      yield* ledger.close
      expect(ledger.ledger.latest.transactions.length).toBe(4)
      yield* ledger.close
      expect(ledger.ledger.latest.transactions.length).toBe(1)
    }).pipe(Effect.provide(layerOf()))
  )
})

describe("a defect of the ledger", () => {
  it.effect("a defect ends its transaction with the fee spent", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const source = yield* fund("unlucky")
      const wasm = contract({ body: VOID_BODY })
      for (const step of ["upload", "create"] as const) {
        yield* submit(source, wasm, step)
        yield* ledger.close
      }
      const before = (yield* account(source.publicKey()))!
      Object.assign(ledger.ledger.options.contracts!, {
        call: () => {
          throw new TypeError("Cannot convert a BigInt value to a number")
        }
      })
      const sent = yield* submit(source, wasm, "call")
      yield* ledger.close
      expect(yield* outcome(sent.hash)).toMatchObject({ status: "FAILED", code: "txInternalError" })
      const after = (yield* account(source.publicKey()))!
      expect(after.seqNum).toBe(before.seqNum + 1n)
      expect(after.balance).toBeLessThan(before.balance)
      yield* othersAreServed
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("a defect in charging or refunding removes the transaction from the queue", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const [unlucky, other] = [yield* fund("unlucky"), yield* fund("other")]
      const payment = Operation.payment({ destination: other.publicKey(), asset: Asset.native(), amount: "1" })
      const first = yield* send(yield* transaction(unlucky, [payment]))
      const second = yield* send(yield* transaction(other, [payment]))
      const [frame] = ledger.ledger.queue.candidates()
      Object.defineProperty(frame, "innerInclusionFeeStroops", {
        get: () => {
          throw new Error("a defect")
        }
      })
      yield* ledger.close
      expect((yield* outcome(first.hash)).status).toBe("NOT_FOUND")
      expect((yield* outcome(second.hash)).status).toBe("SUCCESS")
      expect(ledger.ledger.queue.size).toBe(0)
      expect((yield* send(yield* transaction(unlucky, [payment]))).status).toBe("TRY_AGAIN_LATER")
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("a defect in a simulation is an answer, not an internal error", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const source = yield* fund("curious")
      const tx = yield* transaction(source, [Operation.uploadContractWasm({ wasm: contract({ body: VOID_BODY }) })])
      Object.assign(ledger.ledger.options.contracts!, {
        validate: () => {
          throw new TypeError("a defect")
        }
      })
      const answer = yield* ledger.call("simulateTransaction", { transaction: tx.toEnvelope().toXdr("base64") })
      expect(answer.error).toBe("HostError: Error(Context, InternalError)")
    }).pipe(Effect.provide(layerOf()))
  )
})

describe("getHealth", () => {
  it.effect("getHealth reports an overdue ledger of a clock-driven node", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const late = { ...ledger.ledger.latest, closeTime: ledger.ledger.latest.closeTime - 31n }
      ledger.ledger.history.add({ ...late, sequence: late.sequence + 1 })
      const answer = yield* ledger.rpc({ jsonrpc: "2.0", id: 1, method: "getHealth" })
      expect(answer.error).toEqual({
        code: -32_603,
        message: "latency (31s) since last known ledger closed is too high (>30s)"
      })
    }).pipe(Effect.provide(layerOf({ close: 1_000 })))
  )

  it.effect("getHealth never reports a manually closed ledger as overdue", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const late = { ...ledger.ledger.latest, closeTime: ledger.ledger.latest.closeTime - 1_000n }
      ledger.ledger.history.add({ ...late, sequence: late.sequence + 1 })
      expect((yield* ledger.call("getHealth")).status).toBe("healthy")
    }).pipe(Effect.provide(layerOf()))
  )
})
