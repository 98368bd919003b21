// Secrets in files, as container platforms provide them: read again each time, and an unreadable or empty file is an
// error, not an absent secret.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Option, Redacted } from "effect"
import { loadProfile } from "../../runtime/profile.ts"

it.effect("reads a secret anew from the file named by its _FILE variable [S240, S325]", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const file = yield* files.makeTempFileScoped()
    const profile = yield* loadProfile("local", [], {
      KEYS_FILE: file,
      BOTH: "variable",
      BOTH_FILE: file,
      GONE_FILE: `${file}.gone`
    })
    const secret = (name: string) => Option.map(profile.secret(name), Redacted.value)
    for (const empty of ["", " \n"]) {
      yield* files.writeFileString(file, empty)
      expect(() => secret("KEYS")).toThrow(/^the file that KEYS_FILE names is empty; write the secret into it/)
    }
    yield* files.writeFileString(file, "first\n")
    expect(secret("KEYS")).toEqual(Option.some("first"))
    yield* files.writeFileString(file, "second\n")
    expect([secret("KEYS"), secret("BOTH"), secret("NEITHER")]).toEqual([
      Option.some("second"),
      Option.some("variable"),
      Option.none()
    ])
    expect(() => secret("GONE")).toThrow(/^the file that GONE_FILE names cannot be read$/)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
