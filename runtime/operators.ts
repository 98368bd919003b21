// Runs an operator's commands within the serving process, on its own database (embedded or not), settings and keys.
// They are the same commands that run standalone without a serving process; here a command uses the running services
// (`commands/CommandTarget.ts`), and its output is the response. `listenForOperators.ts` authorizes the requests.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, type Context, Data, Effect, Exit } from "effect"
import { Command } from "effect/cli"
import { acts } from "./commands/acts.ts"
import { analytics } from "./commands/analytics.ts"
import { audit } from "./commands/audit.ts"
import { backup } from "./commands/backup.ts"
import { batch } from "./commands/batch.ts"
import { budget } from "./commands/budget.ts"
import { catalog } from "./commands/catalog.ts"
import { channels } from "./commands/channels.ts"
import { doctor } from "./commands/doctor.ts"
import { keys } from "./commands/keys.ts"
import { Within } from "./commands/CommandTarget.ts"
import { limits } from "./commands/limits.ts"
import { receipts } from "./commands/receipts.ts"
import { settlements } from "./commands/settlements.ts"
import { sponsor } from "./commands/sponsor.ts"
import { toolsBudget } from "./commands/toolsBudget.ts"
import { webhooks } from "./commands/webhooks.ts"
import { type Asked, operatorFamilies, type OperatorFamily } from "./operatorWords.ts"
import { presentation } from "./presentation.ts"
import { isAsked, report } from "./report.ts"

type ByFamily = { readonly [Family in OperatorFamily]: { readonly name: Family } }

const byFamily = {
  "tools-budget": toolsBudget,
  channels,
  settlements,
  catalog,
  analytics,
  webhooks,
  keys,
  sponsor,
  budget,
  batch,
  audit,
  acts,
  limits,
  backup,
  doctor,
  receipts
} as const satisfies ByFamily

/** The commands that a running process executes: those of a facilitator, and of a tool server that pays. */
export const operatorCommands = operatorFamilies.map((family) => byFamily[family])

const tree = Command.make("tollkeeper").pipe(Command.withSubcommands(operatorCommands))

/** The command took too long; it may have done a part of its work. */
class CommandInterrupted extends Data.TaggedError("CommandInterrupted")<{ readonly message: string }> {}

/** Shorter than the command line waits for an answer. */
const commandTimeout = "290 seconds"
const interrupted = new CommandInterrupted({
  message:
    `the running process interrupted the command after ${commandTimeout}; beside a PostgreSQL server it runs without ` +
    "this limit: set DATABASE_URL, and name an empty folder with --state"
})

/** Runs a command line over the services of this process. */
export const runOperatorCommand = Effect.fnUntraced(function* (
  services: Context.Context<never>,
  { folder, person, words }: typeof Asked.Type,
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
    Effect.timeoutOrElse({ duration: commandTimeout, orElse: () => Effect.fail(interrupted) }),
    Effect.tapCause((cause) => (isAsked(cause) ? Effect.void : report(cause, false))),
    Effect.scoped,
    Effect.provideService(Within, { services, folder, person }),
    Effect.provide([NodeServices.layer, presentation]),
    Effect.provideService(Console.Console, kept),
    Effect.exit
  ) as Effect.Effect<Exit.Exit<void, unknown>>
  const status = Exit.isSuccess(exit) || isAsked(exit.cause) ? 0 : 1
  return { status, out: out.join("\n"), err: err.join("\n") }
})
