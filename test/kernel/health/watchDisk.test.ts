// A disk that fills: settling is busy below the reserve, before a write fails, until the next request.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { existsSync } from "node:fs"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { CurrentPlugin } from "../../../kernel/contract/Contract.ts"
import { diskFinding, lineOf, problemsFirst } from "../../../runtime/commands/doctor.ts"
import { diskReserveBytes, DiskSpace } from "../../../kernel/platform/DiskSpace.ts"
import { readDisk } from "../../../runtime/platform/nodeDisk.ts"
import { watchDisk } from "../../../kernel/health/WriteProbe.ts"

it.effect("is a problem below the reserve, logged once with its end", () => {
  const lines: Array<string> = []
  let freeBytes = diskReserveBytes
  return Effect.gen(function* () {
    const disk = yield* watchDisk(diskReserveBytes)
    yield* TestClock.adjust("10 seconds")
    expect(disk.problem()).toBeUndefined()
    freeBytes = diskReserveBytes - 1
    yield* TestClock.adjust("30 seconds")
    const full = "the disk is full: 255 MB free in /state, less than the reserve of 256 MB; free some space"
    expect(disk.problem()).toBe(full)
    freeBytes = diskReserveBytes
    yield* disk.recheck
    expect(disk.problem()).toBeUndefined()
    expect(lines).toEqual([`Error settling is busy: ${full}`, "Info the disk has enough free space again"])
  }).pipe(
    Effect.scoped,
    Effect.provideService(
      DiskSpace,
      Effect.sync(() => ({ folder: "/state", freeBytes }))
    ),
    Effect.provideService(CurrentPlugin, "database"),
    Effect.provideService(References.MinimumLogLevel, "Info"),
    Effect.provide(
      Layer.merge(
        Supervisor.layer,
        Logger.layer([
          Logger.make<unknown, void>(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
        ])
      )
    )
  )
})

it.effect("the disk with the least free space counts, of the folders that are there", () =>
  Effect.gen(function* () {
    const [one, other] = ["/", "/dev/shm"].filter((folder) => existsSync(folder))
    const readings = yield* Effect.forEach([one!, other ?? one!], (folder) => readDisk(folder))
    const least = readings.toSorted((a, b) => a!.freeBytes - b!.freeBytes)[0]
    expect((yield* readDisk(one!, other ?? one!, "/nowhere/at/all"))?.folder).toBe(least?.folder)
    expect((yield* readDisk(other ?? one!, one!))?.folder).toBe(least?.folder)
    expect(yield* readDisk("/nowhere/at/all")).toBeUndefined()
  })
)

it("doctor finds a fault below the reserve and a warning above it", () => {
  const stateAt = (freeBytes: number, reserveBytes = diskReserveBytes) =>
    diskFinding({ folder: "/state", freeBytes }, reserveBytes).state
  expect([stateAt(0), stateAt(diskReserveBytes - 1)]).toEqual(["fault", "fault"])
  expect([stateAt(diskReserveBytes), stateAt(1_000_000_000)]).toEqual(["warning", "ok"])
  expect([stateAt(2e9, 2e9), stateAt(2e9, 2e9 + 1)]).toEqual(["ok", "fault"])
  expect(lineOf(diskFinding({ folder: "/state", freeBytes: 0 }, diskReserveBytes))).toBe(
    "fault    disk        the disk is full: 0 MB free in /state, less than the reserve of 256 MB: free some space, or " +
      "choose another folder with --state DIR"
  )
})

it("doctor names problems first", () => {
  const found = (["ok", "warning", "fault", "ok"] as const).map((state, at) => ({
    check: String(at),
    state,
    detail: ""
  }))
  expect(problemsFirst(found).map(({ check }) => check)).toEqual(["2", "1", "0", "3"])
})
