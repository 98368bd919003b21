// Small ports on the process and its system, the same on Node and Deno: resource usage, packages, type stripping,
// responses' ends, signals.
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Layer, type Scope } from "effect"
import { stripTypeScriptTypes } from "node:module"
import process from "node:process"
import { Packages, StripTypes } from "../../kernel/platform/Packages.ts"
import { ProcessUsage } from "../../kernel/platform/ProcessUsage.ts"
import type { AwaitResponseEnd } from "../../kernel/platform/ResponseEnd.ts"
import { packageFile } from "../layout.ts"
import { version } from "../version.ts"

const micros = 1_000_000

const usage = Layer.sync(ProcessUsage, () => {
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

/** The installed packages, found through `node_modules` folders. */
const packages = Layer.succeed(Packages, Packages.of({ file: (path) => Effect.sync(() => packageFile(path)) }))

/** Type stripping by `node:module`, which also runs our own sources. */
const stripTypes = Layer.succeed(StripTypes, StripTypes.of({ strip: (source) => stripTypeScriptTypes(source) }))

export const layer = Layer.mergeAll(usage, packages, stripTypes)

/** A response emits `finish` after its last byte was handed to the system, and `close` in any case. */
export const awaitNodeResponse: AwaitResponseEnd = (request, ended) =>
  Effect.callback<boolean>((resume) => {
    const response = NodeHttpServerRequest.toServerResponse(request)
    const end = () => {
      response.off("finish", end).off("close", end)
      ended(response.writableFinished)
      resume(Effect.succeed(response.writableFinished))
    }
    if (response.writableFinished || response.destroyed) return end()
    response.once("finish", end).once("close", end)
    return Effect.sync(() => void response.off("finish", end).off("close", end))
  })

/** Runs an effect on each SIGHUP for as long as the Scope lives. */
export const onHangup = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<R>()
    const handler = () => void Effect.runForkWith(context)(effect)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("SIGHUP", handler)),
      () => Effect.sync(() => process.off("SIGHUP", handler))
    )
  })
