// The state folder: a reset deletes some entries and keeps the others.
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Scope } from "effect"
import { SqlError } from "effect/sql"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import { DatabaseRefused } from "../../kernel/database/DatabaseSource.ts"
import { ListenFailed } from "../../kernel/platform/Listeners.ts"
import { lockFolder } from "../../runtime/platform/folderLock.ts"
import { sentenceOf } from "../../runtime/sentence.ts"
import { announce, carryOutReset, claimState, instancesOf, planReset, StateRefused } from "../../runtime/state.ts"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-state-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const fresh = () => mkdtempSync(join(folder, "one-"))

const refusal = (state: string) => Effect.map(Effect.flip(planReset(state)), ({ message }) => message)

const reset = (state: string) =>
  Effect.flatMap(planReset(state), (plan) => (plan === undefined ? Effect.void : carryOutReset(state, plan)))

describe("a reset", () => {
  it.effect("refuses a folder without the mark, whatever it holds, and deletes nothing", () =>
    Effect.gen(function* () {
      const state = fresh()
      mkdirSync(join(state, "database"))
      writeFileSync(join(state, "thesis.txt"), "years of work")
      expect(yield* refusal(state)).toMatch(/does not carry Tollkeeper's mark .*nothing was deleted; name the folder/)
      expect(readdirSync(state)).toEqual(["database", "thesis.txt"])
    })
  )

  it.effect("removes the program's own files and leaves foreign ones with the folder", () =>
    Effect.gen(function* () {
      const [shared, own] = [fresh(), join(fresh(), "state")]
      for (const state of [shared, own]) {
        yield* claimState(state)
        for (const name of ["database", "tools", "tools-approvals"]) mkdirSync(join(state, name))
        const held = ["state", "database", "ledger", "tools", "tools-approvals-step"].map((name) => `${name}.held`)
        for (const name of ["sponsor.seed", "tools-decisions.jsonl", "tools-decisions.jsonl.before", ...held])
          writeFileSync(join(state, name), "S")
      }
      writeFileSync(join(shared, "thesis.txt"), "years of work")
      yield* reset(shared)
      yield* reset(own)
      expect([readdirSync(shared), existsSync(own)]).toEqual([["thesis.txt"], false])
      // The remaining entries are not ours any more.
      expect(yield* refusal(shared)).toContain("mark")
    })
  )

  it.effect("refuses while a process serves over the folder or holds it", () =>
    Effect.gen(function* () {
      const state = fresh()
      yield* claimState(state)
      const scope = yield* Scope.make()
      yield* Scope.provide(
        announce(state, { profile: "local", isAlone: true, database: "embedded", url: "http://127.0.0.1:1" }),
        scope
      )
      expect(yield* refusal(state)).toMatch(/a Tollkeeper runs over .*http:\/\/127\.0\.0\.1:1\); stop it first/)
      yield* Effect.scoped(Effect.andThen(lockFolder(join(state, "database")), refusal(state)))
      expect(instancesOf(state)).toHaveLength(1)
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      expect(instancesOf(state)).toEqual([])
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* lockFolder(join(state, "database"))
          expect(yield* refusal(state)).toContain("stop it first")
        })
      )
      yield* reset(state)
      expect(existsSync(state)).toBe(false)
    })
  )

  it.effect("does not count the note of a process that is gone", () =>
    Effect.gen(function* () {
      const state = fresh()
      yield* claimState(state)
      mkdirSync(join(state, "running"))
      writeFileSync(join(state, "running", "1.json"), JSON.stringify({ pid: 1, start: "never", profile: "local" }))
      expect(instancesOf(state)).toEqual([])
      yield* reset(state)
      expect(existsSync(state)).toBe(false)
    })
  )
})

describe("why a start ends", () => {
  const systemError = (code: string, path: string) =>
    Object.assign(new Error(`${code}: something, open '${path}'`), { code, path })
  const reported = (error: unknown) => sentenceOf(Cause.fail(error))

  it.each([
    ["EADDRINUSE", /port 4022 of 127\.0\.0\.1 is taken by another program; stop that one, or .*--port PORT/],
    ["EACCES", /may not open port 4022 .*--port PORT/],
    ["EADDRNOTAVAIL", /no address 127\.0\.0\.1; set server\.host/],
    ["EWHATEVER", /cannot be opened \(EWHATEVER\); choose another with --port/]
  ])("%s of a port names the port and the flag", (code, sentence) => {
    const cause = { cause: systemError(code, "") }
    expect(reported(new ListenFailed({ host: "127.0.0.1", port: 4022, setting: "server.port", cause }))).toMatch(
      sentence
    )
  })

  it.each([
    ["ENOSPC", /disk is full; free some space/],
    ["EROFS", /read-only; choose a folder/],
    ["EACCES", /lacks the permission; grant it/]
  ])("%s names the place and what to do, a defect of it too", (code, sentence) => {
    const error = systemError(code, "/state/x")
    for (const cause of [
      Cause.fail(new StateRefused({ message: "it cannot be written", cause: error })),
      Cause.die(error)
    ])
      expect(sentenceOf(cause)).toMatch(new RegExp(`^/state/x: .*${sentence.source}`))
  })

  it("in the database is reported with the database's own message", () => {
    const cause = new Error('permission denied for schema "public"')
    const error = new SqlError.SqlError({ reason: new SqlError.UnknownError({ message: "Query failed", cause }) })
    expect(reported(error)).toBe(
      'the database said: permission denied for schema "public"; `tollkeeper doctor` checks the database'
    )
  })

  it("by a damaged database leads to its repair, not to its deletion", () => {
    const sentence = reported(new DatabaseRefused({ message: "the embedded database does not open" }))
    expect(sentence).toMatch(/does not open; `tollkeeper doctor` checks .* names the repair or the backup/)
    expect(sentence).not.toContain("reset")
  })

  it("is never empty for an expected error, and undefined for a defect", () => {
    expect(reported({ _tag: "Wordless" })).toBe("Wordless: no details")
    expect(sentenceOf(Cause.die(new TypeError("x is not a function")))).toBeUndefined()
  })

  it.effect("explains an unwritable state folder, even where no folder can be made", () =>
    Effect.gen(function* () {
      const file = join(fresh(), "file")
      writeFileSync(file, "")
      const places = [file, join(file, "below"), ...(existsSync("/proc/self") ? ["/proc/tollkeeper/below"] : [])]
      for (const state of places)
        expect(reported(yield* Effect.flip(claimState(state)))).toMatch(
          /cannot be written[:;].* choose another folder with --state/
        )
    })
  )
})
