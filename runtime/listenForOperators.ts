// Receives an operator's commands in a serving process: only on this machine, at a port that the system chooses, from
// senders with the key in the state folder, which only this user can read. It runs one command at a time, and only the
// families listed here. They do not start or delete anything. The commands themselves (`operators.ts`) are loaded with
// the first request, since most processes never receive one.
import { Context, Effect, Option, Schema, Semaphore } from "effect"
import { Database } from "../kernel/database/Database.ts"
import { Crypto } from "../kernel/platform/Crypto.ts"
import { Listeners } from "../kernel/platform/Listeners.ts"
import { RunningBudget } from "../plugins/mcp-tools-pay/plugin.ts"
import { Asked, isStandaloneCommand, operatorFamilies, type OperatorFamily, toolsFamily } from "./operatorWords.ts"

/** The command families that a process with these services runs. */
export const familiesOf = (services: Context.Context<never>): ReadonlyArray<OperatorFamily> => {
  const isFacilitator = Option.isSome(Context.getOption(services, Database))
  const isPaying = Option.exists(Context.getOption(services, RunningBudget), ({ store }) => store !== undefined)
  return operatorFamilies.filter((name) => (name === toolsFamily ? isPaying : isFacilitator))
}

const bodyBytesMax = 65_536

const json = (value: unknown, status = 200) =>
  new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } })

/** Listens for operators' commands until the Scope closes; returns the address and its key. */
export const listenForOperators = Effect.fnUntraced(function* (services: Context.Context<never>, version: string) {
  const { open } = yield* Listeners
  const crypto = yield* Crypto
  const key = Array.from(crypto.randomBytes(32), (byte) => byte.toString(16).padStart(2, "0")).join("")
  const hash = (text: string) => crypto.sha256(new TextEncoder().encode(text))
  const expected = hash(`Bearer ${key}`)
  const turn = yield* Semaphore.make(1)
  const handle = Effect.fnUntraced(function* (request: Request) {
    if (!crypto.timingSafeEqual(hash(request.headers.get("authorization") ?? ""), expected))
      return json({ error: "unauthorized" }, 401)
    const body = yield* Effect.option(Effect.tryPromise(() => request.json() as Promise<unknown>))
    const asked = Option.flatMap(body, Schema.decodeUnknownOption(Asked))
    if (request.method !== "POST" || Option.isNone(asked)) return json({ error: "invalid_request" }, 400)
    if (isStandaloneCommand(asked.value.words)) return json({ error: "invalid_request" }, 400)
    const { runOperatorCommand: carryOut } = yield* Effect.promise(() => import("./operators.ts"))
    return json(yield* turn.withPermits(1)(carryOut(services, asked.value, version)))
  })
  const { port } = yield* open({ host: "127.0.0.1", port: 0, bodyBytesMax }, handle)
  return { url: `http://127.0.0.1:${port}`, key }
})
