// Operator commands where nothing was ever started, and over a stopped facilitator's folder: a command that reads
// creates nothing, answers with an error rather than with an empty database, and says what answered.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Console, Context, Effect, Exit, FileSystem, Layer, Option, Redacted } from "effect"
import { Command } from "effect/cli"
import { join } from "node:path"
import process from "node:process"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { approvals } from "../../../runtime/commands/approvals.ts"
import { operatorCommands } from "../../../runtime/operators.ts"
import { sentenceOf } from "../../../runtime/sentence.ts"
import { databaseAt } from "../../../runtime/serve.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"

const tree = Command.make("tollkeeper").pipe(Command.withSubcommands([...operatorCommands, approvals]))

/** Runs a command in this process, beside no facilitator. */
const run = Effect.fnUntraced(function* (words: ReadonlyArray<string>, databaseUrl = "") {
  const out: Array<string> = []
  const err: Array<string> = []
  const outer = yield* Console.Console
  const before = process.env["DATABASE_URL"]
  process.env["DATABASE_URL"] = databaseUrl
  const exit = yield* Command.runWith(tree, { version: "0" })(words).pipe(
    Effect.scoped,
    Effect.provideService(Console.Console, {
      ...outer,
      log: (...parts) => void out.push(parts.map(String).join(" ")),
      error: (...parts) => void err.push(parts.map(String).join(" "))
    }),
    Effect.provide(NodeServices.layer),
    Effect.exit,
    Effect.ensuring(
      Effect.sync(() => {
        if (before === undefined) delete process.env["DATABASE_URL"]
        else process.env["DATABASE_URL"] = before
      })
    )
  )
  return {
    sentence: Exit.isFailure(exit) ? (sentenceOf(exit.cause) ?? "") : undefined,
    out: out.join("\n"),
    err: err.join("\n")
  }
})

const hash = "0".repeat(64)

const reads: ReadonlyArray<ReadonlyArray<string>> = [
  ["settlements", "list"],
  ["settlements", "explain", hash],
  ["budget"],
  ["channels", "list"],
  ["webhooks", "list"],
  ["catalog", "observations", "https://shop.example/"],
  ["audit"],
  ["backup", "save", "never.tar"],
  ["analytics", "rebuild"],
  ["tools-budget", "list"],
  ["approvals", "list"],
  ["approvals", "log"]
]

it.live(
  "no command creates a folder where nothing was started; each names the three ways to say where",
  () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const empty = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-unstarted-" })
      const state = join(empty, "nowhere")
      for (const words of reads) {
        const { out, sentence } = yield* run([...words, "--state", state])
        expect([words, out]).toEqual([words, ""])
        expect([words, sentence]).toEqual([words, expect.stringMatching(/nothing was ever started/)])
        for (const name of ["--state", "--profile", "DATABASE_URL", state]) expect(sentence).toContain(name)
        expect([words, yield* files.readDirectory(empty)]).toEqual([words, []])
      }
      const doctor = yield* run(["doctor", "--json", "--state", state])
      expect(JSON.parse(doctor.out)).toContainEqual({
        check: "database",
        state: "fault",
        detail: expect.stringContaining("nothing was ever started"),
        remedy: expect.stringContaining("npm start")
      })
      expect(yield* files.readDirectory(empty)).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)

it.live(
  "over a stopped facilitator's folder each says profile and database, and that no process was asked",
  () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-stopped-" })
      const database = databaseAt(
        { name: "local", secret: Option.none, tree: { database: { embedded_folder: "database" } } },
        state
      )
      const facilitator = yield* startFacilitator({
        database: database.pipe(Layer.provide(NodeServices.layer)),
        set: ["plugins=[ledger-local,x402-exact]"]
      })
      yield* facilitator.stop
      const { err, out, sentence } = yield* run(["settlements", "list", "--json", "--state", state])
      // A log line may come first: an embedded database that is opened anew begins a new epoch of the journal.
      expect([sentence, out.split("\n").at(-1)]).toEqual([undefined, "[]"])
      expect(err).toBe(
        `answered by this command itself, not by a running process (profile local; ` +
          `embedded database in ${join(state, "database")})`
      )
      const receivers = yield* run(["webhooks", "list", "--state", state])
      expect(receivers.out).not.toContain("no receiver")
      expect(receivers.sentence).toMatch(/webhooks was never started/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)

it.live.skipIf(!databaseKinds.includes("postgres"))(
  "an empty PostgreSQL database stays empty, and is named without its password",
  () =>
    Effect.gen(function* () {
      const opened = yield* Context.get(yield* Layer.build(sourceLayer("postgres")), DatabaseSource).open
      const url = opened.kind === "server" ? Redacted.value(opened.url) : ""
      const files = yield* FileSystem.FileSystem
      const state = join(yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-unstarted-" }), "nowhere")
      const { err, sentence } = yield* run(["budget", "--state", state], url)
      expect(sentence).toMatch(/nothing was ever started on .*--state.*--profile.*DATABASE_URL/)
      expect(err).toContain(`database ${new URL(url).pathname.slice(1)} at ${new URL(url).hostname}`)
      expect(err).toContain("profile local, the default")
      expect(err + sentence).not.toContain(new URL(url).password || "no password")
      expect(yield* files.exists(state)).toBe(false)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
