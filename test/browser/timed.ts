// Measurements of `npm run browser` in addition to its tests. On a machine that runs other tests at the same time speed
// is meaningless, so bars apply only in that command; the figures are stored in a file that the run prints.
import { appendFileSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import type { CDPSession } from "playwright-core"

const screens = process.env["TOLLKEEPER_TEST_SCREENS"]

export const figuresFile = "figures.txt"

/** True if time bars apply here. */
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

/** Bytes that are still live after garbage collection. */
export const liveBytes = async (session: CDPSession): Promise<number> => {
  for (let round = 0; round < 3; round++) await session.send("HeapProfiler.collectGarbage")
  return (await metricsOf(session))["JSHeapUsedSize"]!
}
