// Web pages: the public page at `/`, the seller's at `/seller`, the operator's at `/dashboard`. They are static; the
// browser requests their data from the public routes, so a page's figures are the routes' figures. Nothing here is on a
// payment's path.
import { Effect, Layer } from "effect"
import { accountsContract } from "../../kernel/accounts/AccountSessions.ts"
import { budgetContract } from "../../kernel/budget/Budget.ts"
import { databaseContract } from "../../kernel/database/Database.ts"
import {
  configContract,
  httpContract,
  networkContract,
  paymentContract,
  settlementContract
} from "../../kernel/drivers.ts"
import { factsContract } from "../../kernel/facts/Facts.ts"
import { StartupBanner } from "../../kernel/StartupBanner.ts"
import { define } from "../../kernel/plugin/Plugin.ts"
import { ChannelActions } from "../../kernel/settlement/channels/ChannelActions.ts"
import { OperatorActions } from "../../kernel/settlement/operators/OperatorActions.ts"
import { ServiceLevels } from "../../kernel/settlement/operators/ServiceLevels.ts"
import { OperatorReports } from "../../kernel/settlement/operators/OperatorReports.ts"
import { supervisorContract } from "../../kernel/actor/Supervisor.ts"
import { addAboutRoute } from "./about.ts"
import { addAccountRoutes } from "./AccountRoutes.ts"
import { addBooksRoutes } from "./BooksRoutes.ts"
import { Assets } from "./Assets.ts"
import { addStatusRoute } from "./status/statusPage.ts"
import { startActionSweep } from "./sweepActions.ts"
import { Incidents } from "./status/Incidents.ts"
import { addOperatorRoutes } from "./OperatorRoutes.ts"
import { addPageRoutes } from "./PageRoutes.ts"
import { addSessionRoutes } from "./SessionRoutes.ts"

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* addPageRoutes
    yield* addAboutRoute
    yield* addStatusRoute
    yield* addSessionRoutes
    yield* addAccountRoutes
    yield* addOperatorRoutes
    yield* addBooksRoutes
    yield* startActionSweep
    yield* (yield* StartupBanner).suggest(
      "In a browser:  {url}  ({url}/dashboard is the operator's page, {url}/docs the API's)"
    )
  })
)

export const plugin = define({
  id: "dashboard",
  summary: "Web pages: what the facilitator is, its catalog, and an operator's dashboard.",
  boot: "optional",
  needs: [
    supervisorContract,
    configContract,
    networkContract,
    httpContract,
    databaseContract,
    factsContract,
    accountsContract,
    budgetContract,
    settlementContract,
    paymentContract
  ],
  migrations: "folder",
  layer: started.pipe(
    Layer.provide(
      Layer.mergeAll(
        Incidents.layer,
        Assets.layer,
        ChannelActions.layer,
        OperatorActions.layer,
        OperatorReports.layer,
        ServiceLevels.layer
      )
    )
  )
})
