// Commands that change keys or a damaged database record their act in the state folder, with its reason and outcome.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Console, Effect, FileSystem } from "effect"
import { Command } from "effect/cli"
import { join } from "node:path"
import process from "node:process"
import { leaveBeside, readKeptActs } from "../../../kernel/settlement/operators/keptActs.ts"
import { keptActsFile } from "../../../kernel/platform/Host.ts"
import { keys } from "../../../runtime/commands/keys.ts"
import { repair } from "../../../runtime/commands/repair.ts"
import { openEmbedded } from "../../../runtime/platform/pglite.ts"

const variables = { SPONSOR_SECRET: Keypair.random().secret(), SEEDS_PASSPHRASE: "a passphrase of a drill" }
const program = Command.make("tollkeeper").pipe(Command.withSubcommands([keys, repair]))

const run = Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
  const outer = yield* Console.Console
  const silent = { ...outer, log: () => undefined, error: () => undefined }
  return yield* Command.runWith(program, { version: "0" })(words).pipe(
    Effect.provideService(Console.Console, silent),
    Effect.exit
  )
})

it.live(
  "records repair and seal with reason and outcome, and a refused seal",
  () =>
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => Object.assign(process.env, variables)),
        () => Effect.sync(() => Object.keys(variables).forEach((name) => delete process.env[name]))
      )
      const state = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "tollkeeper-acts-" })
      const folder = join(state, "database")
      yield* Effect.scoped(openEmbedded({ folder }))
      const sealed = join(state, "seeds")
      for (const [words, subject, outcome] of [
        [["repair"], folder, /^done$/],
        [["keys", "seal", sealed], sealed, /^done$/],
        [["keys", "seal", sealed], sealed, /already exists/]
      ] as const) {
        const reason = `${words.join(" ")}, a drill`
        yield* run([...words, "--state", state, "--reason", reason])
        expect((yield* readKeptActs(state))[0]).toMatchObject({
          action: words[words.length > 1 ? 1 : 0],
          subject,
          reason,
          via: "command line",
          person: expect.stringMatching(/./),
          outcome: expect.stringMatching(outcome)
        })
      }
      const [, , repaired] = yield* readKeptActs(state)
      expect(repaired).toMatchObject({
        before: expect.stringContaining("before-repair"),
        after: expect.stringContaining("indexes")
      })
      // A reset removes all else; the acts outlive the folder.
      const [files, before] = [yield* FileSystem.FileSystem, yield* readKeptActs(state)]
      yield* leaveBeside(state)
      expect(yield* files.exists(state)).toBe(true)
      for (const name of yield* files.readDirectory(state))
        if (name !== keptActsFile) yield* files.remove(join(state, name), { recursive: true })
      yield* leaveBeside(state)
      expect([yield* files.exists(state), yield* readKeptActs(state)]).toEqual([false, before])
      yield* files.remove(`${state}.${keptActsFile}`)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
