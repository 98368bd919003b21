// Two processes over one folder, in one container or in two, where the pid of one says nothing to the other.
import { afterAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import process from "node:process"
import { root } from "../../../runtime/bootstrap.mjs"
import { holderOfFolder, lockFolder } from "../../../runtime/platform/folderLock.ts"
import { announce, claimState, instancesOf, planReset } from "../../../runtime/state.ts"

const base = mkdtempSync(join(tmpdir(), "tollkeeper-folder-lock-"))
const children: Array<ChildProcess> = []
let folders = 0

afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
  rmSync(base, { recursive: true, force: true })
})

/** Another process that holds a new folder. */
const holdElsewhere = async () => {
  const folder = join(base, String(folders++), "database")
  const child = spawn(process.execPath, [join(root, "test/support/holdFolder.ts"), folder])
  children.push(child)
  await once(child.stdout, "data")
  return { child, folder }
}

/** How the lock's text reads in another container. */
const seenFromElsewhere = (folder: string) => writeFileSync(`${folder}.lock`, "4194304 1")

const refusal = (folder: string) => Effect.map(Effect.flip(Effect.scoped(lockFolder(folder))), ({ message }) => message)

it.live("names the process that holds a folder", () =>
  Effect.gen(function* () {
    const { child, folder } = yield* Effect.promise(holdElsewhere)
    expect(yield* refusal(folder)).toContain(`in use by process ${child.pid};`)
  })
)

it.live("a holder in another container keeps the folder", () =>
  Effect.gen(function* () {
    const { folder } = yield* Effect.promise(holdElsewhere)
    seenFromElsewhere(folder)
    expect(yield* refusal(folder)).toContain("a process of another container or machine")
    expect(holderOfFolder(folder)).toBe("a process of another container or machine")
    const state = join(folder, "..")
    yield* claimState(state)
    expect((yield* Effect.flip(planReset(state))).message).toContain("stop it first")
  })
)

it.live("a killed holder leaves the folder free", () =>
  Effect.gen(function* () {
    const { child, folder } = yield* Effect.promise(holdElsewhere)
    child.kill("SIGKILL")
    yield* Effect.promise(() => once(child, "exit"))
    expect(holderOfFolder(folder)).toBeUndefined()
    yield* Effect.scoped(
      Effect.andThen(
        lockFolder(folder),
        Effect.sync(() => expect(readFileSync(`${folder}.lock`, "utf8")).toMatch(`${process.pid} `))
      )
    )
    expect(["lock", "held"].map((kind) => existsSync(`${folder}.${kind}`))).toEqual([false, false])
  })
)

it.live("a living process of an earlier version keeps the folder", () =>
  Effect.gen(function* () {
    const { child } = yield* Effect.promise(holdElsewhere)
    const folder = join(base, String(folders++))
    writeFileSync(`${folder}.lock`, `${child.pid} `)
    expect(yield* refusal(folder)).toContain(`in use by process ${child.pid};`)
  })
)

it.live("one process keeps a folder from its own second holder", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const folder = join(base, String(folders++))
      yield* lockFolder(folder)
      expect(yield* refusal(folder)).toContain(`in use by process ${process.pid};`)
    })
  )
)

it.live("a holder that cannot be written keeps nothing locked", () =>
  Effect.gen(function* () {
    const folder = join(base, String(folders++))
    mkdirSync(`${folder}.lock`)
    expect(yield* refusal(folder)).toContain("cannot be locked")
    expect(readdirSync(base).filter((name) => name.startsWith(basename(folder)))).toEqual([`${basename(folder)}.lock`])
    rmdirSync(`${folder}.lock`)
    yield* Effect.scoped(lockFolder(folder))
  })
)

it.live("two processes with one pid write two instance files", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const state = join(base, String(folders++))
      yield* claimState(state)
      for (const profile of ["one", "other"]) yield* announce(state, { profile, isAlone: false, database: "embedded" })
      expect(
        instancesOf(state)
          .map(({ profile }) => profile)
          .sort()
      ).toEqual(["one", "other"])
    })
  )
)

it("one of many processes holds a folder at a time", async () => {
  const folder = join(base, String(folders++))
  const counter = join(base, "counter")
  writeFileSync(counter, "0")
  const turns = [1, 2, 3].map(async () => {
    const child = spawn(process.execPath, [join(root, "test/support/takeTurns.ts"), folder, counter, "200"])
    children.push(child)
    return (await once(child, "exit"))[0] as number
  })
  expect(await Promise.all(turns)).toEqual([0, 0, 0])
  expect(readFileSync(counter, "utf8")).toBe("600")
  expect(existsSync(`${folder}.held`)).toBe(false)
}, 60_000)
