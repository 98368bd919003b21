// Injected faults, set as objects and read from text.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Operation } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { combineFaults } from "../../../../plugins/ledger-local/node/Faults.ts"
import { parseFault } from "../../../../plugins/ledger-local/node/parseFault.ts"
import { fund, ledgerLayer, send, transaction } from "../support.ts"

const bump = Operation.bumpSequence({ bumpTo: "0" })
const request = (method: string, params: unknown = {}) => ({ jsonrpc: "2.0", id: 7, method, params })

describe("faults", () => {
  it.effect("a delay fault holds a transaction for the given ledgers", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      yield* ledger.setFaults([{ delayLedgers: () => 2 }])
      const { hash } = yield* send(yield* transaction(payer, [bump]))
      const status = Effect.map(ledger.call("getTransaction", { hash }), (found) => found.status)
      yield* ledger.closeMany(2)
      expect(yield* status).toBe("NOT_FOUND")
      yield* ledger.close
      expect(yield* status).toBe("SUCCESS")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a send fault answers TRY_AGAIN_LATER or a code and queues nothing", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const tx = yield* transaction(yield* fund("payer"), [bump])
      yield* ledger.setFaults([{ onSend: () => "TRY_AGAIN_LATER" }])
      expect((yield* send(tx)).status).toBe("TRY_AGAIN_LATER")
      yield* ledger.setFaults([{ onSend: () => -11 }])
      expect(yield* send(tx)).toMatchObject({ status: "ERROR", code: "txInternalError" })
      yield* ledger.setFaults([])
      expect((yield* send(tx)).status).toBe("PENDING")
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("an answer fault fails, loses, delays, ages or alters the answer", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const tx = yield* transaction(yield* fund("payer"), [bump])
      const sending = request("sendTransaction", { transaction: tx.toEnvelope().toXdr("base64") })
      yield* ledger.setFaults([{ onRpc: () => ({ kind: "error", code: -32603, message: "no" }) }])
      expect(yield* ledger.rpc(sending)).toMatchObject({ id: 7, error: { code: -32603, message: "no" } })
      yield* ledger.setFaults([{ onRpc: () => ({ kind: "status", status: 502 }) }])
      expect(yield* Effect.flip(ledger.rpc(sending))).toMatchObject({ status: 502 })
      yield* ledger.setFaults([{ onRpc: () => ({ kind: "lost" }) }])
      expect(yield* Effect.flip(ledger.rpc(sending))).toMatchObject({ status: 504 })
      yield* ledger.setFaults([])
      expect((yield* send(tx)).status).toBe("DUPLICATE")

      yield* ledger.setFaults([{ onRpc: () => ({ kind: "late", millis: 5_000 }) }])
      const late = yield* Effect.forkChild(ledger.rpc(request("getHealth")))
      yield* TestClock.adjust("4 seconds")
      expect(late.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("2 seconds")
      expect(yield* Fiber.join(late)).toMatchObject({ result: { status: "healthy" } })

      const { sequence } = ledger.ledger.latest
      yield* ledger.setFaults([{ onRpc: () => ({ kind: "stale", ledgers: 1 }) }])
      yield* ledger.closeMany(2)
      expect((yield* ledger.call("getLatestLedger")).sequence).toBe(sequence + 1)
      yield* ledger.setFaults([
        { onRpc: () => ({ kind: "wrong", change: (result) => ({ ...(result as object), sequence: 5 }) }) }
      ])
      expect((yield* ledger.call("getLatestLedger")).sequence).toBe(5)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("a stale node shows the entries and transactions of its time", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const payer = yield* fund("payer")
      const { hash } = yield* send(yield* transaction(payer, [bump]))
      yield* ledger.close
      yield* ledger.setFaults([{ onRpc: () => ({ kind: "stale", ledgers: 1 }) }])
      expect((yield* ledger.call("getTransaction", { hash })).status).toBe("NOT_FOUND")
      const old = yield* transaction(payer, [bump])
      yield* ledger.setFaults([])
      const now = yield* transaction(payer, [bump])
      expect(BigInt(now.sequence) - BigInt(old.sequence)).toBe(1n)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it("parses faults from text and names an invalid one", () => {
    for (const text of [
      "drop=0.1",
      "delay=2",
      "delay=2:0.5",
      "try-again",
      "try-again=0.2",
      "send-error=txBadSeq:0.2",
      "rpc=*:503:0.2",
      "rpc-error=getHealth:-32603",
      "lost=sendTransaction",
      "silent=getTransaction:0.5",
      "late=*:200",
      "stale=3"
    ]) {
      expect(typeof parseFault(text), text).toBe("object")
    }
    for (const text of [
      "",
      "rain=1",
      "drop=2",
      "drop=x",
      "delay=-1",
      "send-error=txSuccess",
      "send-error=nothing",
      "rpc=*:99",
      "rpc=",
      "late=*:x",
      "stale=100"
    ]) {
      expect(typeof parseFault(text), text).toBe("string")
    }
  })

  it("faults affect the given share of calls evenly", () => {
    const faults = combineFaults([parseFault("rpc=getHealth:503:0.25") as object])
    const hits = Array.from({ length: 400 }, () => faults.onRpc("getHealth", {})).filter(
      (fault) => fault !== undefined
    ).length
    expect(hits).toBeGreaterThan(95)
    expect(hits).toBeLessThan(105)
    expect(faults.onRpc("getNetwork", {})).toBeUndefined()
  })
})
