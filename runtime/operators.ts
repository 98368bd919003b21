// An operator's commands, carried out within the process that serves: on its own database, embedded or not, its
// settings and its keys. It listens for them on this machine alone, at a port of the system's choice, and answers who
// sends the key that stands in the state folder, which this user alone can read. A command is the very one that runs
// by itself when nothing serves; here it stands on the services that run (`commands/place.ts`), and what it prints is
// the answer. One at a time, and only the commands listed here: nothing that starts or deletes.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Context, Effect, Exit, Option, Schema, Semaphore } from "effect"
import { Command } from "effect/cli"
import { analytics } from "./commands/analytics.ts"
import { audit } from "./commands/audit.ts"
import { backup } from "./commands/backup.ts"
import { budget } from "./commands/budget.ts"
import { catalog } from "./commands/catalog.ts"
import { channels } from "./commands/channels.ts"
import { doctor } from "./commands/doctor.ts"
import { keys } from "./commands/keys.ts"
import { Within } from "./commands/place.ts"
import { settlements } from "./commands/settlements.ts"
import { toolsBudget } from "./commands/toolsBudget.ts"
import { webhooks } from "./commands/webhooks.ts"
import { Database } from "../kernel/database/Database.ts"
import { Crypto } from "../kernel/platform/Crypto.ts"
import { Listeners } from "../kernel/platform/Listeners.ts"
import { administration } from "../plugins/mcp-tools-pay/plugin.ts"
import { presentation } from "./presentation.ts"
import { isAsked, report } from "./report.ts"

/** The commands that a running process carries out: those of a facilitator, and of a tool server that pays. */
export const operatorCommands = [
  toolsBudget,
  channels,
  settlements,
  catalog,
  analytics,
  webhooks,
  keys,
  budget,
  audit,
  backup,
  doctor
] as const

/** The families that a process with these services carries out. */
export const familiesOf = (services: Context.Context<never>): ReadonlyArray<string> => {
  const isFacilitator = Option.isSome(Context.getOption(services, Database))
  const paying = Context.getOption(services, administration.RunningBudget)
  const isPaying = Option.exists(paying, ({ store }) => store !== undefined)
  return operatorCommands
    .map(({ name }) => name)
    .filter((name) => (name === toolsBudget.name ? isPaying : isFacilitator))
}

/** Commands of these families that start or make something of their own, and so never run within another process. */
export const isForItself = ([family, command]: ReadonlyArray<string>): boolean =>
  (family === "channels" && command === "open") ||
  (family === "keys" && command === "seal") ||
  (family === "backup" && command === "restore")

const tree = Command.make("tollkeeper").pipe(Command.withSubcommands(operatorCommands))

/** What is asked: the words of the command line, and the folder in which they were written. */
export const Asked = Schema.Struct({
  words: Schema.Array(Schema.String.check(Schema.isMaxLength(4_096))).check(Schema.isMaxLength(64)),
  folder: Schema.String
})

/** What the command printed, and its exit code. */
export const Answered = Schema.Struct({ status: Schema.Int, out: Schema.String, err: Schema.String })

const bodyBytesMax = 65_536
const commandTimeout = "5 minutes"

/** Runs a command line over the services of this process. */
const carryOut = Effect.fnUntraced(function* (
  services: Context.Context<never>,
  { folder, words }: typeof Asked.Type,
  version: string
) {
  const out: Array<string> = []
  const err: Array<string> = []
  const outer = yield* Console.Console
  const kept: Console.Console = {
    ...outer,
    log: (...parts) => void out.push(parts.map(String).join(" ")),
    error: (...parts) => void err.push(parts.map(String).join(" "))
  }
  const exit = yield* Command.runWith(tree, { version })(words).pipe(
    Effect.tapCause((cause) => (isAsked(cause) ? Effect.void : report(cause, false))),
    Effect.scoped,
    Effect.provideService(Within, { services, folder }),
    Effect.provide([NodeServices.layer, presentation]),
    Effect.provideService(Console.Console, kept),
    Effect.timeout(commandTimeout),
    Effect.exit
  ) as Effect.Effect<Exit.Exit<void, unknown>>
  const status = Exit.isSuccess(exit) || isAsked(exit.cause) ? 0 : 1
  return { status, out: out.join("\n"), err: err.join("\n") }
})

const json = (value: unknown, status = 200) =>
  new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } })

/** Listens for operators' commands until the Scope closes; tells where, and under which key. */
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
    if (isForItself(asked.value.words)) return json({ error: "invalid_request" }, 400)
    return json(yield* turn.withPermits(1)(carryOut(services, asked.value, version)))
  })
  const { port } = yield* open({ host: "127.0.0.1", port: 0, bodyBytesMax }, handle)
  return { url: `http://127.0.0.1:${port}`, key }
})
