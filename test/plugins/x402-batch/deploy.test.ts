import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { LocalLedger } from "../../../plugins/ledger-local/LocalLedger.ts"
import { TESTNET_PASSPHRASE } from "../../../plugins/ledger-local/node/LedgerMachine.ts"
import { deploy, localBatchContractOf } from "../../../plugins/x402-batch-local/deploy.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"

describe("the batch contract on the embedded ledger", () => {
  it.effect("the batch contract is deployed once to a predetermined address and recorded", () =>
    Effect.gen(function* () {
      const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
      const boot = Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const before = ledger.ledger.latest.sequence
        const contract = yield* deploy()
        return { contract, closed: ledger.ledger.latest.sequence - before }
      }).pipe(Effect.provide(LocalLedger.layer({}, folder).pipe(Layer.provide(NodeCrypto.layer))))
      const first = yield* boot
      assert.strictEqual(first.contract, localBatchContractOf(TESTNET_PASSPHRASE))
      assert.strictEqual(first.closed, 4)
      assert.deepStrictEqual(yield* boot, { ...first, closed: 0 })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
