// A process that funds one account after the other in a ledger on disk, and prints each acknowledged transaction
// immediately. Its parent kills it. Not a test by itself.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { layer as nodeCrypto } from "../../../../runtime/platform/nodeCrypto.ts"
import { keypair } from "../support.ts"

const folder = process.argv[2]!
const layer = LocalLedger.layer({}, folder).pipe(Layer.provide([nodeCrypto, NodeFileSystem.layer, NodePath.layer]))

await Effect.runPromise(
  Effect.gen(function* () {
    const ledger = yield* LocalLedger
    for (let i = 0; ; i++) {
      const funded = yield* ledger.fund(keypair(`writer ${i}`).publicKey(), { usdcUnits: 1n })
      process.stdout.write(`${funded!.hash}\n`)
      yield* Effect.sleep(0)
    }
  }).pipe(Effect.provide(layer))
)
