// What `npm run browser` measures beside what it tests. A machine that runs other tests at the same time says nothing
// about speed, so bars are held to only there; the figures are kept in a file that the run prints.
import { appendFileSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import type { CDPSession } from "playwright-core"

const screens = process.env["TOLLKEEPER_TEST_SCREENS"]

export const figuresFile = "figures.txt"

/** Whether bars of time hold here. */
export const isTimed = screens !== undefined

/** A line of the run's report. */
export const report = (line: string): void => {
  if (screens === undefined) return
  mkdirSync(screens, { recursive: true })
  appendFileSync(join(screens, figuresFile), `${line}\n`)
}

/** Chromium's own counts of a page: seconds of script and of tasks, bytes of live objects. */
export const metricsOf = async (session: CDPSession): Promise<Readonly<Record<string, number>>> => {
  const { metrics } = await session.send("Performance.getMetrics")
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]))
}

/** Bytes that live on after everything that can go is gone. */
export const liveBytes = async (session: CDPSession): Promise<number> => {
  for (let round = 0; round < 3; round++) await session.send("HeapProfiler.collectGarbage")
  return (await metricsOf(session))["JSHeapUsedSize"]!
}
