// The certificate's files as another process sees them: whole, or not there.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, FileSystem, Layer } from "effect"
import { X509Certificate } from "node:crypto"
import { certificate } from "../../../../plugins/ledger-local/node/certificate.ts"

const disk = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer)

/** A disk on which the process dies half-way through the file named like this. */
const dyingAt = (name: string) =>
  Layer.effect(FileSystem.FileSystem)(
    Effect.map(FileSystem.FileSystem, (files) => ({
      ...files,
      writeFileString: ((path, content, options) =>
        path.includes(name)
          ? Effect.andThen(
              files.writeFileString(path, content.slice(0, content.length / 2), options),
              Effect.die("power cut")
            )
          : files.writeFileString(path, content, options)) as typeof files.writeFileString
    }))
  ).pipe(Layer.provide(NodeFileSystem.layer))

describe("the ledger's certificate", () => {
  it.effect("is a leaf, which cannot sign others, and stays the same", () =>
    Effect.gen(function* () {
      const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
      const made = yield* certificate(folder)
      const leaf = new X509Certificate(made.cert)
      expect(leaf.ca).toBe(false)
      expect(yield* certificate(folder)).toEqual(made)
    }).pipe(Effect.scoped, Effect.provide(disk))
  )

  it.effect.each(["ledger-key.pem", "ledger-cert.pem"])(
    "replaces a certificate after a crash while %s was written",
    (name) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* files.makeTempDirectoryScoped()
        const cut = yield* Effect.exit(certificate(folder).pipe(Effect.provide(dyingAt(name))))
        expect(Exit.isFailure(cut) && Cause.squash(cut.cause)).toBe("power cut")
        expect(yield* files.exists(`${folder}/ledger-cert.pem`)).toBe(false)
        const made = yield* certificate(folder)
        expect(new X509Certificate(made.cert).checkHost("localhost")).toBe("localhost")
        expect(new X509Certificate(made.cert).checkIP("127.0.0.1")).toBe("127.0.0.1")
        expect(Number((yield* files.stat(`${folder}/ledger-key.pem`)).mode) & 0o777).toBe(0o600)
        expect(yield* certificate(folder)).toEqual(made)
      }).pipe(Effect.scoped, Effect.provide(disk))
  )
})
