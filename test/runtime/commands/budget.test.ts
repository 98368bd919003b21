// `tollkeeper budget` reports the day that payments are charged to.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Console, Context, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { Budget, BudgetTime } from "../../../kernel/budget/Budget.ts"
import { Limits } from "../../../kernel/config/Limits.ts"
import { budget } from "../../../runtime/commands/budget.ts"
import { Within } from "../../../runtime/commands/CommandTarget.ts"
import { storeLayer } from "../../kernel/settlement/store.ts"

it.effect("the day is the ledger's, not the machine's or the database's [S102]", () =>
  Effect.gen(function* () {
    const around = yield* Effect.context<SqlClient.SqlClient | Limits | Budget>()
    const services = Context.pick(SqlClient.SqlClient, Limits, Budget)(around) as Context.Context<never>
    const sql = yield* SqlClient.SqlClient
    yield* sql.withTransaction((yield* Budget).reserve({ id: "key:shop", keyed: true }, 50_000n, 1))
    const out: Array<string> = []
    const outer = yield* Console.Console
    yield* Command.runWith(Command.make("tollkeeper").pipe(Command.withSubcommands([budget])), { version: "0" })([
      "budget",
      "--json"
    ]).pipe(
      Effect.provideService(Within, { services, folder: "." }),
      Effect.provideService(Console.Console, {
        ...outer,
        log: (...parts) => void out.push(parts.map(String).join(" "))
      }),
      Effect.provide(NodeServices.layer)
    )
    expect(JSON.parse(out.join(""))).toMatchObject({
      day: "2021-02-03",
      rows: [{ day: "2021-02-03", principal: "key:shop", reserved: "50000" }]
    })
  }).pipe(
    Effect.provide(
      storeLayer("pglite").pipe(
        Layer.provide(Layer.succeed(BudgetTime, Effect.succeed(Date.parse("2021-02-03T04:05:06Z"))))
      )
    )
  )
)
