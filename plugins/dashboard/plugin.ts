// Pages to look at: for anybody at `/`, for operators at `/dashboard`. They are static; what they show, the browser
// asks of the routes that everybody else asks, so a page's figures are the routes' figures. Nothing here is on a
// payment's path.
import { Effect, Layer } from "effect"
import { configContract, httpContract, networkContract, paymentContract } from "../../kernel/drivers.ts"
import { Greeting } from "../../kernel/Greeting.ts"
import { describe } from "../../kernel/http/OpenApi.ts"
import { define } from "../../kernel/Plugin.ts"
import { addAboutRoute } from "./about.ts"
import { Assets } from "./Assets.ts"
import { described } from "./description.ts"
import { addPageRoutes } from "./PageRoutes.ts"

const started = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* addPageRoutes
    yield* addAboutRoute
    yield* (yield* Greeting).hint(
      "In a browser: the facilitator's address, /dashboard below it, and /docs for the API."
    )
  })
)

export const plugin = define({
  id: "dashboard",
  summary: "Pages to look at: what the facilitator is, its catalog, and an operator's dashboard.",
  boot: "optional",
  needs: [configContract, networkContract, httpContract, paymentContract],
  migrations: "none",
  layer: Layer.merge(started, describe(described)).pipe(Layer.provide(Assets.layer))
})
