import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { certificate } from "../../../../plugins/ledger-local/node/certificate.ts"
import { layer as nodeCrypto } from "../../../../runtime/platform/nodeCrypto.ts"

const platform = Layer.mergeAll(nodeCrypto, NodeFileSystem.layer, NodePath.layer)

it.effect("the ledger's folder is its user's alone, and one that is there is tightened", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = `${yield* files.makeTempDirectoryScoped()}/state/ledger`
    const mode = Effect.map(files.stat(folder), ({ mode }) => mode & 0o777)
    const openOnce = Effect.provide(Effect.asVoid(LocalLedger), LocalLedger.layer({}, folder))
    yield* openOnce
    expect(yield* mode).toBe(0o700)
    for (const use of [openOnce, certificate(folder)]) {
      yield* files.chmod(folder, 0o755)
      yield* use
      expect(yield* mode).toBe(0o700)
    }
  }).pipe(Effect.scoped, Effect.provide(platform))
)
