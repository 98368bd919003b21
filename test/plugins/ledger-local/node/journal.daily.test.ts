// The files on disk: they survive any end of the process, stay short, and are never misread.
import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { LocalLedger, type LocalLedgerOptions } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { layer as nodeCrypto } from "../../../../runtime/platform/nodeCrypto.ts"
import { account, keypair } from "../support.ts"

const platform = Layer.mergeAll(nodeCrypto, NodeFileSystem.layer, NodePath.layer)
const open = (folder: string, options: LocalLedgerOptions = {}) => Effect.provide(LocalLedger.layer(options, folder))

/** Runs the writer until it has reported `count` transactions, then kills it without warning. */
const killedAfter = (folder: string, count: number) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    const script = fileURLToPath(new URL("journalWriter.ts", import.meta.url))
    const isDeno = "Deno" in globalThis
    const child = spawn(process.execPath, isDeno ? ["run", "-A", script, folder] : [script, folder], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let reported = ""
    child.stdout.on("data", (chunk: Buffer) => {
      reported += chunk.toString()
      if (reported.split("\n").length > count) child.kill("SIGKILL")
    })
    child.on("exit", () => resume(Effect.succeed(reported.split("\n").slice(0, -1))))
  })

describe("the journal", () => {
  it.live(
    "the journal keeps every acknowledged transaction through kill -9",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* files.makeTempDirectoryScoped()
        let reported: ReadonlyArray<string> = []
        for (const count of [5, 40]) {
          const more = yield* killedAfter(folder, count)
          expect(more.length).toBeGreaterThanOrEqual(count)
          reported = [...reported, ...more]
        }
        yield* Effect.gen(function* () {
          const ledger = yield* LocalLedger
          for (const hash of reported) expect((yield* ledger.call("getTransaction", { hash })).status).toBe("SUCCESS")
          expect(ledger.ledger.latest.sequence).toBeGreaterThanOrEqual(1_000 + reported.length)
        }).pipe(open(folder))
      }).pipe(Effect.scoped, Effect.provide(platform)),
    240_000
  )

  it.live("the journal drops a torn last line and continues from the one before", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const use = Effect.flatMap(LocalLedger, (ledger) => ledger.closeMany(3)).pipe(open(folder))
      expect(yield* use).toBe(1_003)
      const journal = yield* files.readFileString(`${folder}/journal.jsonl`)
      yield* files.writeFileString(`${folder}/journal.jsonl`, journal.slice(0, -20))
      expect(yield* use).toBe(1_005)
      expect(yield* use).toBe(1_008)
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("the journal reports a damaged or missing line and repairs only on request", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const damages: ReadonlyArray<readonly [said: RegExp, damage: (lines: Array<string>) => ReadonlyArray<string>]> = [
        [/line 3 is not what was written/, (lines) => lines.with(2, lines[2]!.replace('"time":"1', '"time":"2'))],
        [/line 3 is not what was written/, (lines) => lines.with(2, lines[2]!.slice(0, 30))],
        [/ledger 1003 is missing before line 3/, (lines) => lines.toSpliced(2, 1)]
      ]
      for (const [said, damage] of damages) {
        const folder = yield* files.makeTempDirectoryScoped()
        const close = Effect.flatMap(LocalLedger, (ledger) => ledger.closeMany(5))
        expect(yield* close.pipe(open(folder))).toBe(1_005)
        const whole = (yield* files.readFileString(`${folder}/journal.jsonl`)).trimEnd().split("\n")
        const damaged = `${damage(whole).join("\n")}\n`
        yield* files.writeFileString(`${folder}/journal.jsonl`, damaged)
        const refused = yield* Effect.flip(close.pipe(open(folder)))
        expect(refused.message).toMatch(said)
        expect(refused.message).toContain(`tollkeeper ledger --state ${folder} --repair`)
        expect(yield* files.readFileString(`${folder}/journal.jsonl`)).toBe(damaged)
        expect(yield* close.pipe(open(folder, { repair: true }))).toBe(1_007)
        expect(yield* files.readFileString(`${folder}/journal.damaged.jsonl`)).toBe(damaged)
        expect(yield* close.pipe(open(folder))).toBe(1_012)
      }
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("the journal reports missing or changed files and starts over only on request", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const close = Effect.flatMap(LocalLedger, (ledger) => ledger.closeMany(5))
      const begun = Effect.gen(function* () {
        const folder = yield* files.makeTempDirectoryScoped()
        expect(yield* close.pipe(open(folder))).toBe(1_005)
        return folder
      })
      const refused = (folder: string, options: LocalLedgerOptions = {}) =>
        Effect.map(Effect.flip(close.pipe(open(folder, options))), String)

      const withoutJournal = yield* begun
      yield* files.remove(`${withoutJournal}/journal.jsonl`)
      for (let again = 0; again < 2; again++)
        expect(yield* refused(withoutJournal)).toMatch(/journal\.jsonl is missing; the ledgers up to 1000 are whole/)
      expect(yield* close.pipe(open(withoutJournal, { repair: true }))).toBe(1_005)
      expect(yield* close.pipe(open(withoutJournal))).toBe(1_010)

      const withoutSnapshot = yield* begun
      const journal = yield* files.readFileString(`${withoutSnapshot}/journal.jsonl`)
      yield* files.remove(`${withoutSnapshot}/snapshot.json`)
      expect(yield* refused(withoutSnapshot)).toMatch(/snapshot\.json is missing/)
      expect(yield* files.readFileString(`${withoutSnapshot}/journal.jsonl`)).toBe(journal)
      expect(yield* close.pipe(open(withoutSnapshot, { repair: true }))).toBe(1_005)
      expect(yield* files.readFileString(`${withoutSnapshot}/journal.damaged.jsonl`)).toBe(journal)

      const changed = yield* begun
      const snapshot = yield* files.readFileString(`${changed}/snapshot.json`)
      const entry = /"entries":\["[A-Za-z0-9+/=]{60}/.exec(snapshot)![0]
      const other = `${entry.slice(0, -1)}${entry.endsWith("A") ? "B" : "A"}`
      for (const text of [snapshot.replace(entry, other), snapshot.slice(0, -40), "", "null"]) {
        yield* files.writeFileString(`${changed}/snapshot.json`, text)
        for (const repair of [false, true])
          expect(yield* refused(changed, { repair })).toMatch(/snapshot\.json is not what was written/)
        expect(yield* files.readFileString(`${changed}/snapshot.json`)).toBe(text)
      }
      yield* files.writeFileString(`${changed}/snapshot.json`, snapshot)
      expect(yield* close.pipe(open(changed))).toBe(1_010)
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("opens a folder after a crash between snapshot and journal", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const fund = (name: string) =>
        Effect.flatMap(LocalLedger, (ledger) => ledger.fund(keypair(name).publicKey())).pipe(open(folder))
      yield* fund("early")
      const journal = yield* files.readFileString(`${folder}/journal.jsonl`)
      // Files of earlier versions, without a checksum.
      const { c: _check, ...snapshot } = JSON.parse(yield* files.readFileString(`${folder}/snapshot.json`))
      const line = JSON.parse(journal.trim())
      const merged = {
        ...snapshot,
        entries: [...snapshot.entries, ...line.put],
        ledgers: [...snapshot.ledgers, { ...line, put: undefined, gone: undefined }]
      }
      yield* files.writeFileString(`${folder}/snapshot.json`, JSON.stringify(merged))
      expect((yield* fund("late"))!.ledger).toBe(1_002)
      const both = Effect.all([account(keypair("early").publicKey()), account(keypair("late").publicKey())]).pipe(
        open(folder)
      )
      expect((yield* both).map((known) => known?.balance)).toEqual([10_000_0000000n, 10_000_0000000n])
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("a large journal is compacted into a snapshot", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      yield* Effect.gen(function* () {
        const ledger = yield* LocalLedger
        yield* ledger.fund(keypair("someone").publicKey())
        yield* ledger.closeMany(60)
      }).pipe(open(folder, { retentionLedgers: 20, journalLinesMax: 50 }))
      const lines = (yield* files.readFileString(`${folder}/journal.jsonl`)).split("\n").length - 1
      expect(lines).toBe(11)
      yield* Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const health = yield* ledger.call("getHealth")
        expect([health.oldestLedger, health.latestLedger]).toEqual([1_042, 1_061])
        expect((yield* account(keypair("someone").publicKey()))!.balance).toBe(10_000_0000000n)
      }).pipe(open(folder, { retentionLedgers: 20 }))
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live("the journal is not opened for another network", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      const close = Effect.flatMap(LocalLedger, (ledger) => ledger.close)
      yield* close.pipe(open(folder))
      const refused = yield* Effect.flip(close.pipe(open(folder, { passphrase: "Another" })))
      expect(refused.message).toContain("holds the ledger of another network or version")
    }).pipe(Effect.scoped, Effect.provide(platform))
  )

  it.live(
    "keeps thousands of empty ledgers in a few bytes each",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* files.makeTempDirectoryScoped()
        yield* Effect.gen(function* () {
          const ledger = yield* LocalLedger
          for (let i = 0; i < 50; i++) yield* ledger.fund(keypair(`account ${i}`).publicKey(), { usdcUnits: 1n })
          yield* ledger.closeMany(5_000)
        }).pipe(open(folder))
        const sizes = yield* Effect.forEach(yield* files.readDirectory(folder, { recursive: true }), (name) =>
          Effect.map(files.stat(`${folder}/${name}`), ({ size, type }) => (type === "File" ? Number(size) : 0))
        )
        // The cost of opening grows with the file's size: 5,000 empty ledgers and 50 that made an account.
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(5_000 * 150 + 50 * 8_000)
        yield* Effect.flatMap(LocalLedger, (ledger) => ledger.call("getHealth")).pipe(open(folder))
      }).pipe(Effect.scoped, Effect.provide(platform)),
    240_000
  )
})
