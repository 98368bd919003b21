// Operator commands without any earlier start, and over a stopped facilitator's folder: a command that reads creates
// nothing, reports an error rather than an empty database, and reports the source of its answer.
import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Settings } from "../../../kernel/config/Settings.ts"
import { CurrentPlugin } from "../../../kernel/contract/Contract.ts"
import { Database } from "../../../kernel/database/Database.ts"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseAt } from "../../../runtime/serve.ts"
import { claimState } from "../../../runtime/state.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { runCommand } from "../../support/runCommand.ts"

/** Runs a command without a running facilitator. */
const run = (words: ReadonlyArray<string>, variables: Readonly<Record<string, string>> = {}) =>
  Effect.map(runCommand(words, { DATABASE_URL: "", ...variables }), ({ sentence, stderr, stdout }) => ({
    sentence,
    out: stdout.trimEnd(),
    err: stderr.trimEnd()
  }))

const hash = "0".repeat(64)

const reads: ReadonlyArray<ReadonlyArray<string>> = [
  ["settlements", "list"],
  ["settlements", "list", "--which", "refused"],
  ["settlements", "show", hash],
  ["settlements", "explain", hash],
  ["settlements", "give-up", hash, "--note", "why"],
  ["budget"],
  ["batch"],
  ["channels", "list"],
  ["webhooks", "list"],
  ["webhooks", "replay", "shop"],
  ["catalog", "observations", "https://shop.example/"],
  ["catalog", "remove", "https://shop.example/"],
  ["audit"],
  ["audit", "--log"],
  ["backup", "save", "never.tar"],
  ["analytics", "rebuild"],
  ["tools-budget", "list"],
  ["approvals", "list"],
  ["approvals", "log"],
  ["approvals", "approve", "x", "--reason", "a drill"]
]

/** Data of a tool server: files, unless its settings choose a database. */
const ofTools = reads.filter(([family]) => family === "approvals" || family === "tools-budget")

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
      const elsewhere = { DATABASE_URL: "postgres://127.0.0.1:1/facilitator" }
      for (const words of ofTools) {
        const { err, sentence } = yield* run([...words, "--state", state], elsewhere)
        expect([words, sentence]).toEqual([words, expect.stringContaining(`nothing was ever started over ${state}`)])
        expect(err).toContain(`profile tools; files in ${state}`)
      }
      const open = yield* run(["channels", "open", "--profile", "self-hosted", "--state", state])
      expect(open.sentence).toContain("profile self-hosted names no database")
      expect(yield* files.readDirectory(empty)).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)

it.live("reading what a tool server stores makes nothing in a folder that was claimed", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const state = yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-claimed-" })
    yield* claimState(state)
    expect((yield* run(["approvals", "list", "--state", state])).out).toBe("0 waiting")
    expect((yield* run(["approvals", "log", "--state", state])).sentence).toBeUndefined()
    expect((yield* run(["tools-budget", "list", "--state", state])).out).toBe("0 held")
    expect(yield* files.readDirectory(state)).toEqual(["tollkeeper.json"])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("a secret's file that cannot be read is named, whatever the command", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const state = join(yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-unreadable-" }), "nowhere")
    const variables = { DATABASE_URL_FILE: join(state, "database_url") }
    for (const words of [["budget"], ["settlements", "list"], ["audit"]]) {
      const { sentence } = yield* run([...words, "--state", state], variables)
      expect([words, sentence]).toEqual([
        words,
        "the file that DATABASE_URL_FILE names cannot be read; correct its path, or give this user the right to read it"
      ])
    }
    const doctor = yield* run(["doctor", "--json", "--state", state], variables)
    expect(JSON.parse(doctor.out)).toContainEqual({
      check: "database",
      state: "fault",
      detail: "the file that DATABASE_URL_FILE names cannot be read",
      remedy: expect.stringContaining("correct DATABASE_URL")
    })
    expect(yield* files.exists(state)).toBe(false)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("a filter that can match nothing is refused: a time that is none, a payer that is no address", () =>
  Effect.gen(function* () {
    for (const since of ["5", "12", "tomorrow", "2026", "-1h", "0d"])
      expect([since, (yield* run(["settlements", "list", `--since=${since}`])).sentence]).toEqual([
        since,
        `--since ${since}: expected a span such as 90m, 24h or 7d, or a date such as 2026-01-31T10:00Z`
      ])
    expect((yield* run(["settlements", "list", "--payer", "GABC"])).sentence).toMatch(
      /--payer GABC: expected an address/
    )
    for (const since of ["24h", "2026-01-31", "2026-01-31T10:00Z"])
      expect((yield* run(["settlements", "list", "--since", since, "--state", "/nowhere"])).sentence).toMatch(
        /never|nothing/
      )
  })
)

/** A server with these answers as JSON, or redirects to these URLs; returns its port. */
const answering = (answer: (request: IncomingMessage, body: string) => unknown) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer(async (request, response) => {
          let body = ""
          for await (const chunk of request.setEncoding("utf8")) body += String(chunk)
          const answered = answer(request, body) ?? {}
          if (answered instanceof URL) response.writeHead(307, { location: answered.href }).end()
          else response.end(JSON.stringify(answered))
        }).listen(0, "127.0.0.1")
        await once(server, "listening")
        return server
      }),
      (server) => Effect.sync(() => server.close())
    ),
    (server) => (server.address() as AddressInfo).port
  )

it.live("doctor asks an RPC with its key, and takes a facilitator at the port for one over another folder", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const state = join(yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-doctor-" }), "nowhere")
    const facilitator = yield* answering(({ url }) => (url === "/health/live" ? { status: "ok" } : undefined))
    const passphrase = "Test SDF Network ; September 2015"
    const rpc = yield* answering(({ headers }) =>
      headers["x-api-key"] === "a-key" ? { result: { passphrase, sequence: 7 } } : { error: { code: 401 } }
    )
    const found = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
      const { out } = yield* run(["doctor", "--json", "--state", state, ...words], { RPC_HEADERS: "X-Api-Key: a-key" })
      return JSON.parse(out) as ReadonlyArray<{ check: string; state: string; detail: string; remedy?: string }>
    })
    const findings = yield* found(
      ...["--set", `server.port=${facilitator}`, "--set", "networks.ledger:testnet.rpc_headers_env=RPC_HEADERS"],
      ...["--set", `networks.ledger:testnet.rpc_urls=["http://127.0.0.1:${rpc}"]`]
    )
    expect(findings).toContainEqual({ check: "RPC 1", state: "ok", detail: "answers, at ledger 7" })
    expect(findings).toContainEqual({
      check: "port",
      state: "warning",
      detail: `a facilitator answers at ${facilitator}, but it does not use ${state}`,
      remedy: "name its folder with --state DIR"
    })
    // Its key goes to no other address.
    const moved = yield* answering(() => new URL(`http://127.0.0.1:${rpc}/`))
    const redirected = yield* found(
      ...["--set", "networks.ledger:testnet.rpc_headers_env=RPC_HEADERS"],
      ...["--set", `networks.ledger:testnet.rpc_urls=["http://127.0.0.1:${moved}"]`]
    )
    expect(redirected.find(({ check }) => check === "RPC 1")?.detail).toBe("does not answer")
    const away = yield* found("--set", 'networks.ledger:testnet.rpc_urls=["http://127.0.0.1:1"]')
    expect(away.find(({ check }) => check === "RPC 1")?.remedy).toContain("npm start")
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
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
      // A log line may come first: a reopened embedded database begins a new epoch of the journal.
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
      const { err, sentence } = yield* run(["budget", "--state", state], { DATABASE_URL: url })
      expect(sentence).toMatch(/nothing was ever started on .*--state.*--profile.*DATABASE_URL/)
      expect(err).toContain(`database ${new URL(url).pathname.slice(1)} at ${new URL(url).hostname}`)
      expect(err).toContain("profile local, the default")
      expect(err + sentence).not.toContain(new URL(url).password || "no password")
      const shared = ["--set", "budget.store=postgres", "--state", state]
      for (const words of ofTools)
        expect([words, (yield* run([...words, ...shared], { DATABASE_URL: url })).sentence]).toEqual([
          words,
          expect.stringMatching(/mcp-tools was never started on the database/)
        ])
      expect(yield* files.exists(state)).toBe(false)
      const settings = Settings.layerTest({}, (name) =>
        name === "DATABASE_URL" ? Option.some(Redacted.make(url)) : Option.none()
      )
      const tables = yield* Effect.provide(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`select table_name from information_schema.tables where table_schema = 'public'`
        ),
        Database.layer.pipe(
          Layer.provide(Layer.merge(settings, Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) }))),
          Layer.provide(Layer.succeed(CurrentPlugin, "database"))
        )
      )
      expect(tables).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  240_000
)
