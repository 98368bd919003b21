// GET /openapi.json: the document of every route that is served (`OpenApi.ts`).
import { Effect, Layer } from "effect"
import { json } from "./httpMiddleware.ts"
import { OpenApi } from "./OpenApi.ts"
import { addRoutes, processRoutes, route } from "./Route.ts"
import { anything } from "./wireSchema.ts"

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { document } = yield* OpenApi
    yield* addRoutes(processRoutes, [
      route(
        {
          method: "GET",
          path: "/openapi.json",
          id: "openapi",
          summary: "This document.",
          exposure: "public",
          callers: "public",
          answers: { 200: { description: "OpenAPI 3.1.", body: anything("The document.") } }
        },
        Effect.sync(() => json(document(), { headers: { "access-control-allow-origin": "*" } }))
      )
    ])
  })
)
