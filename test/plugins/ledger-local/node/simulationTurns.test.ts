// Simulations during closes of ledgers: clients with slow simulations wait for each other, and a due ledger waits for
// at most one of them.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Operation } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { layer as nodeDeadline } from "../../../../runtime/platform/nodeDeadline.ts"
import { contract, VOID_BODY } from "../engine/wasm/assemble.ts"
import { fund, ledgerLayer, transaction } from "../support.ts"

const CLIENTS = 8

describe("a ledger that is due", () => {
  it.effect("a due ledger closes after one of eight concurrent simulations", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const source = yield* fund("a client")
      const upload = Operation.uploadContractWasm({ wasm: contract({ body: VOID_BODY }) })
      const envelope = (yield* transaction(source, [upload])).toEnvelope().toXdr("base64")
      let simulated = 0
      const simulate = ledger
        .call("simulateTransaction", { transaction: envelope })
        .pipe(Effect.tap(() => Effect.sync(() => simulated++)))
      const clients = yield* Effect.forkChild(
        Effect.all(Array<typeof simulate>(CLIENTS).fill(simulate), { concurrency: CLIENTS })
      )
      yield* Effect.yieldNow
      const before = ledger.ledger.latest.sequence
      yield* ledger.close
      expect(ledger.ledger.latest.sequence).toBe(before + 1)
      expect(simulated).toBeLessThanOrEqual(1)
      const answers = yield* Fiber.join(clients)
      expect(answers.map(({ minResourceFee }) => typeof minResourceFee)).toEqual(Array(CLIENTS).fill("string"))
    }).pipe(Effect.provide(ledgerLayer().pipe(Layer.provideMerge(nodeDeadline))))
  )
})
