// Identity and resource usage of this process, the same on Node and Deno.
import { Effect, Layer } from "effect"
import process from "node:process"
import { ProcessUsage } from "../../kernel/platform/ProcessUsage.ts"
import { version } from "../version.ts"

const micros = 1_000_000

export const layer = Layer.sync(ProcessUsage, () => {
  const deno = (process.versions as Readonly<Record<string, string | undefined>>)["deno"]
  return {
    version,
    runtime: deno === undefined ? "node" : "deno",
    runtimeVersion: deno ?? process.versions.node,
    startedAtSeconds: Math.round(Date.now() / 1_000 - process.uptime()),
    usage: Effect.sync(() => {
      const { system, user } = process.cpuUsage()
      return { cpuSeconds: (system + user) / micros, residentBytes: process.memoryUsage.rss() }
    })
  }
})
